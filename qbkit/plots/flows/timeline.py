"""Throughput, queueing delay and congestion window over time, linked by one brush."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows.lookup import flow_labels
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import LayerChart, VConcatChart
from qbkit.plots.drawing.data import inline
from qbkit.plots.drawing.pointer import (
    HINT,
    hover,
    legend_choice,
    marked_span,
    one_brush,
    pointed_times,
    pointer_rule,
    unless_hidden,
)
from qbkit.plots.flows.levels import (
    Level,
    capacity_layers,
    common_capacity,
    common_delays,
    common_levels,
    delay_layers,
    level_layers,
)
from qbkit.plots.flows.series import (
    Series,
    active_parts,
    bins_per_row,
    largest,
    rows_of,
    series_names,
)

WIDTH, PANEL_HEIGHT, MEANS_WIDTH = 560, 118, 62
ALL_TRIALS = "all"
MAX_MEANS = 7
"""Most flows whose means fit beside a panel, one below the other."""
MAX_LOGGED = 3
"""Most series of controllers that are drawn unasked."""
MEANS_TITLE = alt.TitleParams(
    "mean over time",
    fontSize=11,
    fontWeight="normal",
    color=theme.QUIET_INK,
    offset=2,
    anchor="start",
)
ACTIVE = "active"
"""Column of the part of each row's time in which the flow was active."""
COUNTED = ("throughput_mbps", "goodput_mbps")
"""Series of what came through in each bin: 0 while the flow is not active."""
PANELS = {
    "throughput_mbps": ("Throughput (Mbit/s)", ".2f"),
    "queue_delay_ms": ("Queueing delay (ms)", ".1f"),
    "cwnd_kb": ("Cong. window (kB)", ".1f"),
}
"""Axis title and number format of each panel."""


def timeline_chart(
    ds: xr.Dataset,
    *,
    reference: str | None = None,
    also: Sequence[str] | None = None,
    title: str = "Timeline",
) -> alt.VConcatChart:
    """Linked panels of throughput, queueing delay and (if reported) cwnd of each flow of a run.

    ``also`` names further series of the run, such as ``srtt_ms``, for a panel each; by default
    they are the first three that a controller in Python logs. Dashed lines are the link's capacity,
    the fair share and the delay of a full buffer, unless they are far above the data; a capacity
    that changes is an area, and a rule marks where the base RTT changes. The flow labelled
    ``reference`` is grey.

    A drag marks a span of time in all panels and shows its means at the right, each over the time
    in which the flow was active, as in `qbkit.metrics.summary`; the wheel zooms
    while Ctrl (or ⌘) is down; a click on the legend shows one flow alone. Series are averaged to at
    most 600 rows per flow; the description says over how many seconds. Raises MetricError for a run
    without flows, and for a series or a reference that it does not have.
    """
    series = [Series(label, ds, i, "1") for i, label in enumerate(flow_labels(ds))]
    panels = timeline_panels(series, reference=reference, also=_further(ds, also))
    return panels.properties(**heading(title, [HINT, averaging(series)], WIDTH))


def _further(ds: xr.Dataset, wanted: Sequence[str] | None) -> dict[str, tuple[str, str]]:
    """Further series → title and format of their panels."""
    names = series_names(ds)
    if wanted is None:
        logged = [n for n in names if "logged by" in str(ds[n].attrs.get("long_name", ""))]
        wanted = logged[:MAX_LOGGED]
    if unknown := [name for name in wanted if name not in names]:
        raise MetricError(f"the run has no series {unknown[0]!r}; choose from {', '.join(names)}")
    return {name: (_titled(ds[name]), ".3~f") for name in wanted}


def _titled(values: xr.DataArray) -> str:
    unit = str(values.attrs.get("units", "1"))
    return str(values.name) if unit == "1" else f"{values.name} ({unit})"


@dataclass(frozen=True)
class _Timeline:
    """What all panels share."""

    data: alt.InlineData
    most: dict[str, float]
    """Largest value of each column."""
    panels: dict[str, tuple[str, str]]
    levels: Collection[Level]
    changes: Mapping[str, Sequence[alt.Chart]]
    """What changes on the path, behind the lines of a column: its capacity, and its RTT."""
    scale: alt.Scale
    end_s: float
    chosen: alt.Parameter | None
    """The list of trials, if there are several."""
    size: tuple[int, int]

    def rows(self) -> alt.Chart:
        """The rows of the chosen trial, or of all."""
        chart = alt.Chart(self.data)
        if self.chosen is None:
            return chart
        return chart.transform_filter(trial_is_chosen(self.chosen))


def timeline_panels(
    series: Sequence[Series],
    *,
    reference: str | None = None,
    also: dict[str, tuple[str, str]] | None = None,
    width: int = WIDTH,
    height: int = PANEL_HEIGHT,
) -> alt.VConcatChart:
    """Panels of the series; with several trials, a list to choose one or all of them.

    ``also`` maps further series to the title and the number format of their panels. Raises
    MetricError without a series, and for a ``reference`` that is none of their labels.
    """
    if not series:
        raise MetricError("there is no flow to draw; give at least one run with a flow")
    labels = list(dict.fromkeys(s.label for s in series))
    rows = rows_of(series, list(also or {}))
    rows[ACTIVE] = [*active_parts(series)]
    shared = _Timeline(
        data=inline(rows),
        most={name: largest(values) for name, values in rows.items()},
        panels={name: words for name, words in (PANELS | (also or {})).items() if name in rows},
        levels=common_levels(s.ds for s in series),
        changes={
            "throughput_mbps": _capacity_layers(series),
            "queue_delay_ms": delay_layers(common_delays(s.ds for s in series)),
        },
        scale=theme.colour_scale(labels, reference),
        end_s=max(float(s.ds.attrs["duration_s"]) for s in series),
        chosen=trial_choice(series),
        size=(width, height),
    )
    panels: list[Any] = [_panel(shared, name) for name in shared.panels]
    if len(labels) <= MAX_MEANS:
        panels = _beside(panels, [_means(shared, name) for name in shared.panels])
    with one_brush():
        chart = VConcatChart(vconcat=panels, spacing=10)
    return chart if shared.chosen is None else chart.add_params(shared.chosen)


def _capacity_layers(series: Sequence[Series]) -> list[alt.Chart]:
    mbps = common_capacity(s.ds for s in series)
    return [] if mbps is None else capacity_layers(mbps, float(series[0].ds.attrs["bin_s"]))


def averaging(series: Sequence[Series]) -> str:
    """Sentence about how `timeline_panels` averages the series."""
    bins_s = sorted({float(s.ds.attrs["bin_s"]) for s in series})
    factor = bins_per_row(series)
    width = " or ".join(f"{bin_s * factor:.3g}" for bin_s in bins_s)
    if factor == 1:
        return f"Series in bins of {width} s."
    return f"Series averaged over {width} s ({factor} bins of the run each)."


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


def _panel(shared: _Timeline, name: str) -> alt.LayerChart:
    last = name == [*shared.panels][-1]
    x_axis = alt.Axis(title="Time (s)") if last else alt.Axis(labels=False, ticks=False, title=None)
    title, form = shared.panels[name]
    shown = legend_choice()
    strength = 0.9 if shared.chosen is None else 0.6  # Lines of many trials overlap.
    x = alt.X("time_s:Q", axis=x_axis, scale=alt.Scale(domain=[0, shared.end_s], nice=False))
    colour = alt.Color("label:N", scale=shared.scale)
    lines = (
        shared.rows()
        .mark_line(clip=True)
        .encode(
            x=x,
            y=alt.Y(f"{name}:Q", title=title).axis(tickCount=4, titleLimit=200),
            color=colour,
            detail="trial:N",
            strokeOpacity=unless_hidden(shown, strength, 0.06),
        )
    )
    tooltip = [
        alt.Tooltip("label:N", title="Flow"),
        alt.Tooltip("trial:N", title="Trial"),
        alt.Tooltip("time_s:Q", title="Time (s)", format=".2f"),
        alt.Tooltip(f"{name}:Q", title=title, format=form),
    ]
    times = pointed_times(name, x, colour, (0, shared.end_s), shown)
    points = hover(lines, tooltip)
    levels, names = level_layers(shared.levels, name, shared.most[name])
    levels = [*shared.changes.get(name, ()), *levels]
    width, height = shared.size
    layers = [times, marked_span(), *levels, lines, *names, pointer_rule(), points]
    return LayerChart(layer=layers).properties(width=width, height=height)


def _beside(panels: Sequence[alt.LayerChart], means: Sequence[alt.Chart]) -> list[Any]:
    """Each panel with its means at the right; the first panel has their title."""
    titled = [means[0].properties(title=MEANS_TITLE), *means[1:]]
    pairs = zip(panels, titled, strict=True)
    return [alt.hconcat(*pair, spacing=10, bounds="flush") for pair in pairs]


def _means(shared: _Timeline, name: str) -> alt.Chart:
    """Mean of each flow while it was active in the marked span (by default at any time).

    What came through counts as a whole, as in a summary, with what left the queue after the flow's
    end. Other values count by the part of their time in which the flow was active.
    """
    value = f"datum[{name!r}]" if name in COUNTED else f"datum[{name!r}] * datum.{ACTIVE}"
    return (
        shared.rows()
        .transform_filter({"param": "span"})
        .transform_filter(alt.FieldValidPredicate(field=name, valid=True))
        .transform_calculate(counted=value)
        .transform_aggregate(counted="sum(counted)", active=f"sum({ACTIVE})", groupby=["label"])
        .transform_filter("datum.active > 0")
        .transform_calculate(mean="datum.counted / datum.active")
        .mark_text(align="left", fontSize=11.5, fontWeight=600)
        .encode(
            x=alt.value(2),
            y=alt.Y("label:N", axis=None, sort=None).scale(domain=shared.scale.domain),
            text=alt.Text("mean:Q", format=shared.panels[name][1]),
            color=alt.Color("label:N", scale=shared.scale),
        )
        .properties(width=MEANS_WIDTH, height=shared.size[1])
    )
