"""Find the first of many versions that differs, with as few of them as possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

Side = Literal["good", "bad", "unknown"]


class Found(NamedTuple):
    """Between which two versions the difference begins."""

    last_good: int
    first_bad: int


def search(count: int, side_of: Callable[[int], Side]) -> Found:
    """Bisect versions 0 (good) to ``count`` - 1 (bad).

    ``side_of`` is asked once for a version, and never for the two ends. Where it answers "unknown",
    the version nearest to the middle that was not asked for is next.
    """
    good, bad = 0, count - 1
    unknown: set[int] = set()
    while left := [i for i in range(good + 1, bad) if i not in unknown]:
        middle = min(left, key=lambda i: abs(2 * i - good - bad))
        side = side_of(middle)
        if side == "good":
            good = middle
        elif side == "bad":
            bad = middle
        else:
            unknown.add(middle)
    return Found(good, bad)
