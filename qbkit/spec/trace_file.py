"""Files of values over time: lines of seconds and a value, or mahimahi's milliseconds."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

FORM = "lines of seconds and a value"
OPPORTUNITIES = f"{FORM}, or of one whole number of milliseconds (mahimahi)"
MOST_DIGITS, MOST_SHOWN = 19, 60
SEPARATOR = re.compile(r"[\s,;]+")


def named_file(words: Sequence[str], form: str) -> Path:
    """The file that words name, whose name may have spaces; ValueError if there is none."""
    file = Path(" ".join(words))
    if not file.is_file():
        where = "" if file.is_absolute() else f" in {Path.cwd()}"
        raise ValueError(f"there is no file {str(file)!r}{where}; write {form}")
    return file


def read_steps(path: Path, form: str = FORM) -> tuple[tuple[float, float], ...]:
    """(seconds, value) of each line; ValueError names the first bad line, and the ``form``."""
    found: list[tuple[float, float]] = []
    for number, words in _lines(path, form):
        values = [_number(word) for word in words]
        if len(values) != 2 or not all(map(math.isfinite, values)):
            if not found and not any(map(math.isfinite, values)):
                continue  # the names of the columns
            shown = " ".join(words)[:MOST_SHOWN]
            raise ValueError(f"{path}, line {number}: {shown!r}; it needs {form}")
        found.append((values[0], values[1]))
    if not found:
        raise ValueError(f"{path} has no values; it needs {form}")
    return tuple(found)


def read_opportunities(path: Path) -> tuple[int, ...]:
    """The milliseconds of a file of mahimahi; empty for a file of another form."""
    lines = [words for _, words in _lines(path, OPPORTUNITIES)]
    if not all(len(w) == 1 and w[0].isdecimal() and len(w[0]) < MOST_DIGITS for w in lines):
        return ()
    return tuple(int(words[0]) for words in lines)


def _lines(path: Path, form: str) -> list[tuple[int, list[str]]]:
    """The number and the words of each line that is not empty and no comment."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text; it needs {form}") from None
    except OSError as error:
        raise ValueError(f"the trace {path} cannot be read: {error.strerror}") from None
    numbered = ((i, line.partition("#")[0].strip()) for i, line in enumerate(text.splitlines(), 1))
    return [(i, [w for w in SEPARATOR.split(line) if w]) for i, line in numbered if line]


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan
