"""Pairwise comparison of trials, so that conformance and noise floor have the same sample size.

IMC'22 draws an envelope from one trial. Pooling the trials of a side, as the envelope charts do, is
ours, and it raises the conformance, because more points span larger hulls. (For the kernel's CUBIC
with itself it is 0.81 at one trial per side and 0.97 at five, `benchmarks/noise_floor.py`.) So a
pooled conformance has no noise floor unless there are twice as many reference trials. Here

- ``conformance`` is the mean over all pairs of one test trial and one reference trial,
- ``noise_floor`` is the mean over all pairs of two different reference trials.

Both are the expected conformance of *one trial with one other trial*, whatever the number of
trials. More trials narrow the intervals without changing the expected values (both are
U-statistics, which are unbiased). qbkit has no other noise floor.

Intervals are from the delete-one jackknife over whole trials, with Student's t and the degrees of
freedom of Welch and Satterthwaite. For a mean over pairs, the jackknife is the variance of DeLong,
DeLong and Clarke-Pearson (1988). Points of one trial depend on each other, so the jackknife leaves
out whole trials only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qbkit.metrics.envelopes.conformance import pairwise_conformance
from qbkit.metrics.envelopes.envelope import Definition, Envelope, join, region
from qbkit.traces.arrays import FloatArray, IntArray

Statistic = Callable[[IntArray, IntArray], float]
"""Function from chosen trials of the test and of the reference to a number."""


class TrialEstimate(NamedTuple):
    """A number with its standard error over trials; NaN if the trials are too few."""

    value: float
    error: float
    """Standard error."""
    freedom: float
    """Degrees of freedom of the error."""

    def interval(self, confidence: float, low: float, high: float) -> tuple[float, float]:
        """Two-sided interval, limited to the range from ``low`` to ``high``."""
        if math.isnan(self.error):
            return math.nan, math.nan
        from scipy import special  # slow to load

        reach = float(special.stdtrit(self.freedom, (1 + confidence) / 2)) * self.error
        return max(low, self.value - reach), min(high, self.value + reach)


@dataclass(frozen=True, eq=False)
class Trials:
    """Pairwise conformance and means of the trials of a test and of its reference.

    In rows and columns, the test's trials come before the reference's.
    """

    pairs: FloatArray
    """(n + m, n + m): conformance of each trial with each other; 1 on the diagonal."""
    means: FloatArray
    """(n + m, 2): mean queueing delay (ms) and throughput (Mbit/s) of each trial's points."""
    tests: int
    """n, the number of trials of the test."""

    @classmethod
    def of(
        cls, tests: Sequence[FloatArray], references: Sequence[FloatArray], rule: Definition
    ) -> Trials:
        """Trials from the operating points (k, 2) of each trial.

        Clusters of ``refined`` are found once, on all points of both sides together, so they do not
        depend on which trials are called test.
        """
        points = [*tests, *references]
        ends = np.cumsum([len(p) for p in points])[:-1]
        clusters = np.split(rule.cluster(join(points)), ends)
        single = [_single(p, c, rule) for p, c in zip(points, clusters, strict=True)]
        means = np.array([p.mean(axis=0) for p in points])
        return cls(pairwise_conformance(single), means, len(tests))

    @property
    def references(self) -> int:
        """m, the number of trials of the reference."""
        return len(self.means) - self.tests

    @property
    def difference(self) -> FloatArray:
        """(2,): mean queueing delay (ms) and throughput over trials, test minus reference."""
        gap: FloatArray = self.means[: self.tests].mean(axis=0) - self.means[self.tests :].mean(
            axis=0
        )
        return gap

    def conformance(self) -> TrialEstimate:
        """Expected conformance of one trial of the test with one of the reference."""
        return self._estimate(self._across)

    def noise_floor(self) -> TrialEstimate:
        """Expected conformance of one trial of the reference with another; NaN below 2 trials."""
        return self._estimate(lambda _, mine: self._among(mine))

    def above_floor(self) -> TrialEstimate:
        """Conformance minus noise floor."""
        return self._estimate(lambda test, mine: self._across(test, mine) - self._among(mine))

    def _across(self, test: IntArray, mine: IntArray) -> float:
        return float(self.pairs[np.ix_(test, mine)].mean()) if len(test) and len(mine) else math.nan

    def _among(self, mine: IntArray) -> float:
        if len(mine) < 2:
            return math.nan
        inner = self.pairs[np.ix_(mine, mine)]
        return float((inner.sum() - len(mine)) / (len(mine) * (len(mine) - 1)))

    def _estimate(self, statistic: Statistic) -> TrialEstimate:
        return jackknife(statistic, self.tests, self.references)


def jackknife(statistic: Statistic, tests: int, references: int) -> TrialEstimate:
    """A statistic of all trials with its jackknife standard error.

    The indices of the test's trials come before the reference's.
    """
    test, mine = np.arange(tests), np.arange(tests, tests + references)
    without_test = np.array([statistic(np.delete(test, i), mine) for i in range(tests)])
    without_mine = np.array([statistic(test, np.delete(mine, j)) for j in range(references)])
    parts = [_jackknife_variance(v) for v in (without_test, without_mine)]
    freedom = satterthwaite(parts, [tests, references])
    return TrialEstimate(statistic(test, mine), math.sqrt(sum(parts)), freedom)


def satterthwaite(parts: Sequence[float], counts: Sequence[int]) -> float:
    """Degrees of freedom of a sum of variances of means over ``counts`` trials (Welch 1947)."""
    below = sum(p**2 / (n - 1) for p, n in zip(parts, counts, strict=True) if p > 0)
    return sum(parts) ** 2 / below if below > 0 else float(sum(counts) - len(counts))


def _jackknife_variance(left_out: FloatArray) -> float:
    return float((len(left_out) - 1) * left_out.var())


def _single(points: FloatArray, cluster: IntArray, rule: Definition) -> Envelope:
    """Envelope of one trial."""
    points = np.asfortranarray(points)
    kept, hulls = region(points, cluster, rule)
    count = len(points)
    trial, unknown = np.zeros(count, dtype=np.int64), np.full(count, np.nan)
    return Envelope(rule.name, points, trial, unknown, cluster, kept, hulls, points.mean(axis=0))
