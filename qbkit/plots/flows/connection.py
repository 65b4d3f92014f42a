"""Shared parts of the charts of connections over time: time axis, colours by label, brush.

A chart function makes a `Frame` of its connections and `Panel`s in it; `stacked` puts the panels
below each other. Any panels can be combined, and a span brushed in one is marked in all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows.over_time import time_span_s
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import LayerChart, VConcatChart
from qbkit.plots.drawing.data import inline, long_table
from qbkit.plots.drawing.pointer import (
    HINT,
    legend_choice,
    marked_span,
    one_brush,
    pointed_times,
    pointer_rule,
    span_brush,
    unless_hidden,
)
from qbkit.plots.flows import timeline as tl
from qbkit.traces.arrays import FloatArray, IntArray

Events = Mapping[str, xr.Dataset]
WIDTH, READOUT_WIDTH = tl.WIDTH, 74
MAX_ROWS = 4000
"""Most rows of the lines of a panel."""
READOUT_ROWS = 500
"""Rows from which a panel's readouts are computed."""
MAX_DOTS = 400
"""Most points of a connection that are drawn as a dot each."""
OWN_SCALES: dict[str, Any] = dict.fromkeys(
    ("strokeDash", "strokeWidth", "shape", "fill", "size"), "independent"
)
"""Channels whose meaning differs between panels; colour is the label in all of them."""


@dataclass(frozen=True)
class Readout:
    """Numbers of the brushed span at the right of a panel, one per label.

    ``op`` is an aggregate of Vega-Lite, or ``range``: the largest value minus the smallest.
    """

    heading: str
    data: alt.InlineData
    field: str
    op: str
    format: str


@dataclass(frozen=True)
class Panel:
    """One panel: its layers, drawn on a given time axis."""

    draw: Callable[[alt.X], Sequence[alt.Chart]]
    height: int
    readout: Readout | None = None
    notes: Sequence[str] = ()


class Frame:
    """Connections drawn together: their colours, time axis, brush and legend."""

    def __init__(
        self,
        connections: Events,
        reference: str | None = None,
        rows: int = MAX_ROWS,
        span_s: tuple[float, float] | None = None,
    ) -> None:
        if not connections:
            raise MetricError("there is no connection to draw; give at least one by its label")
        self.labels, self.reference = list(connections), reference
        self.rows = rows
        self.scale = theme.colour_scale(self.labels, reference)
        if span_s is None:
            spans = [time_span_s(events) for events in connections.values()]
            span_s = min(0.0, *(span[0] for span in spans)), max(span[1] for span in spans)
        self.start_s, self.end_s = span_s
        self.brush, self.shown = span_brush(), legend_choice()

    @property
    def colour(self) -> alt.Color:
        """Colour by label, with its legend on top."""
        return alt.Color("label:N", scale=self.scale)

    def unless_hidden(self, opacity: float) -> Any:
        """Opacity of a label; lower while another label is chosen in the legend."""
        return unless_hidden(self.shown, opacity, 0.05)

    def grid_s(self) -> FloatArray:
        """Evenly spaced times over the whole axis, at which readouts are sampled."""
        count = max(60, READOUT_ROWS // len(self.labels))
        return np.linspace(self.start_s, self.end_s, count)

    def x(self, *, last: bool) -> alt.X:
        """The shared time axis; only the last panel shows its labels."""
        axis = alt.Axis(title="Time (s)") if last else alt.Axis(labels=False, ticks=False, title="")
        domain = alt.Scale(domain=[self.start_s, self.end_s], nice=False)
        return alt.X("time_s:Q", axis=axis, scale=domain)


def stacked(
    frame: Frame,
    panels: Sequence[Panel],
    title: str,
    sentences: Sequence[str],
    first: Sequence[str] = (),
) -> alt.VConcatChart:
    """The panels below each other, on one time axis, with one brush.

    ``first`` stands before what the chart can do, and the ``sentences`` after it.
    """
    rows = [_row(frame, i, panel, last=panel is panels[-1]) for i, panel in enumerate(panels)]
    notes = dict.fromkeys(note for panel in panels for note in panel.notes)
    words = heading(title, [*first, HINT, *notes, *sentences], WIDTH + READOUT_WIDTH)
    with one_brush():
        chart = VConcatChart(vconcat=rows, spacing=12).resolve_scale(**OWN_SCALES)
    return chart.properties(**words)


def reporting(
    connections: Events, has: Callable[[xr.Dataset], bool], what: str
) -> tuple[dict[str, xr.Dataset], list[str]]:
    """The connections whose log reports ``what``, and a sentence that names the others.

    Raises MetricError if there is none.
    """
    shown = {label: events for label, events in connections.items() if has(events)}
    missing = ", ".join(label for label in connections if label not in shown)
    if not shown:
        raise MetricError(f"the log of {missing} reports no {what}; choose another")
    return shown, [f"Not reported: {what} of {missing}."] if missing else []


def computes(compute: Callable[[xr.Dataset], Any], events: xr.Dataset) -> bool:
    """Whether the log reports what a metric of `qbkit.metrics.flows.over_time` needs."""
    try:
        compute(events)
    except MetricError:
        return False
    return True


def thinned(values: FloatArray, rows: int) -> IntArray:
    """Indices of at most about ``rows`` points of a line, including its extremes.

    The line is divided into ``rows`` / 4 stretches. Each keeps its first, smallest, largest and
    last point.
    """
    if len(values) <= rows:
        return np.arange(len(values))
    kept = []
    for stretch in np.array_split(np.arange(len(values)), max(1, rows // 4)):
        part = values[stretch]
        low, high = np.argmin(part), np.argmax(part)
        kept += [stretch[0], stretch[low], stretch[high], stretch[-1]]
    return np.unique(np.array(kept))


def averaged(values: FloatArray, rows: int) -> FloatArray:
    """Means of at most ``rows`` stretches of as many values each; the last one may be shorter.

    Unlike that of `thinned` values, which are the extremes, their mean is that of the values.
    """
    size = max(1, -(-len(values) // rows))
    starts = np.arange(0, len(values), size)
    means: FloatArray = np.add.reduceat(values, starts) / np.diff(np.append(starts, len(values)))
    return means


def table(*parts: Mapping[str, Mapping[str, Any]]) -> alt.InlineData:
    """One inline table of columns by label; all parts have the same columns."""
    items = (item for part in parts for item in part.items())
    return inline(long_table(({"label": label}, values) for label, values in items))


def at_time(field: str, title: str, number: str, **names: str) -> list[alt.Tooltip]:
    """Tooltip of a point of a line: its connection, its time, further names, and its value."""
    return [
        alt.Tooltip("label:N", title="Connection"),
        alt.Tooltip("time_s:Q", title="Time (s)", format=".3f"),
        *(alt.Tooltip(f"{name}:N", title=words) for name, words in names.items()),
        alt.Tooltip(f"{field}:Q", title=title, format=number),
    ]


def line_kinds(dashes: Mapping[str, Sequence[float]]) -> alt.StrokeDash:
    """Dash pattern by the field ``kind``, with a legend that shows it."""
    scale = alt.Scale(domain=list(dashes), range=[list(dash) for dash in dashes.values()])
    legend = alt.Legend(symbolType="M-2.2,0H2.2", symbolStrokeWidth=1.5, labelOffset=10)
    return alt.StrokeDash("kind:N", scale=scale, legend=legend)


def _row(frame: Frame, number: int, panel: Panel, *, last: bool) -> Any:
    x, span_s = frame.x(last=last), (frame.start_s, frame.end_s)
    times = pointed_times(f"panel{number}", x, frame.colour, span_s, frame.shown)
    *lower, top = panel.draw(x)
    layers = [times, marked_span(), *lower, pointer_rule(), top]
    chart = LayerChart(layer=layers).properties(width=WIDTH, height=panel.height)
    if panel.readout is None or len(frame.labels) > tl.MAX_MEANS:
        return chart
    beside = _readout(frame, panel.readout).properties(height=panel.height)
    return alt.hconcat(chart, beside, spacing=10, bounds="flush")


def _readout(frame: Frame, readout: Readout) -> alt.LayerChart:
    chart = alt.Chart(readout.data).transform_filter(frame.brush)
    if readout.op == "range":
        chart = chart.transform_aggregate(
            least=f"min({readout.field})", most=f"max({readout.field})", groupby=["label"]
        ).transform_calculate(value="datum.most - datum.least")
    else:
        chart = chart.transform_aggregate(value=f"{readout.op}({readout.field})", groupby=["label"])
    numbers = chart.mark_text(align="left", fontSize=11.5, fontWeight=600).encode(
        x=alt.value(2),
        y=alt.Y("label:N", axis=None, sort=None).scale(domain=frame.scale.domain),
        text=alt.Text("value:Q", format=readout.format),
        color=frame.colour,
    )
    heading = (
        alt.Chart(alt.InlineData(values=[{}]))
        .mark_text(align="left", baseline="bottom", fontSize=10, color=theme.QUIET_INK)
        .encode(x=alt.value(0), y=alt.value(2), text=alt.value(readout.heading))
    )
    return LayerChart(layer=[numbers, heading]).properties(width=READOUT_WIDTH)
