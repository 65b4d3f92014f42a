"""Whether a published point comes out the same again; if not, by how much, and what differs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import xarray as xr

from qbkit.errors import QbkitError, StackNotReady
from qbkit.studies.reproduction.inputs import Inputs, in_words, present_inputs
from qbkit.studies.reproduction.points import Point
from qbkit.studies.reproduction.values import IN_SECOND, Precision, Values

SAME, DIFFERS, NOT_READY, FAILED = "the same", "differs", "not ready", "failed"
NOT_PUBLISHED = "with which versions it was made is not published"
NONE_DIFFERS = "no published input differs"


@dataclass(frozen=True)
class Change:
    """A number or word that came out differently."""

    name: str
    published: float | str
    again: float | str

    @property
    def part(self) -> float:
        """The change over the published number; infinite if that is 0, unknown or a word."""
        if isinstance(self.again, str) or isinstance(self.published, str) or not self.published:
            return math.inf
        difference = abs(self.again - self.published)
        return difference / abs(self.published) if math.isfinite(difference) else math.inf

    def __str__(self) -> str:
        now, then = (v if isinstance(v, str) else f"{v:.6g}" for v in (self.again, self.published))
        percent = f" ({100 * self.part:.2g} %)" if math.isfinite(self.part) else ""
        return f"{self.name} is {now} instead of {then}{percent}"


@dataclass(frozen=True, repr=False)
class Reproduced:
    """What became of a point."""

    point: Point
    verdict: str
    """"the same", "differs", "not ready" (a stack is not built here) or "failed"."""
    reason: str
    """Why there is no result, or how the largest change looks; empty if nothing changed."""
    now: Inputs = field(default_factory=dict)
    """What it is made with now; empty if there is no result."""

    @property
    def inputs(self) -> dict[str, tuple[str, str]]:
        """What it is made with now but was not when it was published: name → then and now."""
        then, now = self.point.inputs, self.now
        return {n: (then[n], now[n]) for n in then if n in now and now[n] != then[n]}

    @property
    def unpublished(self) -> list[str]:
        """The inputs of now of which no version was published."""
        return [name for name in self.now if name not in self.point.inputs]

    def __repr__(self) -> str:
        parts = [f"{self.point.name}: {self.verdict}", self.reason, self.inputs_text]
        return "; ".join(part for part in parts if part)

    @property
    def inputs_text(self) -> str:
        """The inputs that differ, in words; of a changed result also those that may."""
        differ = [f"{name}: {in_words(*both)}" for name, both in self.inputs.items()]
        if self.verdict != DIFFERS:
            return "; ".join(differ)
        if not self.point.inputs:
            return NOT_PUBLISHED
        known = differ or [NONE_DIFFERS]
        more = [f"not published: {', '.join(self.unpublished)}"] if self.unpublished else []
        return "; ".join([*known, *more])


def reproduce(point: Point) -> Reproduced:
    """Run a published point again, or load its runs if they are stored, and compare the values.

    They are the same if they agree to the precision that was published.
    """
    try:
        runs = point.recipe.runs()
        return compared(point, runs)
    except StackNotReady as error:
        return Reproduced(point, NOT_READY, str(error))
    except QbkitError as error:
        return Reproduced(point, FAILED, str(error))


def compared(point: Point, runs: Sequence[xr.Dataset]) -> Reproduced:
    """Whether runs of today give the values of a point; "failed" where they give none of them."""
    published, again = point.published(), point.values(runs)
    now = present_inputs(runs)
    if not (published.keys() & again.keys()) - point.recipe.keys.keys():
        return Reproduced(
            point,
            FAILED,
            f"nothing can be compared: {', '.join(published)} are published, and its recipe gives "
            f"{', '.join(again) or 'nothing'}",
            now,
        )
    moved = changes(published, again, point.precision)
    if not moved:
        return Reproduced(point, SAME, "", now)
    others = len(moved) - 1
    more = f", and {others} more number{'s' * (others > 1)}" if others else ""
    return Reproduced(point, DIFFERS, f"{_worst(moved, point)}{more}", now)


def _worst(moved: list[Change], point: Point) -> str:
    """The largest change, with the range of the published seeds, which says what chance does.

    A figure of the whole run counts before one of a second.
    """
    whole = [change for change in moved if IN_SECOND not in change.name] or moved
    worst = max(whole, key=lambda change: change.part if math.isfinite(change.part) else -1)
    least, most = point.ranges().get(worst.name, (math.nan, math.nan))
    seeds = f"; {least:.6g} to {most:.6g} with the published seeds" if least <= most else ""
    return f"{worst}{seeds}"


def changes(published: Values, again: Values, precision: Precision) -> list[Change]:
    """The values of both that differ by more than the published precision."""
    pairs = [Change(name, value, again[name]) for name, value in published.items() if name in again]
    return [each for each in pairs if not precision.agrees(each.published, each.again)]
