"""Everything that connections report over time, in panels on one axis, linked by one brush."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import xarray as xr

from qbkit.errors import MetricError
from qbkit.plots.flows import bytes_acked as progress
from qbkit.plots.flows import congestion, recovery
from qbkit.plots.flows.connection import Events, Frame, Panel, stacked

ROWS = 2000
"""Rows of the lines of a panel: fewer than in a chart of its own."""
Parts = tuple[str, Callable[[xr.Dataset], bool], Callable[[Frame, Events], Panel]]
PARTS: tuple[Parts, ...] = (
    ("congestion window", congestion.reports_window, congestion.cwnd_panel),
    (congestion.GROWTH, congestion.reports_growth, congestion.growth_panel),
    ("bytes ACKed", progress.reports_acks, progress.acked_panel),
    ("bytes ACKed", progress.reports_acks, progress.lag_panel),
    ("bandwidth", progress.reports_bandwidth, progress.bandwidth_panel),
    ("losses or states", recovery.reports_losses, recovery.loss_panel),
)
"""What each panel shows, whether a connection reports it, and the function that makes the panel."""


def root_cause_chart(
    connections: Events, *, reference: str | None = None, title: str = "What happened, and when"
) -> alt.VConcatChart:
    """Window, its growth, bytes ACKed, bandwidth and losses of connections by label, linked.

    A span of time brushed in any panel is marked in all, and the numbers at the right are those of
    the span. The chart leaves out what a connection does not report, and its subtitle says so.
    Raises MetricError if no connection reports anything.
    """
    frame = Frame(connections, reference, ROWS)
    panels, notes = [], {}
    for what, reports, panel in PARTS:
        reporting = {label: events for label, events in connections.items() if reports(events)}
        missing = [label for label in connections if label not in reporting]
        if missing:
            notes[what] = f"Not reported: {what} of {', '.join(missing)}."
        if reporting and not (panel is progress.lag_panel and len(reporting) < 2):
            panels.append(panel(frame, reporting))
    if not panels:
        raise MetricError("the logs report no windows, ACKs or losses; choose others")
    return stacked(frame, panels, title, list(notes.values()))
