"""Small tables inside charts: inline CSV of rounded rows, whatever number of rows there are.

Altair refuses data frames above 5,000 rows by a process-wide setting; data given inline pass
without touching it, so the charts keep themselves small instead, by binning and rounding. As CSV
they are a third of the size of JSON rows, and Altair neither validates nor copies each cell (with
ten trials that took seconds).
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.generic] | Sequence[object]
DECIMALS = 3
"""Milliseconds to the microsecond, seconds to the millisecond, Mbit/s to the kbit/s."""


def inline(columns: Mapping[str, Column]) -> alt.InlineData:
    """Rows of equally long columns; floats are rounded, NaN and infinity become empty (null)."""
    cells = {name: np.asarray(values).tolist() for name, values in columns.items()}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(cells)
    writer.writerows(zip(*([_cell(v) for v in c] for c in cells.values()), strict=True))
    parse = {name: kind for name, values in cells.items() if (kind := _kind(values))}
    form = {"type": "csv", "parse": parse}
    return alt.InlineData(values=text.getvalue(), format=alt.DataFormat(**form))


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, float):
        return value
    return f"{value:.{DECIMALS}f}".rstrip("0").rstrip(".") if math.isfinite(value) else ""


def _kind(values: Sequence[object]) -> str | None:
    """How Vega reads a column; texts are left as they are."""
    if not values or isinstance(values[0], str):
        return None
    return "boolean" if isinstance(values[0], bool) else "number"
