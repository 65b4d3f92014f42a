"""Small tables inside charts: inline CSV with rounded numbers.

A process-wide setting makes Altair refuse data frames above 5,000 rows. The limit does not apply to
inline data, and charts stay small by binning and rounding instead. CSV takes a third of the size of
JSON rows, and Altair does not validate and copy each cell (with ten trials that took seconds).
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence

import altair as alt
import numpy as np
import numpy.typing as npt
import pandas as pd

from qbkit.errors import MetricError

Column = npt.NDArray[np.generic] | Sequence[object]
DECIMALS = 3
"""Milliseconds to the microsecond, seconds to the millisecond, Mbit/s to the kbit/s."""
PRINTED = 9
"""Decimals of numbers that a chart prints: rounded to three first, 0.1949 would be printed .20."""


def inline(
    columns: Mapping[str, Column] | pd.DataFrame, decimals: int = DECIMALS
) -> alt.InlineData:
    """Inline data of equally long columns; floats are rounded, NaN and infinity become null."""
    cells = {str(name): np.asarray(values).tolist() for name, values in columns.items()}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(cells)
    writer.writerows(zip(*([_cell(v, decimals) for v in c] for c in cells.values()), strict=True))
    parse = {name: kind for name, values in cells.items() if (kind := _kind(values))}
    form = {"type": "csv", "parse": parse}
    return alt.InlineData(values=text.getvalue(), format=alt.DataFormat(**form))


def long_table(
    parts: Iterable[tuple[Mapping[str, object], Mapping[str, Column]]],
) -> dict[str, list[object]]:
    """Columns of parts below each other: what all rows of a part share, and its own columns."""
    columns: dict[str, list[object]] = {}
    for shared, own in parts:
        lists = {name: np.asarray(values).tolist() for name, values in own.items()}
        count = len(next(iter(lists.values())))
        for name, values in {**{k: [v] * count for k, v in shared.items()}, **lists}.items():
            columns.setdefault(name, []).extend(values)
    return columns


def require_columns(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    """Raise MetricError for a table that lacks columns or rows; ``what`` is "the table has"."""
    missing = [name for name in columns if name not in frame]
    if missing or not len(frame):
        lack = f"no column {', '.join(missing)}" if missing else "no rows"
        raise MetricError(f"{what} {lack}; give {', '.join(columns)}")


def _cell(value: object, decimals: int) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, float):
        return value
    return f"{value:.{decimals}f}".rstrip("0").rstrip(".") if math.isfinite(value) else ""


def _kind(values: Sequence[object]) -> str | None:
    """Type that Vega parses a column to; None for texts."""
    if not values or isinstance(values[0], str):
        return None
    return "boolean" if isinstance(values[0], bool) else "number"
