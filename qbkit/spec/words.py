"""Numbers and pairs in the text forms of specs."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence


def number(word: str, text: str) -> float:
    """The finite number that a word of a text is; ValueError quotes both."""
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text!r} has {word!r} where a number must be")
    return value


def timed(word: str, what: str, form: str) -> tuple[float, float]:
    """The time and the value in a word such as ``5:0.2``; ValueError says what its value is."""
    first, colon, second = word.partition(":")
    if not colon:
        raise ValueError(f"{word!r} is no time with its {what}; write {form}")
    return number(first, word), number(second, word)


def settings(
    words: Sequence[str], names: Collection[str], what: str, forms: str
) -> dict[str, float]:
    """The numbers in words such as ``guesses=5``; ValueError for other words."""
    found: dict[str, float] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in names:
            raise ValueError(f"{what} has no {word!r}; write {forms}")
        found[name] = number(value, word)
    return found
