"""Whether a published point comes out the same again; if not, by how much, and what differs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

import xarray as xr

from qbkit import measurement
from qbkit.errors import QbkitError, StackNotReady
from qbkit.execution.runner import run
from qbkit.execution.web.load import run_web
from qbkit.spec import Experiment
from qbkit.studies.reproduction.points import DIGITS, Point, Values

SAME, DIFFERS, NOT_READY, FAILED = "the same", "differs", "not ready", "failed"


@dataclass(frozen=True)
class Change:
    """A number that came out differently."""

    name: str
    published: float
    again: float

    @property
    def part(self) -> float:
        """The change over the published number; infinite if that is 0 or unknown."""
        difference = abs(self.again - self.published)
        known = math.isfinite(difference) and self.published != 0
        return difference / abs(self.published) if known else math.inf

    def __str__(self) -> str:
        percent = f" ({100 * self.part:.2g} %)" if math.isfinite(self.part) else ""
        return f"{self.name} is {self.again:.6g} instead of {self.published:.6g}{percent}"


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
        return "; ".join(f"{n}: {now} instead of {then}" for n, (then, now) in self.inputs.items())


def reproduce(point: Point) -> Reproduced:
    """Run a published point again, or load its run if it is stored, and compare the numbers.

    They are the same if they agree to the precision that was published.
    """
    try:
        again = run(point.spec) if isinstance(point.spec, Experiment) else run_web(point.spec)
    except StackNotReady as error:
        return Reproduced(point, NOT_READY, str(error), {})
    except QbkitError as error:
        return Reproduced(point, FAILED, str(error), {})
    moved = changes(point.published(), point.measure(again), point.step)
    inputs = changed_inputs(point.inputs, again)
    if not moved:
        return Reproduced(point, SAME, "", inputs)
    worst = max(moved, key=lambda change: change.part if math.isfinite(change.part) else -1)
    more = f", and {len(moved) - 1} more numbers" if len(moved) > 1 else ""
    return Reproduced(point, DIFFERS, f"{worst}{more}", inputs)


def changes(published: Values, again: Values, step: float) -> list[Change]:
    """The numbers of both that differ by more than the published precision."""
    pairs = [Change(name, value, again[name]) for name, value in published.items() if name in again]
    return [change for change in pairs if not _agrees(change, step)]


def _agrees(change: Change, step: float) -> bool:
    then, now = change.published, change.again
    if math.isnan(then) or math.isnan(now):
        return math.isnan(then) and math.isnan(now)
    if math.isinf(then) or math.isinf(now):
        return then == now
    return abs(then - now) <= max(0.51 * step, DIGITS * abs(then))


def changed_inputs(published: Mapping[str, str], again: xr.Dataset) -> dict[str, tuple[str, str]]:
    """The inputs that differ, of those that were published and of which this run has some."""
    now = {str(k): str(v) for k, v in json.loads(again.attrs.get("stack_versions", "{}")).items()}
    now["kernel"] = str(again.attrs["kernel_version"])
    now["measurement version"] = str(measurement.VERSION)
    return {
        name: (then, now[name])
        for name, then in published.items()
        if name in now and now[name] != then
    }
