"""Bytes ACKed and the sender's bandwidth estimate over time, of connections beside each other.

After Yu and Benson, "Dissecting Performance of Production QUIC", WWW '21, figures 5, 7 and 11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from qbkit.metrics.flows.over_time import acked_rate, bytes_acked, is_receiver, is_reported, step_at
from qbkit.plots.drawing.pointer import hover
from qbkit.plots.flows import connection as pc
from qbkit.traces.arrays import FloatArray

ESTIMATE, PACING = "bandwidth", "pacing rate"
DASHES = {ESTIMATE: (1, 0), PACING: (5, 4)}
MB = 2_000_000
"""Totals from this many bytes on are shown in MB instead of kB."""


def bytes_acked_chart(
    connections: pc.Events, *, reference: str | None = None, title: str = "Bytes ACKed"
) -> alt.VConcatChart:
    """Bytes ACKed over time, of connections by label: who lags behind, and since when?

    A lower panel shows how far each is ahead of the reference (or of the first connection). Each
    ACK is a dot if there are 400 or fewer. For a receiver's log, the chart shows the bytes
    received, which are what the receiver acknowledges. Of a run (`qbkit.flow_events`), whole frames
    count, with all their headers; a log has sizes of its own. The subtitle names connections that
    report neither; raises MetricError if none reports any.
    """
    frame = pc.Frame(connections, reference)
    panels = [acked_panel(frame, connections, height=240)]
    if sum(map(reports_acks, connections.values())) > 1:
        panels.append(lag_panel(frame, connections))
    return pc.stacked(frame, panels, title, [])


def bandwidth_chart(
    connections: pc.Events, *, reference: str | None = None, title: str = "Bandwidth estimate"
) -> alt.VConcatChart:
    """The sender's bandwidth estimate over time, and its pacing rate (dashed) if reported.

    If a stack does not report its delivery rate, the bytes ACKed in each round trip take its place;
    the subtitle says which is shown, and who reports neither. Raises MetricError if none does.
    """
    frame = pc.Frame(connections, reference)
    return pc.stacked(frame, [bandwidth_panel(frame, connections, height=260)], title, [])


def reports_acks(events: xr.Dataset) -> bool:
    """Whether the log reports bytes ACKed."""
    return pc.computes(bytes_acked, events)


def reports_bandwidth(events: xr.Dataset) -> bool:
    """Whether the log reports a delivery rate, or the ACKs and RTTs to compute one."""
    return is_reported(events, "delivery_rate_mbps") or pc.computes(acked_rate, events)


def acked_panel(frame: pc.Frame, connections: pc.Events, height: int = 130) -> pc.Panel:
    """Panel of the bytes ACKed up to each time."""
    connections, missing = pc.reporting(connections, reports_acks, "bytes ACKed")
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
    note = f"Bytes received, from a receiver's log: {', '.join(receivers)}."
    of_runs = [k for k, events in connections.items() if events.attrs.get("source") == "run"]
    counted = f"Whole frames count, with their headers: {', '.join(of_runs)}."
    what = "Frame bytes" if len(of_runs) == len(connections) else "Bytes"

    def draw(x: alt.X) -> Sequence[alt.Chart]:
        y = alt.Y("value:Q", title=f"{what} ACKed ({unit})").axis(tickCount=5)
        base = alt.Chart(data).encode(x=x, y=y, color=frame.colour)
        line = base.mark_line(interpolate="step-after", strokeWidth=1.2)
        dots = base.mark_circle(size=10).transform_filter(alt.datum.dot)
        return [
            dots.encode(opacity=frame.unless_hidden(0.9)),
            line.encode(strokeOpacity=frame.unless_hidden(0.8)),
            hover(base, pc.at_time("value", unit, ".3f")),
        ]

    readout = pc.Readout(f"total, {unit}", grid, "value", "range", ".2f")
    notes = [*missing, *([note] if receivers else []), *([counted] if of_runs else [])]
    return pc.Panel(draw, height, readout, notes)


def lag_panel(frame: pc.Frame, connections: pc.Events) -> pc.Panel:
    """Panel of the bytes ACKed minus those of the reference or else of the first connection."""
    connections, _ = pc.reporting(connections, reports_acks, "bytes ACKed")
    base = next((k for k in connections if k == frame.reference), next(iter(connections)))
    series = {label: bytes_acked(events) for label, events in connections.items()}
    end_s = min(time_s[-1] for time_s, _ in series.values())  # The shortest log ends here.
    times_s = np.linspace(frame.start_s, end_s, frame.rows // (2 * len(connections)))
    totals = {label: step_at(times_s, *points) for label, points in series.items()}
    rows = {k: {"time_s": times_s, "kb": (v - totals[base]) / 1e3} for k, v in totals.items()}
    data = pc.table(rows)

    def draw(x: alt.X) -> Sequence[alt.Chart]:
        y = alt.Y("kb:Q", title="Ahead (kB)").axis(tickCount=4)
        lines = alt.Chart(data).mark_line(strokeWidth=1.2).encode(x=x, y=y, color=frame.colour)
        return [
            lines.encode(strokeOpacity=frame.unless_hidden(0.9)),
            hover(lines, pc.at_time("kb", "kB ahead", "+.1f")),
        ]

    note = f"Ahead: bytes ACKed minus those of {base} at that time."
    return pc.Panel(draw, 90, pc.Readout("mean, kB", data, "kb", "mean", "+.1f"), [note])


def bandwidth_panel(frame: pc.Frame, connections: pc.Events, height: int = 130) -> pc.Panel:
    """Panel of the delivery rate (or bytes ACKed per round trip) and the pacing rate."""
    connections, missing = pc.reporting(connections, reports_bandwidth, "bandwidth")
    estimates, notes = _estimates(connections)
    pacing = {
        label: _metric(events, "pacing_rate_mbps")
        for label, events in connections.items()
        if is_reported(events, "pacing_rate_mbps")
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
        tooltip = pc.at_time("value", "Mbit/s", ".2f", kind="Line")
        return [dots.encode(opacity=frame.unless_hidden(0.9)), line, hover(base, tooltip)]

    readout = pc.Readout("mean, Mbit/s", pc.table(steps), "value", "mean", ".2f")
    return pc.Panel(draw, height, readout, [*missing, *notes])


def _estimates(
    connections: pc.Events,
) -> tuple[dict[str, tuple[FloatArray, FloatArray]], list[str]]:
    """Bandwidth of each connection, and sentences about its source."""
    reporting = [
        label for label, events in connections.items() if is_reported(events, "delivery_rate_mbps")
    ]
    others = [label for label in connections if label not in reporting]
    estimates = {
        label: _metric(events, "delivery_rate_mbps") if label in reporting else acked_rate(events)
        for label, events in connections.items()
    }
    notes = [
        f"Bandwidth of {', '.join(labels)}: {how}."
        for labels, how in (
            (reporting, "the delivery rate that the stack reports"),
            (others, "whole packets ACKed in a round trip; the stack reports no delivery rate"),
        )
        if labels
    ]
    return estimates, notes


def _kind(kind: str, rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The rows with a column that names their kind of line."""
    return {k: {**columns, "kind": [kind] * len(columns["dot"])} for k, columns in rows.items()}


def _metric(events: xr.Dataset, name: str) -> tuple[FloatArray, FloatArray]:
    known = np.isfinite(events[name].values)
    return events["metric_time_s"].values[known], events[name].values[known]


def _thinned(
    series: Mapping[str, tuple[FloatArray, FloatArray]], rows: int, divisor: float = 1.0
) -> dict[str, dict[str, Any]]:
    """Points of each label, thinned to fit; ``dot`` is True if they are few."""
    columns: dict[str, dict[str, Any]] = {}
    for label, (time_s, values) in series.items():
        kept = pc.thinned(values, rows // len(series))
        dot = np.full(len(kept), len(values) <= pc.MAX_DOTS)
        columns[label] = {"time_s": time_s[kept], "value": values[kept] / divisor, "dot": dot}
    return columns
