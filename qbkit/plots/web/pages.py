"""HTTP/3 against HTTP/2 for whole pages, after Yu and Benson, WWW '21, figures 14, 15 and 18."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from qbkit.errors import MetricError
from qbkit.metrics.web.loads import require_alike, require_table
from qbkit.metrics.web.pages import NO_LOSS, PAGE_TIMES, SETTING, TITLES, page_differences
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import Chart, LayerChart
from qbkit.plots.drawing.data import inline
from qbkit.plots.web.tiles import (
    DIFFERENCE,
    PROTOCOLS,
    difference_columns,
    difference_tips,
    protocol_colour,
    tile_colour,
    tile_numbers,
)

CELL_WIDTH, CELL_HEIGHT = 144, 34
PANEL_WIDTH, PANEL_HEIGHT = 190, 150
LABEL_LINES = 32
"""Room for the further lines of a column's name, which Vega draws towards the cells."""
TWO_LINES = alt.Header(
    labelExpr=r"split(replace(datum.label, /^([^,]*, [^,]*), /, '$1|'), '|')",
    labelLimit=PANEL_WIDTH,
)
"""Server and page above loss and RTT, no wider than a panel."""


def page_differences_chart(
    table: pd.DataFrame, *, title: str = "HTTP/3 against HTTP/2, whole pages"
) -> alt.LayerChart:
    """Heat map of the differences of medians: settings by row, a column per time.

    ``table`` is from `qbkit.metrics.page_table`. Hover over a cell for medians and bootstrap
    interval. Raises MetricError where no setting has two loads of each protocol, and for another
    table, such as that of `qbkit.metrics.page_differences`, which this computes itself.
    """
    cells = page_differences(table)
    if cells.empty:
        raise MetricError("no setting has two loads of each protocol; run more seeds")
    rows = _settings(cells)
    columns = [TITLES[name] for name in PAGE_TIMES]
    data = {
        "row": rows,
        "column": [TITLES[name] for name in cells["time"]],
        **difference_columns(cells),
    }
    base = alt.Chart(inline(data)).encode(
        x=alt.X(
            "column:N",
            sort=columns,
            title=None,
            axis=alt.Axis(
                orient="top",
                labelAngle=0,
                labelLimit=CELL_WIDTH,
                labelExpr="split(datum.label, ' ')",
                labelPadding=LABEL_LINES,
            ),
        ),
        y=alt.Y("row:N", sort=list(dict.fromkeys(rows)), title=None, axis=alt.Axis(labelLimit=380)),
    )
    tiles = base.mark_rect(stroke=theme.GRID).encode(color=tile_colour(), tooltip=difference_tips())
    return LayerChart(layer=[tiles, tile_numbers(base)]).properties(
        width=CELL_WIDTH * len(columns),
        height=CELL_HEIGHT * len(set(rows)),
        **heading(title, DIFFERENCE, CELL_WIDTH * len(columns)),
    )


def page_times_chart(table: pd.DataFrame, *, columns: int = 3) -> alt.Chart:
    """Cumulative distribution over all loads of each setting and protocol; a menu chooses the time.

    ``table`` is from `qbkit.metrics.page_table`; MetricError as `qbkit.metrics.page_differences`.
    """
    keys = [*SETTING, "protocol"]
    require_table(table, [*keys, "seed", *PAGE_TIMES], "page_table")
    require_alike(table, SETTING)
    table, parts = table.assign(setting=_settings(table)), []
    for name in PAGE_TIMES:
        known = table[np.isfinite(table[name])]
        share = known.groupby(keys)[name].rank(method="first", pct=True)
        given = {"what": TITLES[name], "time": known[name], "share": share}
        parts.append(known[["protocol", "seed", "setting"]].assign(**given))
    frame = pd.concat(parts)
    menu = alt.binding_select(options=list(TITLES.values()), name="Time ")
    what = alt.param(name="page_time", value=TITLES[PAGE_TIMES[0]], bind=menu)
    return (
        Chart(inline(frame), title="Share of the loads that are as fast")
        .mark_line(interpolate="step-after", point=alt.OverlayMarkDef(size=18))
        .encode(
            x=alt.X(
                "time:Q", title="Time since the navigation (s)", axis=alt.Axis(tickCount=4)
            ).scale(zero=False),
            y=alt.Y("share:Q", title=None, axis=alt.Axis(format="%")).scale(domain=[0, 1]),
            color=protocol_colour(),
            strokeDash=alt.StrokeDash("protocol:N", sort=list(PROTOCOLS), legend=None),
            facet=alt.Facet(
                "setting:N",
                sort=list(dict.fromkeys(frame["setting"])),
                columns=columns,
                title=None,
                header=TWO_LINES,
            ),
            tooltip=["what:N", "protocol:N", "seed:Q", alt.Tooltip("time:Q", title="Time (s)")],
        )
        .transform_filter("datum.what == page_time")
        .add_params(what)
        .properties(width=PANEL_WIDTH, height=PANEL_HEIGHT)
        .resolve_scale(x="independent")
    )


def main_image_chart(table: pd.DataFrame, *, columns: int = 3) -> alt.Chart:
    """When the main image is asked for and when it is there, by protocol (figure 15).

    ``table`` is from `qbkit.metrics.page_table`. A triangle is a load's request, a dot its last
    byte. Raises MetricError as `qbkit.metrics.page_differences`.
    """
    require_table(table, [*SETTING, "protocol", "seed", "main_start_s", "main_end_s"], "page_table")
    require_alike(table, SETTING)
    known = table[np.isfinite(table["main_end_s"])]
    parts = [
        {
            "setting": setting,
            "protocol": row.protocol,
            "what": what,
            "time": getattr(row, f"main_{what}_s"),
            "seed": row.seed,
        }
        for setting, row in zip(_settings(known), known.itertuples(), strict=True)
        for what in ("start", "end")
    ]
    frame = pd.DataFrame(parts)
    order = list(dict.fromkeys(frame["setting"]))
    return (
        Chart(inline(frame), title="The main image: request and last byte")
        .mark_point(size=28, filled=True, opacity=0.7)
        .encode(
            x=alt.X("time:Q", title="Time since the navigation (s)"),
            y=alt.Y("protocol:N", sort=list(PROTOCOLS), title=None),
            color=protocol_colour(),
            shape=alt.Shape("what:N", sort=["start", "end"], title=None).scale(
                domain=["start", "end"], range=["triangle-right", "circle"]
            ),
            facet=alt.Facet("setting:N", sort=order, columns=columns, title=None, header=TWO_LINES),
            tooltip=["protocol:N", "what:N", "seed:Q", alt.Tooltip("time:Q", title="Time (s)")],
        )
        .properties(width=PANEL_WIDTH, height=60)
        .resolve_scale(x="independent")
    )


def _settings(table: pd.DataFrame) -> list[str]:
    """The setting of each row in words; of several clients, with the client."""
    several = table["client"].nunique() > 1
    return [
        f"{row.server}, {row.page}, {'no loss' if row.loss == NO_LOSS else row.loss}, "
        f"{row.rtt_ms:g} ms{f', {row.client}' if several else ''}"
        for row in table.itertuples()
    ]
