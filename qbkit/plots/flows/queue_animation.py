"""The queue over a second, packet by packet: for teaching, with a slider and a play button.

The chart has one row per packet. Which of them are in the queue at the shown time, and where, is
computed by Vega-Lite from the slider's parameter. The display moves the slider while "Play" is
chosen (`qbkit.plots.drawing.render`).
"""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows.lookup import flow_labels, has_packets
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import LayerChart, VConcatChart
from qbkit.plots.drawing.data import inline, long_table
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.ends import left_queue_s
from qbkit.traces.run.journey import NO_PACKETS, Fate

WIDTH, QUEUE_HEIGHT, LENGTH_HEIGHT = 720, 84, 120
MAX_PACKETS = 12_000
STEPS = 250
"""Points of the length of the queue over the shown time."""
DROP_SHOWN_MS = 40
"""How long a dropped packet stays in the picture."""
PLAY = {"time": "at_ms", "when": "play", "step": "slow_motion"}
"""Parameters that the display moves: the time, whether to move it, and the ms of a frame."""
SPEEDS_MS = (0.5, 1, 2, 5, 10)
FRAME_MS = 40


def queue_animation_chart(
    ds: xr.Dataset, *, from_s: float, seconds: float = 1.0, title: str = "Inside the queue"
) -> alt.VConcatChart:
    """The packets of each flow moving through the bottleneck's queue over a span of a run.

    The upper panel is the queue at the time of the slider: one tile per packet, as wide as the
    packet is long, in the order in which they leave at the right. A cross at the left is a packet
    that the queue dropped in the last 40 ms. The lower panel is the queue's length by flow. "Play"
    moves the slider. Raises MetricError for a run without its packets, for a span that is
    not above 0, has no packets, or has more than `MAX_PACKETS`.
    """
    if not has_packets(ds):
        raise MetricError(NO_PACKETS)
    if not seconds > 0:
        raise MetricError(f"seconds = {seconds:g}: give a span above 0", refused=True)
    table = _packets(ds, from_s, seconds)
    labels = flow_labels(ds)
    scale = theme.colour_scale(labels)
    at = alt.param(
        name=PLAY["time"],
        value=0,
        bind=alt.binding_range(min=0, max=round(seconds * 1e3), step=0.5, name="Time (ms)"),
    )
    play = alt.param(name=PLAY["when"], value=False, bind=alt.binding_checkbox(name="Play"))
    speeds = alt.binding_select(
        options=list(SPEEDS_MS),
        labels=[f"{FRAME_MS / speed:g} times slower" for speed in SPEEDS_MS],
        name="Speed",
    )
    speed = alt.param(name=PLAY["step"], value=1, bind=speeds)
    queue_kb = float(ds.attrs["queue_bytes"]) / 1e3
    data = inline(table)
    top = _queue(data, scale, queue_kb)
    below = _length(table, labels, scale, seconds)
    sentences = [
        f"From {from_s:g} s on. A tile is a packet, the next to leave at the right; a cross is one "
        "that the queue dropped.",
        "Move the slider, or choose Play.",
    ]
    chart = VConcatChart(vconcat=[top, below], spacing=14, usermeta={"play": PLAY})
    return chart.add_params(at, play, speed).properties(**heading(title, sentences, WIDTH))


def _packets(ds: xr.Dataset, from_s: float, seconds: float) -> dict[str, Any]:
    """Columns of the packets that are in the queue, or dropped, within the span; in ms."""
    arrived = (ds["packet_time_s"].values - from_s) * 1e3
    left = (left_queue_s(ds) - from_s) * 1e3
    lost = np.isnan(left)
    dropped = ds["packet_fate"].values == Fate.QUEUE_DROP if "packet_fate" in ds else lost
    span_ms = seconds * 1e3
    end = np.where(dropped, arrived + DROP_SHOWN_MS, left)
    shown = (arrived <= span_ms) & (end >= 0) & ~(lost & ~dropped)
    count = int(shown.sum())
    if not count:
        raise MetricError(f"no packet is in the queue from {from_s:g} s to {from_s + seconds:g} s")
    if count > MAX_PACKETS:
        raise MetricError(
            f"{count} packets pass the queue in {seconds:g} s, and {MAX_PACKETS} can be shown; "
            "give fewer seconds"
        )
    labels = np.array(flow_labels(ds))
    return {
        "label": labels[ds["packet_flow"].values[shown]],
        "in_ms": arrived[shown].astype(float),
        "out_ms": end[shown].astype(float),
        "bytes": ds["packet_size_bytes"].values[shown].astype(float),
        "dropped": dropped[shown].astype(bool),
    }


def _queue(data: alt.InlineData, scale: alt.Scale, queue_kb: float) -> alt.LayerChart:
    """The queue at the time of the slider, its head at the right."""
    now = f"datum.in_ms <= {PLAY['time']} && {PLAY['time']} < datum.out_ms"
    x_scale = alt.Scale(domain=[0, queue_kb], reverse=True, nice=False)
    waiting = (
        alt.Chart(data)
        .transform_filter(f"!datum.dropped && {now}")
        .transform_window(ahead="sum(bytes)", sort=[alt.SortField("out_ms")], frame=[None, 0])
        .transform_calculate(
            near="(datum.ahead - datum.bytes) / 1000",
            far="datum.ahead / 1000",
            waits=f"datum.out_ms - {PLAY['time']}",
        )
    )
    tiles = waiting.mark_rect(stroke=theme.GROUND, strokeWidth=0.6).encode(
        x=alt.X("near:Q", title="Bytes ahead of it (kB)", scale=x_scale),
        x2="far:Q",
        color=alt.Color("label:N", scale=scale),
        tooltip=[
            alt.Tooltip("label:N", title="Flow"),
            alt.Tooltip("bytes:Q", title="Size (B)"),
            alt.Tooltip("in_ms:Q", title="Arrived (ms)", format=".1f"),
            alt.Tooltip("waits:Q", title="Leaves in (ms)", format=".1f"),
        ],
    )
    drops = (
        alt.Chart(data)
        .transform_filter(f"datum.dropped && {now}")
        .transform_calculate(place=f"{queue_kb}", age=f"({PLAY['time']} - datum.in_ms) / 1000")
        .mark_point(shape="cross", angle=45, size=110, filled=True, opacity=0.9)
        .encode(
            x=alt.X("place:Q", scale=x_scale),
            y=alt.Y("age:Q", axis=None).scale(domain=[0, 2.2 * DROP_SHOWN_MS / 1e3]),
            color=alt.Color("label:N", scale=scale),
            tooltip=[
                alt.Tooltip("label:N", title="Dropped, of"),
                alt.Tooltip("in_ms:Q", title="At (ms)", format=".1f"),
            ],
        )
    )
    return LayerChart(layer=[tiles, drops]).properties(width=WIDTH, height=QUEUE_HEIGHT)


def _length(
    table: dict[str, Any], labels: list[str], scale: alt.Scale, seconds: float
) -> alt.LayerChart:
    """Bytes in the queue by flow over the span, with a line at the time of the slider."""
    at_ms = np.linspace(0, seconds * 1e3, STEPS)
    parts = []
    for label in labels:
        mine = (table["label"] == label) & ~table["dropped"]
        kb = _bytes_at(at_ms, *(table[name][mine] for name in ("in_ms", "out_ms", "bytes"))) / 1e3
        parts.append(({"label": label}, {"ms": at_ms, "kb": kb}))
    x = alt.X("ms:Q", title="Time (ms)").scale(domain=[0, seconds * 1e3], nice=False)
    areas = (
        alt.Chart(inline(long_table(parts)))
        .mark_area(opacity=0.75, interpolate="step-after")
        .encode(
            x=x,
            y=alt.Y("kb:Q", title="In the queue (kB)", stack="zero"),
            color=alt.Color("label:N", scale=scale),
            tooltip=[
                alt.Tooltip("label:N", title="Flow"),
                alt.Tooltip("ms:Q", title="Time (ms)", format=".0f"),
                alt.Tooltip("kb:Q", title="In the queue (kB)", format=".1f"),
            ],
        )
    )
    now = (
        alt.Chart(alt.InlineData(values=[{}]))
        .transform_calculate(now=PLAY["time"])
        .mark_rule(color=theme.INK, strokeWidth=1.4)
        .encode(x=alt.X("now:Q"))
    )
    return LayerChart(layer=[areas, now]).properties(width=WIDTH, height=LENGTH_HEIGHT)


def _bytes_at(
    at_ms: FloatArray, in_ms: FloatArray, out_ms: FloatArray, size: FloatArray
) -> FloatArray:
    """Bytes of the packets that have arrived and not left, at each time."""
    came, went = np.argsort(in_ms), np.argsort(out_ms)
    arrived = np.append(0.0, size[came].cumsum())[np.searchsorted(in_ms[came], at_ms, "right")]
    left = np.append(0.0, size[went].cumsum())[np.searchsorted(out_ms[went], at_ms, "right")]
    return np.asarray(arrived - left)
