"""Whether flows settle: how far their throughput drifts while a trial is measured.

Flows leave slow start with windows far from those at which they end. Where a window grows for many
seconds between two losses (in a deep buffer, at a high rate), this start outlasts a short trial.
Then its operating points describe the start, and a longer trial has other ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr

from qbkit.metrics.envelopes.trials import TrialEstimate
from qbkit.metrics.maps.cells import cell_trials
from qbkit.metrics.verdicts.equivalence import MARGIN
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.schema import named

CONFIDENCE = 0.95


def drift_mbps(trials: Sequence[FloatArray]) -> TrialEstimate:
    """Mean throughput in the second half of a trial minus that in its first, mean over trials.

    ``trials`` are operating points (n, 2) in the order of time.
    """
    each = np.array([_later(points) for points in trials])
    count = len(each)
    error = float(each.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan
    return TrialEstimate(float(each.mean()), error, count - 1)


def drift_interval_mbps(trials: Sequence[FloatArray]) -> tuple[float, float]:
    """The 95 % interval of `drift_mbps` over the trials; NaN for a single trial."""
    return drift_mbps(trials).interval(CONFIDENCE, -math.inf, math.inf)


def settles(trials: Sequence[FloatArray]) -> bool:
    """Whether no drift shows of more than a tenth of the throughput (the margin of equivalence).

    A drift shows where its 95 % interval over the trials excludes zero; a single trial has none.
    """
    mean_mbps = np.mean([points[:, 1].mean() for points in trials])
    if not abs(drift_mbps(trials).value) > MARGIN * mean_mbps:
        return True  # without the interval, which is slow to compute
    low, high = drift_interval_mbps(trials)
    return not (low > 0 or high < 0)


def settling(cube: xr.Dataset) -> xr.Dataset:
    """Drift of each implementation in each setting of a sweep's cube, and whether it settles.

    Variables over the dimensions of `qbkit.metrics.cell_trials`: ``drift_mbps`` (`drift_mbps`) with
    its 95 % interval ``drift_low_mbps`` and ``drift_high_mbps``, and ``settles`` (True also where
    there is no run).
    """
    trials = cell_trials(cube)
    drifts = np.full((3, *trials.shape), np.nan)
    settled = np.ones(trials.shape, dtype=bool)
    for place, mine in np.ndenumerate(trials.values):
        if mine:
            drifts[(slice(None), *place)] = drift_mbps(mine).value, *drift_interval_mbps(mine)
            settled[place] = settles(mine)
    attrs = named("Mbit/s", "throughput, second half of a trial minus the first")
    names = ("drift_mbps", "drift_low_mbps", "drift_high_mbps")
    variables = {
        name: (trials.dims, values, attrs) for name, values in zip(names, drifts, strict=True)
    }
    return xr.Dataset({**variables, "settles": (trials.dims, settled)}, trials.coords)


def _later(points: FloatArray) -> float:
    middle = len(points) // 2
    return float(points[middle:, 1].mean() - points[:middle, 1].mean())
