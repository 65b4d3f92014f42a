"""Frames over time: how long each took, and when the picture froze."""

from __future__ import annotations

import altair as alt
import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows.frames import Frames, flow_frames, freezes
from qbkit.metrics.flows.lookup import flow_labels
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import LayerChart, VConcatChart
from qbkit.plots.drawing.data import inline

WIDTH, HEIGHT = 620, 130
MOST_DOTS = 3000
BAND = "A dot is a frame shown; bands are freezes (W3C webrtc-stats)."


def frames_chart(ds: xr.Dataset, *, title: str = "Latency of frames") -> alt.VConcatChart:
    """Latency of each frame over its release, a panel per flow with frames; freezes are bands.

    Frames that were never shown have no dot. Raises MetricError for a run in which no flow has
    frames (``media``, or ``app=rate``).
    """
    labels = flow_labels(ds)
    found = {label: flow_frames(ds, i) for i, label in enumerate(labels)}
    known = {label: frames for label, frames in found.items() if frames}
    if not known:
        raise MetricError(
            "no flow of this run has frames; run one of media, or one with app=rate mbps=2 fps=30"
        )
    colours = dict(zip(labels, theme.colours(labels), strict=True))
    panels = [_panel(frames, label, colours[label]) for label, frames in known.items()]
    sentences = [BAND, *(_sentence(label, frames) for label, frames in known.items())]
    return VConcatChart(vconcat=panels, **heading(title, sentences, WIDTH)).resolve_scale(
        x="shared"
    )


def _sentence(label: str, frames: Frames) -> str:
    frozen = freezes(frames)
    missing = int(np.isnan(frames.shown_s).sum())
    return (
        f"{label}: {len(frames.shown_s)} frames, {missing} never shown, "
        f"{len(frozen)} freezes of {np.diff(frozen).sum():.1f} s."
    )


def _panel(frames: Frames, label: str, colour: str) -> alt.LayerChart:
    """The dots of a flow above its freezes."""
    x = alt.Scale(domain=[0, frames.end_s], nice=False)
    begin_s, end_s = freezes(frames).T
    bands = (
        alt.Chart(inline({"begin_s": begin_s, "end_s": end_s}))
        .mark_rect(color=theme.PALETTE[1], opacity=0.3)
        .encode(
            x=alt.X("begin_s:Q", scale=x),
            x2="end_s:Q",
            tooltip=[
                alt.Tooltip("begin_s:Q", title="Frozen from (s)", format=".2f"),
                alt.Tooltip("end_s:Q", title="to (s)", format=".2f"),
            ],
        )
    )
    every = -(-len(frames.release_s) // MOST_DOTS)
    data = inline({"at_s": frames.release_s[::every], "ms": frames.latency_ms()[::every]})
    dots = (
        alt.Chart(data)
        .mark_circle(size=9, opacity=0.8, color=colour, clip=True)
        .encode(
            x=alt.X("at_s:Q", scale=x, title="Time (s)"),
            y=alt.Y("ms:Q", title=["Latency of", "frames (ms)"]),
            tooltip=[
                alt.Tooltip("at_s:Q", title="Released at (s)", format=".3f"),
                alt.Tooltip("ms:Q", title="Latency (ms)", format=".1f"),
            ],
        )
    )
    return LayerChart(layer=[bands, dots]).properties(
        width=WIDTH, height=HEIGHT, title=alt.TitleParams(label, fontSize=11.5, offset=4)
    )
