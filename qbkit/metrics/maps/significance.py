"""Claims that a map of many cells supports: false discovery rates, and tests over all settings.

Each cell has an exact permutation p-value (`qbkit.metrics.verdicts.permutation`). Of a hundred
cells, five are below 0.05 by chance, so the cells of one map are judged together: q is the p-value
adjusted by Benjamini and Hochberg (1995), and at most 5 % of the cells with q ≤ 0.05 are expected
to be false. Their procedure is valid under positive dependence (Benjamini and Yekutieli 2001),
which a map has: cells of one setting share their reference trials, so an unusual reference makes
all their p-values small together (many treatments against one control). Different settings are
separate runs. The correction of 2001 for any dependence would cost a factor of 5 at 88 cells and
protect against a negative dependence, for which a map has no source.

With few seeds, p-values cannot be small: the smallest is 0.1 at 3 against 3 trials. No single cell
can then be claimed to differ, however far apart its sides are. A claim about an implementation over
all its settings is still possible. Fisher's sum of -log p over the settings is compared with its
distribution when trials are relabelled within each setting, and there are many such relabellings
(10 different p-values in each of 8 settings). The claim is that the implementation differs in some
setting; it does not say in which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr

from qbkit.metrics.verdicts.permutation import enough_trials, smallest_p
from qbkit.traces.arrays import FloatArray

DRAWS = 10_000
"""Relabellings of all settings of an implementation, including the observed one."""
LEVEL = 0.05


def false_discovery(p_values: FloatArray) -> FloatArray:
    """q-values (Benjamini and Hochberg) of p-values of any shape; NaN is ignored and stays NaN."""
    from scipy import stats  # SciPy takes 0.3 s to load

    q_values = np.full(p_values.shape, np.nan)
    known = np.isfinite(p_values)
    if known.any():
        q_values[known] = stats.false_discovery_control(p_values[known], method="bh")
    return q_values


def p_over_settings(settings: Sequence[FloatArray]) -> float:
    """p of the observed labels in all settings together; NaN without a setting.

    ``settings`` has, for each setting, the p-values (deals,) of all deals, the observed one first.
    """
    if not settings:
        return math.nan
    rng = np.random.default_rng(0)
    observed = sum(math.log(p[0]) for p in settings)
    drawn = np.sum([np.log(p[rng.integers(0, len(p), DRAWS - 1)]) for p in settings], axis=0)
    return float(1 + np.sum(drawn <= observed + 1e-9)) / DRAWS


def map_sentence(found: xr.Dataset, level: float = LEVEL) -> str:
    """What a conformance map may claim at its number of trials, in two sentences."""
    if not found["trials"].notnull().any():
        return f"No cell has runs of both sides, {found.attrs['reference']} and another: run them."
    tests, references = (int(found[name].max()) for name in ("trials", "reference_trials"))
    cells = int(found.p_value.notnull().sum())
    least = smallest_p(tests, references)
    if not cells:
        return "One trial per side: noise could explain any cell. Give at least 2 seeds."
    if least > level:
        cell = (
            f"Too few seeds for a claim on any single cell: at {tests} against {references} trials "
            f"p is at least {least:.2g} ({enough_trials(level)} of each are needed)."
        )
    else:
        cell = (
            f"{int((found.q_value <= level).sum())} of {cells} cells differ (false discovery rate "
            f"{100 * level:g} %; at {tests} against {references} trials, at least "
            f"{math.ceil(cells * least / level)} must differ for a claim)."
        )
    rows = found.q_value_over_settings
    return (
        f"{cell} Over all settings together, {int((rows <= level).sum())} of "
        f"{int(rows.notnull().sum())} implementations differ from {found.attrs['reference']} "
        f"(false discovery rate {100 * level:g} %)."
    )
