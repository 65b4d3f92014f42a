"""The line of a stack's source where a parameter most likely lives, found by its identifiers.

A search for words, not a reading of the program: it finds where to begin. Names are compared
without underscores and capitals, so that one word fits ``PROBE_RTT_TIME`` and ``probeRttTime``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from qbkit import stacks
from qbkit.errors import QbkitError
from qbkit.metrics.maps.families import family
from qbkit.spec import Flow

SUFFIXES = (".rs", ".go", ".c", ".cc", ".cpp", ".py", ".java", ".h")
OTHER_FILES = re.compile(r"tests?\b|_test|bench|example|fuzz|generated|qlog", re.IGNORECASE)
COMMENT = re.compile(r'\s*(//|/\*|\*|#(?!\s*define)|"|use |import |from |pub use )')
"""How a line begins that sets nothing."""
SETS = re.compile(r"\b(const|static|define|fn|func|def)\b|^\w[\w *]*\([^;]*$|[^=!<>]=[^=]|:\s*\d")
"""What a line has that gives something a value, or defines what computes it."""
NUMBER = re.compile(r"(?<![\w.])\d")
TESTS = re.compile(r"\s*(#\[cfg\(test\)\]|mod tests\b)")
"""Where the tests in a file of Rust begin."""


def source_line(flow: Flow, identifiers: Sequence[str]) -> str:
    """``FOLDER/FILE:LINE`` of the best line; "" where no source is at hand, or no line fits.

    ``identifiers`` are regular expressions of names without underscores, the most telling first.
    Only files count that are named after the controller: in all of a stack's, words mislead.
    """
    best: tuple[tuple[int, ...], str] | None = None
    words = [re.compile(word, re.IGNORECASE) for word in identifiers]
    for apart, name, text in _files(flow):
        for number, line in enumerate(text.splitlines(), 1):
            if TESTS.match(line):
                break
            rank = _rank(line, words)
            if rank and (best is None or (apart, *rank) < best[0]):
                best = (apart, *rank), f"{name}:{number}"
    return best[1] if best else ""


def _rank(line: str, words: Sequence[re.Pattern[str]]) -> tuple[int, int, int] | None:
    """The place of the first word that a line has, and whether it sets a value, or a number."""
    if COMMENT.match(line):
        return None
    bare = line.replace("_", "")
    first = next((i for i, word in enumerate(words) if word.search(bare)), None)
    if first is None:
        return None
    sets = bool(SETS.search(line))
    return first, not sets, not (sets and NUMBER.search(line))


def _files(flow: Flow) -> Iterator[tuple[int, str, str]]:
    """How far a file's name is from the controller's, its name, and its text."""
    if flow.source:
        yield 0, flow.controller, flow.source
        return
    try:
        roots = stacks.get(flow.stack).sources_at_hand()
    except (QbkitError, OSError):  # such as a release that was never built
        return
    for root in roots:
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root.parent).as_posix()
            if path.suffix not in SUFFIXES or OTHER_FILES.search(f"/{path.relative_to(root)}"):
                continue
            apart = _apart(path.relative_to(root), flow.controller)
            if apart is not None:
                yield apart, name, path.read_text(errors="replace")


def _apart(path: Path, controller: str) -> int | None:
    """0 if a file or a folder of it has the controller's name, 1 if its family's, else None."""
    names = [part.replace("_", "").lower() for part in (path.stem, *path.parts[:-1])]
    if controller in names:
        return 0
    kin = family(controller)
    return 1 if kin and any(kin in name for name in names) else None
