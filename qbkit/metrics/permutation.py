"""Permutation tests: could the names of test and reference have been dealt at random?

If the test were the reference, it would not matter which trials bear which name. So the names are
dealt in every possible way (the numbers of trials stay as they are), or in 9,999 random ways where
there are more than 20,000, and p is the part of the deals that look at least as different as the
observed one, which is itself a deal. The level is exact by construction, for any distribution.

Two statistics: of the *envelopes*, the mean conformance of the pairs of one trial from either
side; and of the *means*, Hotelling's T² of the per-trial mean vectors (delay, throughput), which is
the more powerful one against a shift and blind to shape. (T² grows with d'S⁻¹d, where d is the
difference of the sides' means and S the scatter of all trials; S is the same in every deal, so no
deal needs a matrix of its own.) ``p`` is of both together: the smaller of the two p-values is
itself a statistic, judged against its own distribution over the deals (Tippett's combination).

With n trials a side there are few deals, and swapping equal sides gives the same statistics: p is
at least 2/20 = 0.1 at 3 against 3, 2/70 = 0.029 at 4, 2/252 = 0.008 at 5 against 5.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from qbkit.metrics.trials import Trials
from qbkit.traces.arrays import FloatArray

MOST_DEALS = 20_000
"""Up to so many deals all are made: 8 against 8 trials have 12,870."""
DRAWN_DEALS = 10_000
"""Deals drawn where there are more, the observed one included."""
DECIMALS = 9
"""Statistics that agree so far are ties; beyond lies rounding."""


class Permutation(NamedTuple):
    """p-values of a permutation test."""

    p: float
    """Of both statistics together."""
    envelopes: float
    """Of the conformance alone."""
    means: float
    """Of Hotelling's T² alone."""


def permutation_test(trials: Trials, rng_seed: int = 0) -> Permutation:
    """p-values of the observed names among all deals; NaN with fewer than 2 trials a side."""
    if min(trials.tests, trials.references) < 2:
        return Permutation(math.nan, math.nan, math.nan)
    both, envelopes, means = deal_p_values(trials, rng_seed)
    return Permutation(float(both[0]), float(envelopes[0]), float(means[0]))


def deal_p_values(trials: Trials, rng_seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(deals,) each: p of both together, of the envelopes and of the means; the observed first."""
    deals = _deals(trials.tests, trials.references, rng_seed)
    envelopes = _p_values(-_across(trials.pairs, deals))
    means = _p_values(_hotelling(trials.means, deals))
    return _p_values(-np.minimum(envelopes, means)), envelopes, means


def smallest_p(tests: int, references: int) -> float:
    """The least p that so many trials can give; 1 below 2 a side, where there is no test.

    Equal sides may swap names.
    """
    if min(tests, references) < 2:
        return 1.0
    return (2 if tests == references else 1) / math.comb(tests + references, tests)


def enough_trials(level: float) -> int:
    """The fewest trials a side whose smallest p is at most ``level``."""
    return next(k for k in itertools.count(2) if smallest_p(k, k) <= level)


@lru_cache(maxsize=8)
def _deals(tests: int, references: int, rng_seed: int) -> FloatArray:
    """(deals, trials): 1 where a deal names a trial the test's; the observed deal first."""
    total = tests + references
    if math.comb(total, tests) <= MOST_DEALS:
        chosen = np.array(list(itertools.combinations(range(total), tests)))
    else:
        rng = np.random.default_rng(rng_seed)
        shuffled = rng.permuted(np.tile(np.arange(total), (DRAWN_DEALS - 1, 1)), axis=1)
        chosen = np.vstack([np.arange(tests), shuffled[:, :tests]])
    deals = np.zeros((len(chosen), total))
    np.put_along_axis(deals, chosen, 1.0, axis=1)
    return deals


def _across(pairs: FloatArray, deals: FloatArray) -> FloatArray:
    """Mean conformance between the two sides of each deal."""
    tests = deals[0].sum()
    total = ((deals @ pairs) * (1 - deals)).sum(axis=1)
    mean: FloatArray = total / (tests * (deals.shape[1] - tests))
    return mean


def _hotelling(means: FloatArray, deals: FloatArray) -> FloatArray:
    """d'S⁻¹d of each deal, which orders the deals as Hotelling's T² does."""
    centred = means - means.mean(axis=0)
    std = centred.std(axis=0)
    centred = centred / np.where(std > 0, std, 1.0)
    tests = deals[0].sum()
    gap = deals @ centred * (1 / tests + 1 / (deals.shape[1] - tests))
    inverse = np.linalg.pinv(centred.T @ centred, rcond=1e-9, hermitian=True)
    value: FloatArray = np.einsum("ij,jk,ik->i", gap, inverse, gap)
    return value


def _p_values(statistic: FloatArray) -> FloatArray:
    """Part of the deals whose statistic is at least as large as each one's."""
    statistic = np.round(statistic, DECIMALS)
    below = np.searchsorted(np.sort(statistic), statistic, side="left")
    p: FloatArray = (len(statistic) - below) / len(statistic)
    return p
