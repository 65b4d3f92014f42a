"""A cell of a conformance map, and its envelopes, which a click on it opens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from qbkit.metrics.envelopes.envelope import Envelope
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.charts import LayerChart
from qbkit.plots.drawing.data import inline, long_table
from qbkit.plots.envelopes.plane import TOOLTIP, X, Y, coordinates, corners, thinned

DETAIL_WIDTH, DETAIL_HEIGHT = 310, 270
TEST_COLOUR = theme.PALETTE[1]


@dataclass(frozen=True)
class MapCell:
    """One implementation in one setting."""

    row: str
    values: tuple[Any, ...]
    setting: str
    test: Envelope
    reference: Envelope
    figures: dict[str, float]
    settles: bool


def detail_chart(cells: Sequence[MapCell], chosen: alt.Parameter) -> alt.LayerChart:
    """Points and hulls of the chosen cell over its reference in grey, with its name on top."""
    colour = alt.Color("side:N", legend=alt.Legend(orient="bottom")).scale(
        domain=["test", "reference"], range=[TEST_COLOUR, theme.REFERENCE_COLOUR]
    )
    points = (
        alt.Chart(_points(cells))
        .transform_filter(chosen)
        .mark_circle(size=16, opacity=0.5)
        .encode(x=X, y=Y, color=colour, tooltip=[alt.Tooltip("side:N", title="Side"), *TOOLTIP])
    )
    base = alt.Chart(_hulls(cells)).transform_filter(chosen)
    hulls = base.encode(x=X, y=Y, color=colour, detail="hull:N", order="corner:Q")
    name = _caption(cells, chosen)
    return LayerChart(
        layer=[
            hulls.mark_line(filled=True, stroke=None, fillOpacity=0.12),
            hulls.mark_line(strokeWidth=1.8),
            points,
            name,
        ]
    ).properties(width=DETAIL_WIDTH, height=DETAIL_HEIGHT)


def _caption(cells: Sequence[MapCell], chosen: alt.Parameter) -> alt.Chart:
    words = [f"{c.row}, {c.setting}" for c in cells]
    columns = {"row": [c.row for c in cells], "setting": [c.setting for c in cells], "words": words}
    return (
        alt.Chart(inline(columns))
        .transform_filter(chosen)
        .mark_text(align="left", baseline="bottom", fontSize=12, fontWeight=600, color=theme.INK)
        .encode(x=alt.value(0), y=alt.value(-8), text="words:N")
    )


def _sides(cell: MapCell) -> Iterator[tuple[dict[str, str], Envelope]]:
    """Both envelopes of a cell, each with what all rows of a table say of it."""
    for side, envelope in (("reference", cell.reference), ("test", cell.test)):
        yield {"row": cell.row, "setting": cell.setting, "side": side}, envelope


def _points(cells: Sequence[MapCell]) -> alt.InlineData:
    """Table of every n-th operating point, so that a map of hundreds of cells stays small."""
    return inline(
        long_table(
            (where, coordinates(thinned(e.points))) for cell in cells for where, e in _sides(cell)
        )
    )


def _hulls(cells: Sequence[MapCell]) -> alt.InlineData:
    """Table of the corners of each hull, closed by the first corner."""
    return inline(
        long_table(
            ({**where, "hull": f"{where['side']} {number}"}, corners(hull))
            for cell in cells
            for where, e in _sides(cell)
            for number, hull in enumerate(e.hulls)
        )
    )
