"""What a hunt looks for: a number of a run, and which way it is worse."""

from __future__ import annotations

import math
from dataclasses import dataclass

import xarray as xr

from qbkit.metrics.evaluation.measures import MEASURES, Part
from qbkit.spec.book import Scenario
from qbkit.studies.hunt.network import ALONE, RIVALS, Network


@dataclass(frozen=True)
class Metric:
    """A measure, and where it is looked for."""

    measure: str
    """Name in `MEASURES`; the tested sender is worse where it has less, or more, of it."""
    opposite: str = ""
    """The measure for the other direction, if it is bad as well."""
    rivals: tuple[str, ...] = RIVALS

    @property
    def alone(self) -> bool:
        """Whether the sender may be alone."""
        return ALONE in self.rivals

    def value(self, run: xr.Dataset, scenario: Scenario) -> float:
        """The number of a run."""
        measure = MEASURES[self.measure]
        flows = scenario.flows_of(measure.of)
        return measure.compute(Part(run, flows, scenario.from_s, scenario.duration_s))

    def score(self, ours: float, theirs: float, network: Network) -> float:
        """How much worse ours is, from 0 (no worse) to about 1; 0 where a number is unknown.

        Delays count as parts of what the full queue takes to drain.
        """
        worse = theirs - ours if MEASURES[self.measure].better == "more" else ours - theirs
        if math.isnan(worse):
            return 0.0
        if self.opposite:
            return abs(worse)
        unit = network.buffer_bdp * network.rtt_ms if MEASURES[self.measure].unit == "ms" else 1.0
        return max(worse / unit, 0.0)

    def shown_by(self, ours: float, theirs: float) -> str:
        """The measure that is worse for ours."""
        return self.opposite if self.opposite and ours > theirs else self.measure


METRICS = {
    "share": Metric("share", opposite="left"),
    "utilisation": Metric("utilisation", rivals=(ALONE, *RIVALS[:1])),
    "delay": Metric("queue", rivals=(ALONE, *RIVALS[:1])),
}
"""Name → metric."""
