"""A short time of a run, packet by packet: into the queue, out of it, and the ACKs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from qbkit.metrics.flows.lookup import flow_labels
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.data import inline
from qbkit.plots.flows.congestion import cwnd_panel, reports_window
from qbkit.plots.flows.connection import Frame, Panel, stacked
from qbkit.plots.flows.recovery import draws_losses, loss_panel
from qbkit.traces.logs.kept import own_events
from qbkit.traces.logs.run_flow import flow_events

HEIGHT, QUEUE_HEIGHT, WINDOW_HEIGHT = 220, 70, 120
IN, LOST, OUT, ACK = 3, 2, 1, 0
LANES = {IN: "into the queue", LOST: "lost", OUT: "out of the queue", ACK: "ACKs"}
"""Place of each line of the diagram → its name, from top to bottom."""
DECIMALS = 6
"""Of seconds: packets follow each other within microseconds."""
TABLES = ("sent", "received", "acked", "lost", "metric", "state")
"""Tables of a flow's events."""
LASTING = ("metric", "state")
"""Those whose rows hold until the next one."""
TOOLTIP = [
    alt.Tooltip("label:N", title="Flow"),
    alt.Tooltip("time_s:Q", title="At the queue (s)", format=".6f"),
    alt.Tooltip("fate:N", title="Fate"),
    alt.Tooltip("delay_ms:Q", title="In the queue (ms)", format=".3f"),
    alt.Tooltip("frame_bytes:Q", title="Frame (B)"),
    alt.Tooltip("header:N", title="Header"),
    alt.Tooltip("packet:Q", title="Number in before.pcap", format="d"),
]


def sequence_chart(
    ds: xr.Dataset,
    packets: pd.DataFrame,
    span_s: tuple[float, float],
    *,
    kept: Path | None = None,
    title: str = "Packet by packet",
    sentences: Sequence[str] = (),
) -> alt.VConcatChart:
    """Sequence diagram of a span of a run, with the queue, the windows and the states below it.

    ``packets`` are those of `qbkit.traces.run.dissected.packets_within`. A line leads from where a
    packet reaches the queue to where it leaves it; a cross is a lost packet. Its tooltip has the
    header, of which QUIC shows only what is not encrypted. ACKs are drawn where they reach the
    bottleneck on their way back. Windows and states are the stack's own: of its qlog, if the folder
    ``kept`` with the run has one, and else of its telemetry.
    """
    own = {
        label: flow_events(ds, i) if kept is None else own_events(ds, kept, i)
        for i, label in enumerate(flow_labels(ds))
    }
    events = {label: _during(each, span_s) for label, each in own.items()}
    frame = Frame(events, span_s=span_s)
    panels = [_ladder(frame, packets), _queue(packets)]
    if any(reports_window(each) for each in events.values()):
        panels.append(cwnd_panel(frame, events, WINDOW_HEIGHT))
    if any(draws_losses(each) for each in events.values()):
        panels.append(loss_panel(frame, events))
    notes = [
        _own_note(label, tables) for label, each in own.items() if (tables := each.attrs.get("own"))
    ]
    return stacked(frame, panels, title, notes, first=sentences)


def _own_note(label: str, tables: str) -> str:
    """Which of a flow's lines its qlog draws."""
    names = {"metric": "window", "state": "states"}
    return f"By its qlog: {' and '.join(names[t] for t in tables.split())} of {label}."


def _during(events: xr.Dataset, span_s: tuple[float, float]) -> xr.Dataset:
    """The events of a span; the last metric and state before it count from its start on."""
    start_s, stop_s = span_s
    for table in TABLES:
        if not events.sizes.get(table):
            continue
        name = f"{table}_time_s"
        time_s = events[name].values
        kept = (time_s >= start_s) & (time_s <= stop_s)
        before = np.flatnonzero(time_s < start_s)
        if table in LASTING and len(before):
            kept[before[-1]] = True
        events = events.isel({table: kept})
        events[name] = events[name].clip(min=start_s)
    return events


def _ladder(frame: Frame, packets: pd.DataFrame) -> Panel:
    """Panel with a line for each packet, from lane to lane."""
    data = inline(_lines(packets), DECIMALS)
    lanes = ", ".join(f"{place}: {name!r}" for place, name in LANES.items())
    axis = alt.Axis(values=[*LANES], labelExpr=f"({{{lanes}}})[datum.value]", grid=True, title=None)
    scale = alt.Scale(domain=[ACK - 0.3, IN + 0.3], nice=False, zero=False)

    def draw(x: alt.X) -> Sequence[alt.Chart]:
        chart = alt.Chart(data).encode(color=frame.colour, tooltip=TOOLTIP)
        y = alt.Y("from:Q", axis=axis, scale=scale)
        base = chart.encode(x=x, y=y)
        through = base.transform_filter("isValid(datum.to_s)").encode(x2="to_s:Q", y2="to:Q")
        out = chart.encode(x="to_s:Q", y="to:Q").transform_filter("isValid(datum.to_s)")
        lost = base.encode(y="to:Q").transform_filter(f"datum.to === {LOST}")
        return [
            through.mark_rule(strokeWidth=0.7, clip=True).encode(opacity=frame.unless_hidden(0.5)),
            base.mark_circle(size=12, clip=True).encode(opacity=frame.unless_hidden(0.9)),
            out.mark_circle(size=12, clip=True).encode(opacity=frame.unless_hidden(0.9)),
            lost.mark_point(shape="cross", angle=45, size=70, filled=True, clip=True).encode(
                opacity=frame.unless_hidden(1.0)
            ),
        ]

    notes = "A line is a packet, from where it reaches the queue to where it leaves it."
    return Panel(draw, HEIGHT, notes=[notes])


def _lines(packets: pd.DataFrame) -> dict[str, Any]:
    """Columns of the lines; a lost packet goes no further, and ACKs stay in their lane."""
    is_ack = (packets.direction == "to sender").to_numpy()
    delay_ms = packets.get("queue_delay_ms", pd.Series(np.nan, packets.index)).to_numpy(float)
    fate = packets.get("fate", pd.Series("", packets.index)).where(~is_ack, "")
    is_lost = fate.str.contains("dropped|lost").to_numpy()
    time_s = packets.time_s.to_numpy()
    to_s = np.where(is_lost | is_ack, time_s, time_s + delay_ms / 1e3)
    return {
        "label": packets.flow,
        "time_s": time_s,
        "to_s": to_s,
        "from": np.where(is_ack, ACK, IN),
        "to": np.select([is_ack, is_lost], [ACK, LOST], OUT),
        "fate": fate.to_numpy(str),
        "delay_ms": delay_ms,
        "frame_bytes": packets.frame_bytes,
        "header": [_header(row) for row in packets.to_dict("records")],
        "packet": packets.index,
    }


def _header(row: dict[str, Any]) -> str:
    """The fields of a header in one line."""
    numbers = [f"{name} {row[name]}" for name in ("seq", "ack", "window") if _known(row, name)]
    words = [str(row[name]) for name in ("header", "ecn") if row.get(name)]
    return " ".join([str(row["protocol"]), ", ".join([*numbers, *words])]).strip()


def _known(row: dict[str, Any], name: str) -> bool:
    return name in row and not pd.isna(row[name])


def _queue(packets: pd.DataFrame) -> Panel:
    """Panel of how many packets of all flows are in the queue."""
    lines = _lines(packets)
    through = np.array(lines["to"]) == OUT
    enters_s, leaves_s = lines["time_s"][through], lines["to_s"][through]
    leaves_s = leaves_s[np.isfinite(leaves_s)]
    time_s = np.concatenate([enters_s, leaves_s])
    change = np.concatenate([np.ones(len(enters_s), int), -np.ones(len(leaves_s), int)])
    order = np.argsort(time_s, kind="stable")
    columns = {"time_s": time_s[order], "packets": np.cumsum(change[order])}
    data = inline(columns, DECIMALS)

    def draw(x: alt.X) -> Sequence[alt.Chart]:
        line = alt.Chart(data).mark_line(
            interpolate="step-after", color=theme.QUIET_INK, strokeWidth=1, clip=True
        )
        y = alt.Y("packets:Q", title="In the queue").axis(tickCount=3, tickMinStep=1)
        tips = [
            alt.Tooltip("time_s:Q", title="Time (s)", format=".6f"),
            alt.Tooltip("packets:Q", title="Packets in the queue"),
        ]
        return [line.encode(x=x, y=y, tooltip=tips)]

    return Panel(draw, QUEUE_HEIGHT)
