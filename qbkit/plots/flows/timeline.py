"""Throughput, queueing delay and congestion window over time, linked by one brush."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import altair as alt
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows.lookup import flow_labels
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import wrapped
from qbkit.plots.drawing.charts import VConcatChart
from qbkit.plots.drawing.data import inline
from qbkit.plots.drawing.hover import hover
from qbkit.plots.envelopes.envelope import legend_choice
from qbkit.plots.flows.series import Series, bins_per_row, rows_of

WIDTH, PANEL_HEIGHT, MEANS_WIDTH = 560, 118, 62
ALL_TRIALS = "all"
MAX_MEANS = 7
"""Most flows whose means fit beside a panel, one below the other."""
BRUSH_HINT = "Drag over a span of time to mark it and to see its means; double-click to clear."
MEANS_TITLE = alt.TitleParams(
    "mean over time",
    fontSize=11,
    fontWeight="normal",
    color=theme.QUIET_INK,
    offset=2,
    anchor="start",
)
PANELS = {
    "throughput_mbps": ("Throughput (Mbit/s)", ".2f"),
    "queue_delay_ms": ("Queueing delay (ms)", ".1f"),
    "cwnd_kb": ("Cong. window (kB)", ".1f"),
}
"""Axis title and number format of each panel."""


def timeline_chart(ds: xr.Dataset, *, title: str = "Timeline") -> alt.VConcatChart:
    """Linked panels of throughput, queueing delay and (if reported) cwnd of each flow of a run.

    A drag marks a span of time in all panels and shows its means at the right; a click on the
    legend shows one flow alone. Series are averaged to at most 600 rows per flow; the subtitle
    says over how many seconds. Raises MetricError for a run without flows.
    """
    series = [Series(label, ds, i, "1") for i, label in enumerate(flow_labels(ds))]
    subtitle = wrapped([averaging(series), BRUSH_HINT], WIDTH)
    return timeline_panels(series).properties(title=alt.TitleParams(title, subtitle=subtitle))


def timeline_panels(
    series: Sequence[Series],
    *,
    reference: str | None = None,
    width: int = WIDTH,
    height: int = PANEL_HEIGHT,
) -> alt.VConcatChart:
    """Panels of the series; with several trials, a list to choose one or all of them."""
    if not series:
        raise MetricError("there is no flow to draw; give at least one run with a flow")
    labels = list(dict.fromkeys(s.label for s in series))
    scale = theme.colour_scale(labels, reference)
    rows = rows_of(series)
    names = [name for name in PANELS if name in rows]
    data = inline(rows)
    span = span_brush()
    end_s = max(float(s.ds.attrs["duration_s"]) for s in series)
    time = alt.Scale(domain=[0, end_s], nice=False)
    shown = legend_choice()
    chosen = trial_choice(series)
    strength = 0.9 if chosen is None else 0.6  # Lines of many trials overlap.
    panels: list[Any] = [
        _panel(data, name, time, scale, span, shown, strength, last=name == names[-1]).properties(
            width=width, height=height
        )
        for name in names
    ]
    if chosen is not None:
        panels = [p.transform_filter(trial_is_chosen(chosen)) for p in panels]
    if len(labels) <= MAX_MEANS:
        means = [_means(data, name, scale, span, chosen, height) for name in names]
        panels = _beside(panels, means)
    with one_brush():
        chart = VConcatChart(vconcat=panels, spacing=10)
    return chart if chosen is None else chart.add_params(chosen)


@contextmanager
def one_brush() -> Iterator[None]:
    """Suppress Altair's warning about charts that share a brush, which is intended here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Automatically deduplicated", UserWarning)
        yield


def averaging(series: Sequence[Series]) -> str:
    """Sentence about how `timeline_panels` averages the series."""
    bins_s = sorted({float(s.ds.attrs["bin_s"]) for s in series})
    factor = bins_per_row(series)
    width = " or ".join(f"{bin_s * factor:.3g}" for bin_s in bins_s)
    if factor == 1:
        return f"Series in bins of {width} s."
    return f"Series averaged over {width} s ({factor} bins of the run each)."


def span_brush() -> alt.Parameter:
    """The brush over time; its mark is invisible because the panels draw the span themselves."""
    mark = alt.BrushConfig(fill="white", fillOpacity=0.0, strokeOpacity=0.0)
    return alt.selection_interval(encodings=["x"], name="span", mark=mark)


def trial_choice(series: Sequence[Series]) -> alt.Parameter | None:
    """List to choose a trial from; None for a single trial."""
    trials = list(dict.fromkeys(s.trial for s in series))
    if len(trials) < 2:
        return None
    options = alt.binding_select(options=[ALL_TRIALS, *trials], name="Trial ")
    return alt.param(name="trial", value=ALL_TRIALS, bind=options)


def trial_is_chosen(chosen: alt.Parameter) -> str:
    """Vega expression that is true if the row's trial is chosen, or all trials are."""
    return f"{chosen.name} === '{ALL_TRIALS}' || datum.trial === {chosen.name}"


def _panel(
    data: alt.InlineData,
    name: str,
    time: alt.Scale,
    scale: alt.Scale,
    span: alt.Parameter,
    shown: alt.Parameter,
    strength: float,
    *,
    last: bool,
) -> alt.LayerChart:
    x_axis = alt.Axis(title="Time (s)") if last else alt.Axis(labels=False, ticks=False, title=None)
    marked = (
        alt.Chart(data)
        .transform_filter({"param": "span", "empty": False})
        .transform_aggregate(from_s="min(time_s)", to_s="max(time_s)")
        .mark_rect(color="#9AA5B1", opacity=0.22)
        .encode(x="from_s:Q", x2="to_s:Q")
    )
    lines = (
        alt.Chart(data)
        .mark_line()
        .encode(
            x=alt.X("time_s:Q", axis=x_axis, scale=time),
            y=alt.Y(f"{name}:Q", title=PANELS[name][0]).axis(tickCount=4, titleLimit=200),
            color=alt.Color("label:N", scale=scale),
            detail="trial:N",
            strokeOpacity=alt.when(shown).then(alt.value(strength)).otherwise(alt.value(0.06)),
        )
        .add_params(span, shown)
    )
    tooltip = [
        alt.Tooltip("label:N", title="Flow"),
        alt.Tooltip("trial:N", title="Trial"),
        alt.Tooltip("time_s:Q", title="Time (s)", format=".2f"),
        alt.Tooltip(f"{name}:Q", title=PANELS[name][0], format=PANELS[name][1]),
    ]
    return alt.LayerChart(layer=[marked, lines, hover(lines, tooltip)])


def _beside(panels: Sequence[alt.LayerChart], means: Sequence[alt.Chart]) -> list[Any]:
    """Each panel with its means at the right; the first panel has their title."""
    titled = [means[0].properties(title=MEANS_TITLE), *means[1:]]
    pairs = zip(panels, titled, strict=True)
    return [alt.hconcat(*pair, spacing=10, bounds="flush") for pair in pairs]


def _means(
    data: alt.InlineData,
    name: str,
    scale: alt.Scale,
    span: alt.Parameter,
    chosen: alt.Parameter | None,
    height: int,
) -> alt.Chart:
    """Mean of each flow over the marked span (by default over all time), in its colour."""
    chart = alt.Chart(data)
    if chosen is not None:
        chart = chart.transform_filter(trial_is_chosen(chosen))
    return (
        chart.transform_filter(span)
        .mark_text(align="left", fontSize=11.5, fontWeight=600)
        .encode(
            x=alt.value(2),
            y=alt.Y("label:N", axis=None, sort=None).scale(domain=scale.domain),
            text=alt.Text(f"mean({name}):Q", format=PANELS[name][1]),
            color=alt.Color("label:N", scale=scale),
        )
        .properties(width=MEANS_WIDTH, height=height)
    )
