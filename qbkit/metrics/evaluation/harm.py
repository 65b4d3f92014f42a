"""Harm (Ware et al., HotNets '19), and whether a sender does more of it than standard ones do.

RFC 9743 asks for a comparison and sets no thresholds. So a sender is compared with the standard
controller that does worst in the same setting; a difference within the measure's margin is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from qbkit.metrics.evaluation.measures import MARGIN_PART, Better, Measure
from qbkit.metrics.verdicts.equivalence import contrast
from qbkit.traces.arrays import FloatArray

CONFIDENCE = 0.95
HARM_MARGIN = 0.05

Answer = Literal["no more", "more", "undecided"]


def harm(beside: float, alone: float, better: Better) -> float:
    """What another sender loses beside the tested one, from 0 (nothing) to 1; below 0 it gains.

    For what is better when larger (throughput), (alone - beside) / alone; for what is better when
    smaller (delay, loss, completion time), (beside - alone) / beside; -1 where all of that is
    gone, or new, beside it. NaN where it is unknown.
    """
    whole, lost = (alone, alone - beside) if better == "more" else (beside, beside - alone)
    return lost / whole if whole else float(np.sign(lost))


@dataclass(frozen=True)
class Comparison:
    """A measure of a sender beside that of the standard controllers, in one setting."""

    value: float
    """Mean of the sender under test."""
    bar: float
    """Mean of the standard controller that does worst."""
    bar_name: str
    low: float
    high: float
    """95 % interval of how much worse the sender is than the bar; negative: better."""
    margin: float
    """What counts as no difference."""

    @property
    def answer(self) -> Answer:
        """Whether the sender is worse than the bar by more than the margin."""
        if math.isnan(self.low):
            return "undecided"
        if self.low > self.margin:
            return "more"
        return "no more" if self.high <= self.margin else "undecided"


def compared(
    values: Sequence[float],
    standards: Mapping[str, Sequence[float]],
    measure: Measure,
    *,
    is_harm: bool,
    rtt_ms: float = math.inf,
) -> Comparison | None:
    """The comparison of a sender's values with the standards'; None where nobody has a value.

    One value per seed and sender. An interval needs two of each side. ``rtt_ms`` is the base RTT.
    """
    known = {name: _finite(each) for name, each in standards.items()}
    known = {name: each for name, each in known.items() if len(each)}
    ours = _finite(values)
    if not len(ours) or not known:
        return None
    bad = {name: _badness(each, measure, is_harm) for name, each in known.items()}
    worst = max(bad, key=lambda name: float(np.mean(bad[name])))
    bar = float(np.mean(known[worst]))
    margin = HARM_MARGIN if is_harm else max(measure.margin_on(rtt_ms), MARGIN_PART * bar)
    worse = contrast(_badness(ours, measure, is_harm), bad[worst])
    low, high = worse.interval(CONFIDENCE, -math.inf, math.inf)
    return Comparison(float(np.mean(ours)), bar, worst, low, high, margin)


def _badness(values: FloatArray, measure: Measure, is_harm: bool) -> FloatArray:
    """Values of a measure so that more is worse."""
    if is_harm:
        return values
    if measure.better == "less":
        return np.minimum(values, measure.most)
    return np.abs(values - 1) if measure.better == "one" else -values


def _finite(values: Sequence[float]) -> FloatArray:
    found = np.asarray(values, dtype=float)
    return found[np.isfinite(found)]
