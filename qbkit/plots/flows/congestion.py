"""Congestion window and its growth over time, of a test against its reference."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows.over_time import cwnd_growth, is_reported, value_at
from qbkit.plots.drawing.data import long_table
from qbkit.plots.drawing.pointer import hover
from qbkit.plots.flows.connection import (
    Events,
    Frame,
    Panel,
    Readout,
    at_time,
    averaged,
    line_kinds,
    reporting,
    stacked,
    table,
    thinned,
)

WINDOW, THRESHOLD, FLIGHT = "congestion window", "slow start threshold", "bytes in flight"
KINDS = {WINDOW: "cwnd_bytes", THRESHOLD: "ssthresh_bytes", FLIGHT: "bytes_in_flight"}
DASHES = {WINDOW: (1, 0), THRESHOLD: (5, 4), FLIGHT: (1, 1.5)}
WIDTHS = {WINDOW: 1.6, THRESHOLD: 1.3, FLIGHT: 0.8}
GROWTH = "growth of the congestion window"
GROWTH_TICKS_KB = (-1000, -100, -10, -1, 0, 1, 10, 100, 1000)


def cwnd_chart(
    connections: Events, *, reference: str | None = None, title: str = "Congestion window"
) -> alt.VConcatChart:
    """Congestion window of connections by label, and its growth in each round trip.

    The chart also shows the slow start threshold (dashed) and bytes in flight (thin) if they are
    reported, as captures and net logs give nothing else; the subtitle says what is not reported.
    Raises MetricError if no connection reports any of them.
    """
    frame = Frame(connections, reference)
    panels, notes = [cwnd_panel(frame, connections)], []
    try:
        panels.append(growth_panel(frame, connections))
    except MetricError:
        notes.append(f"Not reported: {GROWTH} of {', '.join(connections)}.")
    return stacked(frame, panels, title, notes)


def reports_cwnd(events: xr.Dataset) -> bool:
    """Whether the log reports the congestion window."""
    return is_reported(events, "cwnd_bytes")


def reports_window(events: xr.Dataset) -> bool:
    """Whether the log reports a window, a threshold or the bytes in flight."""
    return any(is_reported(events, name) for name in KINDS.values())


def reports_growth(events: xr.Dataset) -> bool:
    """Whether the log reports the window and the RTTs to see its growth."""
    try:
        return reports_cwnd(events) and bool(len(cwnd_growth(events)[0]))
    except MetricError:
        return False


def cwnd_panel(frame: Frame, connections: Events, height: int = 170) -> Panel:
    """Panel of the window, the threshold and the bytes in flight (kB)."""
    connections, notes = reporting(connections, reports_window, "congestion window")
    others = [label for label, events in connections.items() if not reports_cwnd(events)]
    if others:
        notes.append(f"Not reported: congestion window of {', '.join(others)}.")
    kinds = {
        kind: name
        for kind, name in KINDS.items()
        if any(is_reported(events, name) for events in connections.values())
    }
    rows = frame.rows // (len(kinds) * len(connections))
    data = table({label: _lines(events, kinds, rows) for label, events in connections.items()})

    def draw(x: alt.X) -> Sequence[alt.Chart]:
        widths = alt.Scale(domain=list(kinds), range=[WIDTHS[kind] for kind in kinds])
        line = alt.Chart(data).mark_line(interpolate="step-after", strokeCap="butt")
        drawn = line.encode(
            x=x,
            y=alt.Y("kb:Q", title="Window (kB)").axis(tickCount=5),
            color=frame.colour,
            strokeDash=line_kinds({kind: DASHES[kind] for kind in kinds}),
            strokeWidth=alt.StrokeWidth("kind:N", scale=widths, sort=list(kinds), legend=None),
            strokeOpacity=frame.unless_hidden(0.9),
        )
        return [drawn, hover(drawn, at_time("kb", "kB", ".1f", kind="Line"))]

    readout = Readout("mean, kB", _grid(frame, connections), "kb", "mean", ".1f")
    return Panel(draw, height, readout, notes)


def growth_panel(frame: Frame, connections: Events) -> Panel:
    """Panel of the window's growth per round trip (kB), on a scale that is linear around 0."""
    connections, notes = reporting(connections, reports_growth, GROWTH)
    rows = frame.rows // (2 * len(connections))
    columns, means = {}, {}
    for label, events in connections.items():
        time_s, growth = cwnd_growth(events)
        time_s, kb = time_s[np.isfinite(growth)], growth[np.isfinite(growth)] / 1e3
        kept = thinned(kb, rows)
        columns[label] = {"time_s": time_s[kept], "kb": kb[kept]}
        means[label] = {"time_s": averaged(time_s, rows), "kb": averaged(kb, rows)}
    data = table(columns)

    def draw(x: alt.X) -> Sequence[alt.Chart]:
        y = alt.Y("kb:Q", title="Growth (kB per RTT)").scale(type="symlog", constant=0.4)
        y = y.axis(values=GROWTH_TICKS_KB, format="d", labelOverlap=False)
        base = alt.Chart(data).encode(x=x, y=y, color=frame.colour)
        return [
            base.mark_line(strokeWidth=0.7).encode(strokeOpacity=frame.unless_hidden(0.3)),
            base.mark_circle(size=9).encode(opacity=frame.unless_hidden(0.9)),
            hover(base, at_time("kb", "kB per RTT", "+.2f")),
        ]

    readout = Readout("mean, kB/RTT", table(means), "kb", "mean", "+.2f")
    return Panel(draw, 130, readout, notes)


def _lines(events: xr.Dataset, kinds: dict[str, str], rows: int) -> dict[str, list[object]]:
    """Rows of every kind of line that a connection reports."""
    parts = []
    time_s = events["metric_time_s"].values
    for kind, name in kinds.items():
        if not is_reported(events, name):
            continue
        values = events[name].values
        known = np.flatnonzero(np.isfinite(values))
        kept = known[thinned(values[known], rows)]
        parts.append(({"kind": kind}, {"time_s": time_s[kept], "kb": values[kept] / 1e3}))
    return long_table(parts)


def _grid(frame: Frame, connections: Events) -> alt.InlineData:
    """The first of the lines that each connection reports, at evenly spaced times."""
    times_s, columns = frame.grid_s(), {}
    for label, events in connections.items():
        name = next(name for name in KINDS.values() if is_reported(events, name))
        kb = value_at(events, name, times_s) / 1e3
        known = np.isfinite(kb)
        columns[label] = {"time_s": times_s[known], "kb": kb[known]}
    return table(columns)
