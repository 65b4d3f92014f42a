"""Whether a published point comes out the same again; if not, by how much, and what differs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import xarray as xr

from qbkit import measurement
from qbkit.errors import QbkitError, StackNotReady
from qbkit.studies.reproduction.points import Point
from qbkit.studies.reproduction.values import Precision, Values

SAME, DIFFERS, NOT_READY, FAILED = "the same", "differs", "not ready", "failed"
NOT_PUBLISHED = "with which versions it was made is not published"


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
    inputs: dict[str, tuple[str, str]]
    """What it is made with now but was not when it was published: name → then and now."""

    def __repr__(self) -> str:
        parts = [f"{self.point.name}: {self.verdict}", self.reason, self.inputs_text]
        return "; ".join(part for part in parts if part)

    @property
    def inputs_text(self) -> str:
        """The inputs that differ, in words."""
        if self.verdict == DIFFERS and not self.point.inputs:
            return NOT_PUBLISHED
        return "; ".join(f"{n}: {now} instead of {then}" for n, (then, now) in self.inputs.items())


def reproduce(point: Point) -> Reproduced:
    """Run a published point again, or load its runs if they are stored, and compare the values.

    They are the same if they agree to the precision that was published.
    """
    try:
        runs = point.recipe.runs()
        again = point.values(runs)
    except StackNotReady as error:
        return Reproduced(point, NOT_READY, str(error), {})
    except QbkitError as error:
        return Reproduced(point, FAILED, str(error), {})
    moved = changes(point.published(), again, point.precision)
    inputs = changed_inputs(point.inputs, runs)
    if not moved:
        return Reproduced(point, SAME, "", inputs)
    worst = max(moved, key=lambda change: change.part if math.isfinite(change.part) else -1)
    more = f", and {len(moved) - 1} more numbers" if len(moved) > 1 else ""
    return Reproduced(point, DIFFERS, f"{worst}{more}", inputs)


def changes(published: Values, again: Values, precision: Precision) -> list[Change]:
    """The values of both that differ by more than the published precision."""
    pairs = [Change(name, value, again[name]) for name, value in published.items() if name in again]
    return [each for each in pairs if not precision.agrees(each.published, each.again)]


def changed_inputs(
    published: Mapping[str, str], runs: Sequence[xr.Dataset]
) -> dict[str, tuple[str, str]]:
    """The inputs that differ, of those that were published and of which these runs have some."""
    now = {"measurement version": str(measurement.VERSION)}
    for run in runs:
        now |= {str(k): str(v) for k, v in json.loads(run.attrs["stack_versions"]).items()}
        now["kernel"] = str(run.attrs["kernel_version"])
    return {
        name: (then, now[name])
        for name, then in published.items()
        if name in now and now[name] != then
    }
