"""All that connections tell over time, in panels on one axis that one brush links."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import xarray as xr

from qbkit.errors import MetricError
from qbkit.plots import congestion, progress, recovery
from qbkit.plots.connection import Events, Frame, Panel, stacked

ROWS = 2000
"""Rows of the lines of a panel: less than of one that stands alone."""
Parts = tuple[str, Callable[[xr.Dataset], bool], Callable[[Frame, Events], Panel]]
PARTS: tuple[Parts, ...] = (
    ("congestion window", congestion.tells_cwnd, congestion.cwnd_panel),
    ("congestion window", congestion.tells_cwnd, congestion.growth_panel),
    ("bytes ACKed", progress.tells_acks, progress.acked_panel),
    ("bytes ACKed", progress.tells_acks, progress.lag_panel),
    ("bandwidth", progress.tells_bandwidth, progress.bandwidth_panel),
    ("losses or states", recovery.tells_losses, recovery.loss_panel),
)
"""What a panel shows, whether a connection tells it, and the panel."""


def root_cause_chart(
    connections: Events, *, reference: str | None = None, title: str = "What happened, and when"
) -> alt.VConcatChart:
    """Window, its growth, bytes ACKed, bandwidth and losses of connections by label, linked.

    A span of time brushed in any panel is marked in all, and the numbers at the right are those of
    the span. What a connection does not tell is left out, and the subtitle says so. Raises
    MetricError where none tells anything.
    """
    frame = Frame(connections, reference, ROWS)
    panels, silent = [], {}
    for what, tells, panel in PARTS:
        telling = {label: events for label, events in connections.items() if tells(events)}
        missing = [label for label in connections if label not in telling]
        if missing:
            silent[what] = f"Not told: {what} of {', '.join(missing)}."
        if telling and not (panel is progress.lag_panel and len(telling) < 2):
            panels.append(panel(frame, telling))
    if not panels:
        raise MetricError("the logs tell neither windows, ACKs nor losses; choose others")
    return stacked(frame, panels, title, list(silent.values()))
