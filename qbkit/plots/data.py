"""Small tables inside charts: inline data of rounded rows, whatever number of rows there are.

Altair refuses data frames above 5,000 rows by a process-wide setting; data given inline pass
without touching it, so the charts keep themselves small instead, by binning and rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.generic] | Sequence[object]
DECIMALS = 3
"""Milliseconds to the microsecond, seconds to the millisecond, Mbit/s to the kbit/s."""


def inline(columns: Mapping[str, Column]) -> alt.InlineData:
    """Rows of equally long columns; floats are rounded, NaN and infinity become null."""
    cells = [[_cell(v) for v in np.asarray(c).tolist()] for c in columns.values()]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)]
    return alt.InlineData(values=rows)


def _cell(value: object) -> object:
    if not isinstance(value, float):
        return value
    return round(value, DECIMALS) if math.isfinite(value) else None
