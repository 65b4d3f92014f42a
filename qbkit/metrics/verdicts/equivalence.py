"""Equivalence: are the differences shown to be smaller than a margin?

A test that finds no difference shows nothing, because the trials may be too few. Equivalence
reverses the question: the null hypothesis is that the test lies outside the margin, and only trials
that reject it show conformance. For a margin of θ (0.1 by default), three conditions must hold,
each at the full level, as in an intersection-union test (Berger 1982):

- the mean throughput lies within ±θ of the reference's mean throughput, which for a reference
  against itself is the fair share;
- the mean queueing delay lies within ±θ of the reference's mean queueing delay;
- the conformance lies less than θ below the noise floor, because equal means may hide a different
  shape.

Two one-sided Welch t-tests (TOST, Schuirmann 1987) compare the means of whole trials. The margin is
a fraction of the reference's unknown mean; testing the contrast test - (1 ± θ) reference accounts
for that. The jackknife of `qbkit.metrics.envelopes.trials` compares the conformance.

The margin of a tenth is our choice. It is about the variation among trials of a kernel controller
(standard deviations of 1 to 10 % in the published settings), and half of what IMC'22 §3.3 accepts
from a repaired implementation (a throughput ratio above 0.8).
"""

from __future__ import annotations

import math

import numpy as np

from qbkit.metrics.envelopes.trials import TrialEstimate, Trials, satterthwaite
from qbkit.traces.arrays import FloatArray

MARGIN = 0.1
COARSE = 0.5
"""Trials that only detect a larger shift, as a part of the reference's mean, decide nothing."""
SHORT_DELAY_MS = 1.0
POWER = 0.8
"""Probability of detecting a shift that is called detectable."""


def equivalence_p(trials: Trials, margin: float = MARGIN) -> float:
    """p of "outside the margin": the largest of the five one-sided p-values; NaN if unknown."""
    if min(trials.tests, trials.references) < 2:
        return math.nan
    found = [_p_above(trials.above_floor(), -margin)]
    for test, reference in zip(*_columns(trials), strict=True):
        low = contrast(test, reference, 1 - margin)
        high = contrast(test, reference, 1 + margin)
        found += [
            _p_above(low, 0.0),
            _p_above(TrialEstimate(-high.value, high.error, high.freedom), 0.0),
        ]
    return float(np.max(found))


def mean_differences(trials: Trials) -> tuple[TrialEstimate, TrialEstimate]:
    """Test minus reference: mean queueing delay (ms) and mean throughput (Mbit/s)."""
    delay, throughput = (contrast(a, b) for a, b in zip(*_columns(trials), strict=True))
    return delay, throughput


def detectable_shifts(
    trials: Trials, level: float, count: int | None = None
) -> tuple[float, float]:
    """Smallest shifts of delay (ms) and throughput (Mbit/s) that the trials detect 4 times in 5.

    Computed for Hotelling's T² at that level (noncentral F distribution) from the variance of the
    given trials, for a shift of one quantity that leaves the other unchanged. With ``count``, as if
    each side had so many trials of that variance. NaN if the trials are too few.
    """
    n, m = trials.tests, trials.references
    if n + m < 5 or min(n, m) < 2:
        return math.nan, math.nan
    spreads = [
        math.sqrt(((n - 1) * a.var(ddof=1) + (m - 1) * b.var(ddof=1)) / (n + m - 2))
        for a, b in zip(*_columns(trials), strict=True)
    ]
    n, m = count or n, count or m
    from scipy import optimize, special  # slow to load; scipy.stats takes twice the time

    freedom = n + m - 3
    critical = special.fdtri(2, freedom, 1 - level)

    def missed(noncentrality: float) -> float:
        return float(special.ncfdtr(2, freedom, noncentrality, critical)) - (1 - POWER)

    needed = optimize.brentq(missed, 1e-3, 1e5)
    reach = math.sqrt(needed * (1 / n + 1 / m))
    delay, throughput = (reach * spread for spread in spreads)
    return delay, throughput


def coarse(trials: Trials, level: float, count: int | None = None) -> bool:
    """Whether the trials detect only shifts of more than `COARSE` of the reference's means.

    A mean delay below `SHORT_DELAY_MS` counts as that. ``count`` is as in `detectable_shifts`.
    """
    delay_ms, mbps = detectable_shifts(trials, level, count)
    mean_ms, mean_mbps = trials.means[trials.tests :].mean(axis=0)
    return not (
        mbps <= COARSE * mean_mbps and delay_ms <= COARSE * max(float(mean_ms), SHORT_DELAY_MS)
    )


def _columns(trials: Trials) -> tuple[FloatArray, FloatArray]:
    """(2, n) and (2, m): delay and throughput of the test's trials and of the reference's."""
    return trials.means[: trials.tests].T, trials.means[trials.tests :].T


def contrast(test: FloatArray, reference: FloatArray, factor: float = 1.0) -> TrialEstimate:
    """mean(test) - factor * mean(reference) with Welch's standard error; NaN for a single trial."""
    value = float(test.mean() - factor * reference.mean())
    if min(len(test), len(reference)) < 2:
        return TrialEstimate(value, math.nan, math.nan)
    parts = [
        float(test.var(ddof=1)) / len(test),
        factor**2 * float(reference.var(ddof=1)) / len(reference),
    ]
    freedom = satterthwaite(parts, [len(test), len(reference)])
    return TrialEstimate(value, math.sqrt(sum(parts)), freedom)


def _p_above(estimate: TrialEstimate, bound: float) -> float:
    """One-sided p of "not above the bound"."""
    from scipy import special

    if estimate.error == 0:
        return 0.0 if estimate.value > bound else 1.0
    return float(special.stdtr(estimate.freedom, (bound - estimate.value) / estimate.error))
