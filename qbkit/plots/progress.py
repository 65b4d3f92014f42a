"""Bytes ACKed and the sender's bandwidth estimate over time, of connections beside each other.

After Yu and Benson, "Dissecting Performance of Production QUIC", WWW '21, figures 5, 7 and 11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.events import acked_rate, bytes_acked, is_receiver, is_told, rtt, step_at
from qbkit.plots import connection as pc
from qbkit.traces.arrays import FloatArray

ESTIMATE, PACING = "bandwidth", "pacing rate"
DASHES = {ESTIMATE: (1, 0), PACING: (5, 4)}
MB = 2_000_000
"""From so many bytes on they are told in MB, not in kB."""


def bytes_acked_chart(
    connections: pc.Events, *, reference: str | None = None, title: str = "Bytes ACKed"
) -> alt.VConcatChart:
    """Bytes ACKed over time, of connections by label: who lags behind, and since when?

    Beneath it what each has more or less than the reference (without one: than the first). Each
    ACK is a dot where there are 400 or fewer. In a receiver's log the bytes received are drawn,
    which are what it acknowledges. Raises MetricError where a connection tells neither.
    """
    frame = pc.Frame(connections, reference)
    panels = [acked_panel(frame, connections, height=240)]
    if len(connections) > 1:
        panels.append(lag_panel(frame, connections))
    return pc.stacked(frame, panels, title, [])


def bandwidth_chart(
    connections: pc.Events, *, reference: str | None = None, title: str = "Bandwidth estimate"
) -> alt.VConcatChart:
    """The sender's estimate of its bandwidth over time, and its pacing rate (dashed) if told.

    Where a stack does not tell its delivery rate, it is the bytes ACKed in each round trip; the
    subtitle tells which. Raises MetricError where a connection tells neither.
    """
    frame = pc.Frame(connections, reference)
    return pc.stacked(frame, [bandwidth_panel(frame, connections, height=260)], title, [])


def tells_acks(events: xr.Dataset) -> bool:
    """Whether the log tells bytes ACKed."""
    try:
        bytes_acked(events)
    except MetricError:
        return False
    return True


def tells_bandwidth(events: xr.Dataset) -> bool:
    """Whether the log tells a delivery rate, or what it can be computed from."""
    if is_told(events, "delivery_rate_mbps"):
        return True
    try:
        rtt(events)
    except MetricError:
        return False
    return tells_acks(events)


def acked_panel(frame: pc.Frame, connections: pc.Events, height: int = 130) -> pc.Panel:
    """Bytes of the packets that were acknowledged until a time."""
    pc.told(connections, tells_acks, "bytes ACKed")
    series = {label: bytes_acked(events) for label, events in connections.items()}
    most = max(total[-1] for _, total in series.values())
    unit, divisor = ("MB", 1e6) if most >= MB else ("kB", 1e3)
    data = pc.table(_thinned(series, frame.rows, divisor))
    times_s = frame.grid_s()
    grid = pc.table(
        {
            label: {"time_s": times_s, "value": step_at(times_s, *points) / divisor}
            for label, points in series.items()
        }
    )
    receivers = [label for label, events in connections.items() if is_receiver(events)]
    note = f"Of {', '.join(receivers)}, a receiver's log: the bytes received."

    def draw(x: alt.X) -> Sequence[alt.Chart]:
        y = alt.Y("value:Q", title=f"Bytes ACKed ({unit})").axis(tickCount=5)
        base = alt.Chart(data).encode(x=x, y=y, color=frame.colour)
        line = base.mark_line(interpolate="step-after", strokeWidth=1.2)
        dots = base.mark_circle(size=10).transform_filter(alt.datum.dot)
        return [
            dots.encode(opacity=frame.unless_hidden(0.9)),
            line.encode(strokeOpacity=frame.unless_hidden(0.8)),
        ]

    readout = pc.Readout(f"in all, {unit}", grid, "value", "range", ".2f")
    return pc.Panel(draw, height, readout, [note] if receivers else [])


def lag_panel(frame: pc.Frame, connections: pc.Events, height: int = 90) -> pc.Panel:
    """Bytes ACKed, less those of the reference or else of the first connection."""
    base = next((k for k in connections if k == frame.reference), next(iter(connections)))
    series = {label: bytes_acked(events) for label, events in connections.items()}
    end_s = min(time_s[-1] for time_s, _ in series.values())  # Behind a log's end nothing is told.
    times_s = np.linspace(frame.start_s, end_s, frame.rows // (2 * len(connections)))
    totals = {label: step_at(times_s, *points) for label, points in series.items()}
    rows = {k: {"time_s": times_s, "kb": (v - totals[base]) / 1e3} for k, v in totals.items()}
    data = pc.table(rows)

    def draw(x: alt.X) -> Sequence[alt.Chart]:
        y = alt.Y("kb:Q", title="Ahead (kB)").axis(tickCount=4)
        lines = alt.Chart(data).mark_line(strokeWidth=1.2).encode(x=x, y=y, color=frame.colour)
        return [lines.encode(strokeOpacity=frame.unless_hidden(0.9))]

    note = f"Ahead: bytes ACKed, less those of {base} at that time."
    return pc.Panel(draw, height, pc.Readout("mean, kB", data, "kb", "mean", "+.1f"), [note])


def bandwidth_panel(frame: pc.Frame, connections: pc.Events, height: int = 130) -> pc.Panel:
    """Delivery rate as told, or bytes ACKed by the round trip; pacing rate."""
    pc.told(connections, tells_bandwidth, "a bandwidth, nor ACKs and RTTs to compute it from")
    estimates, notes = _estimates(connections)
    pacing = {
        label: _metric(events, "pacing_rate_mbps")
        for label, events in connections.items()
        if is_told(events, "pacing_rate_mbps")
    }
    kinds = {ESTIMATE: estimates, PACING: pacing} if pacing else {ESTIMATE: estimates}
    rows = frame.rows // len(kinds)
    data = pc.table(*(_kind(kind, _thinned(series, rows)) for kind, series in kinds.items()))
    times_s = frame.grid_s()
    steps = {k: {"time_s": times_s, "value": step_at(times_s, *v)} for k, v in estimates.items()}

    def draw(x: alt.X) -> Sequence[alt.Chart]:
        y = alt.Y("value:Q", title="Bandwidth (Mbit/s)").axis(tickCount=5)
        base = alt.Chart(data).encode(x=x, y=y, color=frame.colour)
        dots = base.mark_circle(size=10).transform_filter(alt.datum.dot)
        line = base.mark_line(interpolate="step-after", strokeCap="butt", strokeWidth=1.2).encode(
            strokeDash=pc.line_kinds({kind: DASHES[kind] for kind in kinds}),
            strokeOpacity=frame.unless_hidden(0.8),
        )
        return [dots.encode(opacity=frame.unless_hidden(0.9)), line]

    readout = pc.Readout("mean, Mbit/s", pc.table(steps), "value", "mean", ".2f")
    return pc.Panel(draw, height, readout, notes)


def _estimates(
    connections: pc.Events,
) -> tuple[dict[str, tuple[FloatArray, FloatArray]], list[str]]:
    """Bandwidth of each connection, and sentences on where it comes from."""
    tellers = [k for k, events in connections.items() if is_told(events, "delivery_rate_mbps")]
    others = [label for label in connections if label not in tellers]
    estimates = {
        label: _metric(events, "delivery_rate_mbps") if label in tellers else acked_rate(events)
        for label, events in connections.items()
    }
    notes = [
        f"Bandwidth of {', '.join(labels)}: {how}."
        for labels, how in (
            (tellers, "the delivery rate that the stack tells"),
            (others, "whole packets ACKed in a round trip; the stack tells no delivery rate"),
        )
        if labels
    ]
    return estimates, notes


def _kind(kind: str, rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The rows, with the kind of line that they are."""
    return {k: {**columns, "kind": [kind] * len(columns["dot"])} for k, columns in rows.items()}


def _metric(events: xr.Dataset, name: str) -> tuple[FloatArray, FloatArray]:
    known = np.isfinite(events[name].values)
    return events["metric_time_s"].values[known], events[name].values[known]


def _thinned(
    series: Mapping[str, tuple[FloatArray, FloatArray]], rows: int, divisor: float = 1.0
) -> dict[str, dict[str, Any]]:
    """Points of each label, as many as fit; a ``dot`` each where they are few."""
    columns: dict[str, dict[str, Any]] = {}
    for label, (time_s, values) in series.items():
        kept = pc.thinned(values, rows // len(series))
        dot = np.full(len(kept), len(values) <= pc.MAX_DOTS)
        columns[label] = {"time_s": time_s[kept], "value": values[kept] / divisor, "dot": dot}
    return columns
