"""Permutation tests: does it matter which trials are called test and which reference?

If the test were the reference, the labels of the trials would not matter. So the test relabels the
trials in every possible way (with the same number on each side), or in 9,999 random ways if there
are more than 20,000. p is the fraction of relabellings that look at least as different as the
observed labels, which count as one of them. The level is exact by construction, for any
distribution.

There are two statistics. For the *envelopes*, it is the mean conformance over pairs of one trial
from either side. For the *means*, it is Hotelling's T² of the per-trial mean vectors (delay,
throughput), which is more powerful against a shift and blind to shape. (T² increases with d'S⁻¹d,
where d is the difference of the sides' means and S the scatter of all trials; S is the same for all
relabellings and is inverted once.) ``p`` combines both: the smaller of the two p-values is itself a
statistic, compared with its distribution over the relabellings (Tippett's combination).

With n trials per side there are few relabellings, and swapping equal sides gives the same
statistics: p is at least 2/20 = 0.1 at 3 against 3, 2/70 = 0.029 at 4, 2/252 = 0.008 at 5 against
5.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from qbkit.metrics.envelopes.trials import Trials
from qbkit.traces.arrays import FloatArray

MOST_DEALS = 20_000
"""Most relabellings that are enumerated: 8 against 8 trials have 12,870."""
DRAWN_DEALS = 10_000
"""Relabellings drawn if there are more, including the observed one."""
DECIMALS = 9
"""Statistics equal to this many decimals are ties; further decimals are rounding errors."""


class Permutation(NamedTuple):
    """p-values of a permutation test."""

    p: float
    """Of both statistics together."""
    envelopes: float
    """Of the conformance alone."""
    means: float
    """Of Hotelling's T² alone."""


def permutation_test(trials: Trials, rng_seed: int = 0) -> Permutation:
    """p-values of the observed labels; NaN with fewer than 2 trials per side."""
    if min(trials.tests, trials.references) < 2:
        return Permutation(math.nan, math.nan, math.nan)
    both, envelopes, means = deal_p_values(trials, rng_seed)
    return Permutation(float(both[0]), float(envelopes[0]), float(means[0]))


def deal_p_values(trials: Trials, rng_seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """p (deals,) of both together, of the envelopes and of the means; the observed deal first."""
    deals = _deals(trials.tests, trials.references, rng_seed)
    envelopes = _p_values(-_across(trials.pairs, deals))
    means = _p_values(_hotelling(trials.means, deals))
    return _p_values(-np.minimum(envelopes, means)), envelopes, means


def difference_p(tests: FloatArray, references: FloatArray) -> float:
    """p of the difference between the means of one number per trial; NaN if one is unknown.

    As `permutation_test`, with that difference as the only statistic.
    """
    values = np.concatenate([tests, references])
    if not np.isfinite(values).all():
        return math.nan
    deals = _deals(len(tests), len(references), 0)
    apart = deals @ values / len(tests) - (1 - deals) @ values / len(references)
    return float(_p_values(np.abs(apart))[0])


def smallest_p(tests: int, references: int) -> float:
    """The smallest p that this many trials can give; 1 below 2 per side, where no test exists.

    With equal sides the smallest p is twice as large, because the sides can be swapped.
    """
    if min(tests, references) < 2:
        return 1.0
    return (2 if tests == references else 1) / math.comb(tests + references, tests)


def enough_trials(level: float) -> int:
    """The fewest trials per side whose smallest p is at most ``level``."""
    return next(k for k in itertools.count(2) if smallest_p(k, k) <= level)


@lru_cache(maxsize=8)
def _deals(tests: int, references: int, rng_seed: int) -> FloatArray:
    """(deals, trials): 1 if a relabelling ("deal") assigns a trial to the test; observed first."""
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
    """d'S⁻¹d of each deal, which ranks deals as Hotelling's T² does."""
    centred = means - means.mean(axis=0)
    std = centred.std(axis=0)
    centred = centred / np.where(std > 0, std, 1.0)
    tests = deals[0].sum()
    gap = deals @ centred * (1 / tests + 1 / (deals.shape[1] - tests))
    inverse = np.linalg.pinv(centred.T @ centred, rcond=1e-9, hermitian=True)
    value: FloatArray = np.einsum("ij,jk,ik->i", gap, inverse, gap)
    return value


def _p_values(statistic: FloatArray) -> FloatArray:
    """Fraction of the deals whose statistic is at least as large, for each deal."""
    statistic = np.round(statistic, DECIMALS)
    below = np.searchsorted(np.sort(statistic), statistic, side="left")
    p: FloatArray = (len(statistic) - below) / len(statistic)
    return p
