"""What a bisection can look at: one number per seed, and whether two versions differ in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics import infer, summary
from qbkit.metrics.envelopes.envelope import definition_of, sample_trials
from qbkit.metrics.envelopes.trials import Trials
from qbkit.metrics.parameters.estimates import PARAMETERS
from qbkit.suggestions import did_you_mean
from qbkit.traces.arrays import FloatArray

Runs = Sequence[xr.Dataset]
SHORT = {"beta": "decrease_factor", "c": "cubic_c"}
"""Further names of parameters."""
OF_SUMMARY = {
    "throughput_mbps": "throughput (Mbit/s)",
    "goodput_mbps": "goodput (Mbit/s)",
    "loss_percent": "loss (%)",
    "rtt_mean_ms": "mean RTT (ms)",
    "queue_delay_mean_ms": "mean queueing delay (ms)",
}
"""Columns of `qbkit.metrics.summary` → what they are."""


@dataclass(frozen=True)
class Measure:
    """A number of each run of a version."""

    name: str
    words: str
    is_alone: bool
    """Whether it is that of a flow alone on its link, rather than beside the reference."""
    values: Callable[[Runs, Runs], FloatArray]
    """The numbers of the runs; the second argument is the reference's against itself."""


def measure_of(name: str) -> Measure:
    """The measure of a name; MetricError lists the names."""
    known = measures()
    found = SHORT.get(name, name)
    if found not in known:
        near = did_you_mean(name, [*known, *SHORT])
        raise MetricError(
            f"there is no metric {name!r}{near}; choose from {', '.join([*SHORT, *known])}",
            refused=True,
        )
    return known[found]


def measures() -> dict[str, Measure]:
    """All measures by name."""
    found = [
        Measure("share", "share of the link", False, _shares),
        Measure("conformance", "conformance", False, _conformances),
        *(Measure(name, words, False, _summary(name)) for name, words in OF_SUMMARY.items()),
        *(
            Measure(name, f"{words} ({unit})" if unit != "1" else words, True, _parameter(name))
            for name, (unit, words) in PARAMETERS.items()
            if unit
        ),
    ]
    return {measure.name: measure for measure in found}


def _shares(runs: Runs, _: Runs) -> FloatArray:
    means = np.array([run["throughput_mbps"].mean("time").values for run in runs])
    shares: FloatArray = means[:, 0] / means.sum(axis=1)
    return shares


def _conformances(runs: Runs, references: Runs) -> FloatArray:
    """Mean conformance of each run with one run of the reference."""
    ours, theirs = ([trial.xy for trial in sample_trials(side)] for side in (runs, references))
    trials = Trials.of(ours, theirs, definition_of("imc22"))
    means: FloatArray = trials.pairs[: len(runs), len(runs) :].mean(axis=1)
    return means


def _summary(name: str) -> Callable[[Runs, Runs], FloatArray]:
    return lambda runs, _: np.array([float(summary(run)[name].iloc[0]) for run in runs])


def _parameter(name: str) -> Callable[[Runs, Runs], FloatArray]:
    return lambda runs, _: np.array([infer(run)[name].value for run in runs])
