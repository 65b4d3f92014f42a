"""Numbers, pairs and named values in the text forms of specs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any


def number(word: str, text: str) -> float:
    """The finite number that a word of a text is, an int for digits; ValueError quotes both."""
    try:
        value = math.nan if "_" in word else float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text!r} has {word!r} where a number must be")
    return int(word) if word.isdecimal() else value


def repeated(values: Sequence[Any]) -> list[Any]:
    """Those of several values that are there more than once."""
    return [value for value in values if values.count(value) > 1]


def timed(word: str, what: str, form: str) -> tuple[float, float]:
    """The time and the value in a word such as ``5:0.2``; ValueError says what its value is."""
    first, colon, second = word.partition(":")
    if not colon:
        raise ValueError(f"{word!r} is no time with its {what}; write {form}")
    return number(first, word), number(second, word)


def settings(
    words: Sequence[str], names: Collection[str], what: str, form: str
) -> dict[str, float]:
    """The numbers in words such as ``seed=2``; ValueError for another name, or one given twice."""
    found: dict[str, float] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in names:
            raise ValueError(f"{what} has no {word!r}; write {form}")
        if name in found:
            raise ValueError(f"{what} has {name} twice; keep one")
        found[name] = number(value, word)
    return found


def kind_and_settings(
    text: str, names: Mapping[str, Collection[str]], what: str, forms: str
) -> dict[str, Any]:
    """The kind and the numbers in a text such as ``rate mbps=5``; ``names`` are those of each kind.

    Raises ValueError for another kind, and as `settings` does.
    """
    kind, *words = text.split() or [""]
    if kind not in names:
        raise ValueError(f"there is no {what} {text!r}; write {forms}")
    return {"kind": kind, **settings(words, names[kind], f"{what} {kind}", forms)}
