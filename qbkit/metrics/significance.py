"""What a map of many cells may claim: false discoveries, and rows where cells are too small.

Each cell has an exact permutation p-value (`qbkit.metrics.permutation`). Of a hundred cells five
are below 0.05 by chance, so the cells of one map are judged together: q is the p-value adjusted by
Benjamini and Hochberg (1995), and of the cells with q ≤ 0.05 at most 5 % are expected to be false.
Their procedure is valid under positive dependence (Benjamini and Yekutieli 2001), and that is what
a map has: cells of one setting share their reference trials, so an odd reference makes all their
p-values small together, the case of many treatments against one control; settings are run apart.
The correction of 2001 for any dependence would cost a factor of 5 at 88 cells and guard against a
negative dependence that a map has no source of.

Few seeds. A p-value cannot be smaller than one over the number of deals: 0.1 at 3 against 3 trials.
Then no cell can be claimed, however far apart its sides lie. An implementation still can be, over
all its settings together: Fisher's sum of -log p over the settings is judged against its
distribution when the names are dealt within each setting, of which there are many (10 different p's
in each of 8 settings). That says that it differs in some setting, and not in which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr

from qbkit.metrics.permutation import enough_trials, smallest_p
from qbkit.traces.arrays import FloatArray

DRAWS = 10_000
"""Deals of all settings of an implementation, the observed one included."""
LEVEL = 0.05


def false_discovery(p_values: FloatArray) -> FloatArray:
    """q-values (Benjamini and Hochberg) of p-values of any shape; NaN are no tests and stay NaN."""
    from scipy import stats  # SciPy takes 0.3 s to load: no run waits for it

    q_values = np.full(p_values.shape, np.nan)
    known = np.isfinite(p_values)
    if known.any():
        q_values[known] = stats.false_discovery_control(p_values[known], method="bh")
    return q_values


def p_over_settings(settings: Sequence[FloatArray], rng_seed: int = 0) -> float:
    """p of the observed names in all settings together; NaN without a setting.

    Of each setting: the p-values (deals,) of all deals, the observed one first.
    """
    if not settings:
        return math.nan
    rng = np.random.default_rng(rng_seed)
    observed = sum(math.log(p[0]) for p in settings)
    drawn = np.sum([np.log(p[rng.integers(0, len(p), DRAWS - 1)]) for p in settings], axis=0)
    return float(1 + np.sum(drawn <= observed + 1e-9)) / DRAWS


def map_sentence(found: xr.Dataset, level: float = LEVEL) -> str:
    """What a conformance map may claim at its number of trials, in two sentences."""
    tests, references = (int(found[name].max()) for name in ("trials", "reference_trials"))
    cells = int(found.p_value.notnull().sum())
    least = smallest_p(tests, references)
    if not cells:
        return "One trial a side: no cell can be told from noise. Give at least 2 seeds."
    if least > level:
        cell = (
            f"Too few seeds for a claim on any single cell: at {tests} against {references} trials "
            f"p is at least {least:.2g} ({enough_trials(level)} of each are the least)."
        )
    else:
        cell = (
            f"{int((found.q_value <= level).sum())} of {cells} cells differ (false discovery rate "
            f"{100 * level:g} %; at {tests} against {references} trials at least "
            f"{math.ceil(cells * least / level)} must differ for any to be claimed)."
        )
    rows = found.q_value_over_settings
    return (
        f"{cell} Over all settings together {int((rows <= level).sum())} of "
        f"{int(rows.notnull().sum())} implementations differ from {found.attrs['reference']} "
        f"(false discovery rate {100 * level:g} %)."
    )
