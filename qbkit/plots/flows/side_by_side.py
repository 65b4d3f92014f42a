"""Runs of one network below each other: throughput on its capacity, queueing delay, and marks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows.lookup import flow_labels
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.data import inline
from qbkit.plots.flows.levels import capacity_layers, common_delays, delay_layers
from qbkit.plots.flows.series import Series, largest, rows_of

WIDTH, HEIGHT = 330, 74
THROUGHPUT, DELAY = "Throughput (Mbit/s)", "Queueing delay (ms)"
MARKS = "; a tick for each 0.1 s with marks (CE)"


def side_by_side_chart(
    runs: Mapping[str, xr.Dataset], *, title: str = "Side by side"
) -> alt.VConcatChart:
    """A row for each run: the throughput of its flows before the capacity, and the queueing delay.

    ``runs`` maps the name of a row to its run. All rows share their axes. Where the capacity of the
    link changes, it is an area behind the throughput; ticks below the delay are 0.1 s in which a
    queue marked packets with CE. Raises MetricError without a run.
    """
    if not runs:
        raise MetricError("there is no run to draw; give at least one")
    rows = {
        name: rows_of([Series(label, ds, i, name) for i, label in enumerate(flow_labels(ds))])
        for name, ds in runs.items()
    }
    labels = list(dict.fromkeys(str(label) for row in rows.values() for label in row["label"]))
    most = {
        column: max(largest(row[column]) for row in rows.values())
        for column in ("throughput_mbps", "queue_delay_ms")
    }
    most["throughput_mbps"] = max(most["throughput_mbps"], *map(_most_capacity, runs.values()))
    end_s = max(float(ds.attrs["duration_s"]) for ds in runs.values())
    colours = theme.colour_scale(labels, None)
    names = [*runs]
    drawn = [
        _row(name, rows[name], ds, most, end_s, colours, last=name == names[-1])
        for name, ds in runs.items()
    ]
    area = "; grey: capacity" if any("capacity_mbps" in ds for ds in runs.values()) else ""
    ticks = MARKS if any("ce_marked_packets" in ds for ds in runs.values()) else ""
    sentences = [f"Left: throughput{area}. Right: queueing delay{ticks}."]
    return alt.vconcat(*drawn, spacing=6).properties(**heading(title, sentences, 2 * WIDTH))


def _most_capacity(ds: xr.Dataset) -> float:
    return float(ds["capacity_mbps"].max()) if "capacity_mbps" in ds else 0.0


def _row(
    name: str,
    rows: dict[str, list[object]],
    ds: xr.Dataset,
    most: dict[str, float],
    end_s: float,
    colours: alt.Scale,
    *,
    last: bool,
) -> alt.HConcatChart:
    """Both panels of a run."""
    axis = alt.Axis(title="Time (s)") if last else alt.Axis(labels=False, ticks=False, title=None)
    x = alt.X("time_s:Q", axis=axis, scale=alt.Scale(domain=[0, end_s], nice=False))
    data = alt.Chart(inline(rows))
    panels = []
    for column, words in (("throughput_mbps", THROUGHPUT), ("queue_delay_ms", DELAY)):
        y = alt.Y(f"{column}:Q", title=None, scale=alt.Scale(domain=[0, most[column]]))
        line = data.mark_line(clip=True, strokeWidth=1.3).encode(
            x=x,
            y=y.axis(tickCount=3),
            color=alt.Color("label:N", scale=colours),
            tooltip=["label:N", "time_s:Q", f"{column}:Q"],
        )
        behind: list[Any] = []
        if column == "throughput_mbps" and "capacity_mbps" in ds:
            behind = capacity_layers(ds["capacity_mbps"], float(ds.attrs["bin_s"]))
        if column == "queue_delay_ms":
            behind = delay_layers(common_delays([ds]))
        if column == "queue_delay_ms" and "ce_marked_packets" in ds:
            behind = [*behind, _marks(ds)]
        heading_ = f"{name}: {words[0].lower()}{words[1:]}"
        panel = alt.layer(*behind, line).properties(
            width=WIDTH,
            height=HEIGHT,
            title=alt.TitleParams(heading_, fontSize=11, offset=3, anchor="start"),
        )
        panels.append(panel)
    return alt.hconcat(*panels, spacing=14)


def _marks(ds: xr.Dataset) -> alt.Chart:
    """A tick for each bin of time in which a packet was marked."""
    marked = ds["ce_marked_packets"].sum("flow").values
    times_s = ds["time"].values[np.flatnonzero(marked)].tolist()
    counts = marked[np.flatnonzero(marked)].tolist()
    ticks = alt.Chart(inline({"time_s": times_s, "marks": counts}))
    return ticks.mark_tick(color=theme.QUIET_INK, thickness=1, size=7, yOffset=-3).encode(
        x="time_s:Q", y=alt.value(HEIGHT), tooltip=["time_s:Q", "marks:Q"]
    )
