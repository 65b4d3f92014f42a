"""Charts of measurements beside a paper's numbers, and of cumulative distributions."""

from __future__ import annotations

import altair as alt
import pandas as pd

from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import HConcatChart, LayerChart
from qbkit.plots.drawing.data import inline, require_columns
from qbkit.plots.drawing.pointer import legend_choice, unless_hidden

PAPER, MEASURED = "paper", "measured"
PANEL, ROW_HEIGHT = 150, 17
WIDTH, HEIGHT = 460, 280
BESIDE = "Ring: the paper. Dot: measured here."


def beside_paper_chart(
    frame: pd.DataFrame, *, metric: str, title: str, unit: str
) -> alt.HConcatChart:
    """A metric in the paper and as measured, one panel per group.

    ``frame`` has one row per cell of the paper's tables: ``group`` (the panel), ``label``, and the
    columns ``METRIC_paper`` and ``METRIC_measured``; the panels share the scale. Raises MetricError
    for a frame without these columns or without rows.
    """
    columns = [f"{metric}_{source}" for source in (PAPER, MEASURED)]
    require_columns(frame, ["group", "label", *columns], "the table has")
    low, high = frame[columns].min(axis=None), frame[columns].max(axis=None)
    margin = 0.06 * (high - low)
    scale = alt.Scale(domain=[low - margin, high + margin], nice=False, zero=False)
    panels = [
        _panel(rows, metric, unit, scale, str(group), first=not number)
        for number, (group, rows) in enumerate(frame.groupby("group", sort=False))
    ]
    width = PANEL * len(panels)
    return HConcatChart(hconcat=panels, spacing=12).properties(**heading(title, [BESIDE], width))


def _panel(
    rows: pd.DataFrame, metric: str, unit: str, scale: alt.Scale, group: str, *, first: bool
) -> alt.LayerChart:
    names = ["label", f"{metric}_{PAPER}", f"{metric}_{MEASURED}"]
    base = alt.Chart(inline(rows[names]))
    axis = alt.Axis() if first else alt.Axis(labels=False, ticks=False)
    y = alt.Y("label:N", title=None, sort=list(rows["label"]), axis=axis)
    ticks = alt.Axis(tickCount=5)
    paper, measured = (alt.X(f"{n}:Q", title=unit, scale=scale, axis=ticks) for n in names[1:])
    tooltip = [
        alt.Tooltip("label:N", title="Controller"),
        alt.Tooltip(f"{names[1]}:Q", title="Paper", format=".2f"),
        alt.Tooltip(f"{names[2]}:Q", title="Measured", format=".2f"),
    ]
    rule = base.mark_rule(color=theme.REFERENCE_COLOUR).encode(x=paper, x2=f"{names[2]}:Q", y=y)
    ring = base.mark_point(size=46, filled=False, color=theme.INK).encode(
        x=paper, y=y, tooltip=tooltip
    )
    dot = base.mark_point(size=46, filled=True, color=theme.PALETTE[0], opacity=1).encode(
        x=measured, y=y, tooltip=tooltip
    )
    return LayerChart(layer=[rule, ring, dot]).properties(
        width=PANEL, height=ROW_HEIGHT * len(rows), title=group
    )


def cumulative_chart(
    frame: pd.DataFrame,
    *,
    title: str,
    unit: str = "RTT (ms)",
    share: str = "Packets with at most that (%)",
) -> alt.LayerChart:
    """Cumulative distributions, one line per label; ``unit`` and ``share`` are titles of the axes.

    ``frame`` has one row per quantile: ``label``, ``percent`` (0 to 100) and ``value``. Raises
    MetricError for a frame without these columns or without rows.
    """
    columns = ["label", "percent", "value"]
    require_columns(frame, columns, "the table has")
    labels = [str(label) for label in dict.fromkeys(frame["label"])]
    shown = legend_choice()
    line = (
        alt.Chart(inline(frame[columns]))
        .mark_line(strokeWidth=1.8)
        .encode(
            x=alt.X("value:Q", title=unit).scale(zero=False),
            y=alt.Y("percent:Q", title=share),
            order="percent:Q",
            color=alt.Color("label:N", title=None, scale=theme.colour_scale(labels)),
            opacity=unless_hidden(shown, 1.0, 0.08),
            tooltip=[
                alt.Tooltip("label:N", title="Flow"),
                alt.Tooltip("percent:Q", title="Percent", format=".0f"),
                alt.Tooltip("value:Q", title=unit, format=".1f"),
            ],
        )
        .add_params(shown)
    )
    return LayerChart(layer=[line]).properties(width=WIDTH, height=HEIGHT, title=title)
