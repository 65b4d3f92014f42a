"""One page load from inside: data by stream (figures 16 and 17), and what the user sees."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.web.multiplexing import page_multiplexing
from qbkit.metrics.web.speed_index import page_speed_index
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import Chart, LayerChart, VConcatChart
from qbkit.plots.drawing.data import inline

WIDTH = 640
ROW_HEIGHT = 9
STRIP_HEIGHT = 42
FILM_WIDTH, FILM_HEIGHT = 384, 288
STEP_S = 0.02
STREAMS = "A row is a resource, from its request on; a bar is data received in a row."
ORDER = "Each colour is a stream; a segment is data of one stream in a row."
NOTHING = "there is nothing to show; give page loads of a browser by their names"


def streams_chart(loads: Mapping[str, xr.Dataset]) -> alt.VConcatChart:
    """Data by stream over time, one panel per load (figure 16).

    A row is a resource in the order of the requests, from its request (thin line) to its last byte;
    each bar is data that the browser received in a row. Colours are the urgencies of RFC 9218.
    Raises MetricError without loads, and for one without a net log (as of Firefox).
    """
    _require(loads, "chunk_resource", "a net log")
    panels = [_streams(name, run) for name, run in loads.items()]
    chart = VConcatChart(vconcat=panels).resolve_scale(x="shared", color="shared")
    return chart.properties(**heading("Data by stream", [STREAMS], WIDTH))


def multiplexing_chart(loads: Mapping[str, xr.Dataset]) -> alt.VConcatChart:
    """The order in which the data of all streams came, a strip per load (figure 17).

    The axis counts bytes. Each colour is a stream; a segment is data of one stream in a row. The
    titles name the strategy that `qbkit.metrics.page_multiplexing` infers. Raises MetricError as
    `streams_chart`.
    """
    _require(loads, "chunk_resource", "a net log")
    panels = [_strip(name, run) for name, run in loads.items()]
    chart = VConcatChart(vconcat=panels).resolve_scale(color="independent")
    return chart.properties(**heading("Order of the data", [ORDER], WIDTH))


def film_chart(loads: Mapping[str, xr.Dataset]) -> alt.Chart:
    """What the browsers showed, side by side, at the time that a slider chooses.

    Raises MetricError without loads, and for one without screenshots (as of Firefox).
    """
    _require(loads, "screenshot_time_s", "screenshots")
    rows = [
        row for place, (name, run) in enumerate(loads.items()) for row in _film(place, name, run)
    ]
    if not rows:
        raise MetricError(NOTHING)
    end_s = max(row["from_s"] for row in rows)
    last_s = np.ceil(end_s / STEP_S) * STEP_S + STEP_S
    slider = alt.binding_range(min=0, max=float(last_s), step=STEP_S, name="Time (s) ")
    time = alt.param(name="film_time_s", value=float(np.round(end_s / 2, 2)), bind=slider)
    titles = list(dict.fromkeys(row["load"] for row in rows))
    return (
        Chart(alt.InlineData(values=rows), title="The page at the time of the slider")
        .mark_image(width=FILM_WIDTH, height=FILM_HEIGHT, align="left", baseline="top")
        .encode(
            x=alt.value(0),
            y=alt.value(0),
            url="picture:N",
            column=alt.Column("load:N", sort=titles, title=None, header=alt.Header(labelLimit=400)),
            tooltip=["load:N", "from_s:Q", "complete_percent:Q"],
        )
        .transform_filter("datum.from_s <= film_time_s && film_time_s < datum.to_s")
        .add_params(time)
        .properties(width=FILM_WIDTH, height=FILM_HEIGHT)
    )


def _require(loads: Mapping[str, xr.Dataset], variable: str, what: str) -> None:
    """Raise MetricError without loads, and for one that lacks what the chart shows."""
    if not loads:
        raise MetricError(NOTHING)
    if lacking := [name for name, run in loads.items() if variable not in run]:
        raise MetricError(f"{lacking[0]} is no complete page load with {what}, as Chromium's have")


def _film(place: int, name: str, run: xr.Dataset) -> list[dict[str, Any]]:
    """A row per screenshot, from a white page on; the pictures are data URLs."""
    times = run.screenshot_time_s.values.tolist()
    whole = run.film.values.astype(np.uint8).tobytes()
    ends = [0, *run.film_end.values.astype(int).tolist()]
    jpegs = [base64.b64encode(whole[a:b]).decode() for a, b in pairwise(ends)]
    pictures = [f"data:image/jpeg;base64,{jpeg}" for jpeg in jpegs]
    progress = run.visual_progress_percent.values.tolist()
    load_s, index_s = float(run.page_load_time_s), page_speed_index(run)
    title = f"{name}: load {load_s:.2f} s, Speed Index {index_s:.2f} s"
    return [
        {
            "load": title,
            "place": place,
            "picture": picture,
            "from_s": round(start, 3),
            "to_s": round(stop, 3),
            "complete_percent": done,
        }
        for picture, start, stop, done in zip(
            pictures, times, [*times[1:], 1e6], progress, strict=True
        )
    ]


def _runs_of(run: xr.Dataset) -> pd.DataFrame:
    """Data in a row: resource, first and last time, bytes, and how many bytes came before."""
    which = run.chunk_resource.values.astype(int)
    group = np.cumsum(np.append(0, which[1:] != which[:-1]))
    frame = pd.DataFrame(
        {
            "group": group,
            "resource": which,
            "time_s": run.chunk_time_s.values,
            "bytes": run.chunk_bytes.values.astype(int),
        }
    )
    found = frame.groupby("group").agg(
        resource=("resource", "first"),
        from_s=("time_s", "first"),
        to_s=("time_s", "last"),
        bytes=("bytes", "sum"),
    )
    return found.assign(before=found["bytes"].cumsum() - found["bytes"]).reset_index(drop=True)


def _streams(name: str, run: xr.Dataset) -> alt.LayerChart:
    parts = _runs_of(run)
    resource = parts["resource"].to_numpy(int)
    data = {
        "resource": resource,
        "url": _paths(run)[resource].tolist(),
        "from_s": parts["from_s"].to_numpy(float),
        # A chunk has no length in time; the link's rate gives it one.
        "to_s": (parts["to_s"] + parts["bytes"] * 8e-6 / run.attrs["rate_mbps"]).to_numpy(float),
        "kb": parts["bytes"].to_numpy(float) / 1e3,
        "urgency": run.resource_urgency.values.astype(int)[resource],
    }
    spans = {
        "resource": np.arange(run.sizes["resource"]),
        "from_s": run.resource_start_s.values,
        "to_s": run.resource_end_s.values,
    }
    y = alt.Y("resource:O", title="Resources by request", axis=alt.Axis(labels=False, ticks=False))
    lines = alt.Chart(inline(spans)).mark_rule(color=theme.GRID, strokeWidth=2)
    bars = alt.Chart(inline(data)).mark_bar(height=ROW_HEIGHT - 2)
    shade = alt.Color("urgency:O", title="Urgency", scale=alt.Scale(scheme="plasma"))
    spans_layer = lines.encode(
        x=alt.X("from_s:Q", title="Time since the navigation (s)"), x2="to_s:Q", y=y
    )
    data_layer = bars.encode(
        x="from_s:Q",
        x2="to_s:Q",
        y=y,
        color=shade,
        tooltip=["url:N", "urgency:O", "from_s:Q", alt.Tooltip("kb:Q", format=".1f")],
    )
    return LayerChart(layer=[spans_layer, data_layer]).properties(
        title=name, width=WIDTH, height=ROW_HEIGHT * run.sizes["resource"]
    )


def _strip(name: str, run: xr.Dataset) -> alt.Chart:
    parts = _runs_of(run)
    resource = parts["resource"].to_numpy(int)
    data = {
        "stream": [str(number) for number in resource],
        "url": _paths(run)[resource].tolist(),
        "from_kb": parts["before"].to_numpy(float) / 1e3,
        "to_kb": (parts["before"] + parts["bytes"]).to_numpy(float) / 1e3,
        "urgency": run.resource_urgency.values.astype(int)[resource],
    }
    strategy = page_multiplexing(run).strategy
    domain = [str(number) for number in range(run.sizes["resource"])]
    return (
        alt.Chart(inline(data), title=alt.TitleParams(f"{name}: {strategy}", fontSize=12))
        .mark_bar(height=STRIP_HEIGHT - 6)
        .encode(
            x=alt.X("from_kb:Q", title="Data received before (kB)"),
            x2="to_kb:Q",
            color=alt.Color("stream:N", scale=theme.colour_scale(domain), legend=None),
            tooltip=["url:N", "urgency:Q", "from_kb:Q", "to_kb:Q"],
        )
        .properties(width=WIDTH, height=STRIP_HEIGHT)
    )


def _paths(run: xr.Dataset) -> np.ndarray:
    """The resources' URLs without scheme."""
    return np.array([url.partition("://")[2] for url in run.resource_url.values.tolist()])
