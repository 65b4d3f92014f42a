"""Timeline of losses and congestion states, with the congestion window beneath."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import altair as alt
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows.over_time import Span, recoveries, states
from qbkit.plots.flows.congestion import cwnd_panel, reports_window
from qbkit.plots.flows.connection import Events, Frame, Panel, Readout, at_time, stacked, table

ROW_HEIGHT = 46
MAX_SPANS = 500
"""Most spans of one connection; the shortest gaps are closed until no more are left."""
TRIGGERS = {
    "": "trigger not reported",
    "queue": "dropped at the bottleneck",
    "random": "lost at random after the queue",
}
RECOVERY = "recovery"
STEADY = {"congestion_avoidance", "probe_bw", "probe_bw_cruise"}
"""Steady states, which stay white."""
STATE_COLOURS = {
    RECOVERY: "#F3B49B",
    "slow_start": "#CDE9DC",
    "startup": "#CDE9DC",
    "drain": "#D5D8F5",
    "probe_rtt": "#F6DFA6",
    "probe_bw_up": "#BFE0F2",
    "probe_bw_down": "#E3E0D3",
    "probe_bw_refill": "#DDF0FA",
    "application_limited": "#E4E7EB",
}
OTHER_STATE = "#E9D8EC"
STATE_TOOLTIP = [
    alt.Tooltip("label:N", title="Connection"),
    alt.Tooltip("state:N", title="State"),
    alt.Tooltip("time_s:Q", title="From (s)", format=".3f"),
    alt.Tooltip("to_s:Q", title="To (s)", format=".3f"),
]
TOOLTIP = [
    *at_time("packets", "Packets lost", "d", trigger="Trigger", spurious="Spurious"),
    alt.Tooltip("first:Q", title="First of them", format="d"),
]


def loss_chart(
    connections: xr.Dataset | Events,
    *,
    reference: str | None = None,
    title: str = "Losses and recovery",
) -> alt.VConcatChart:
    """Lost packets by trigger (hollow: spurious) on the states of the controller; cwnd beneath.

    ``connections`` is one connection, or several by label. The size of a mark shows how many
    packets were lost at about its time. Recovery is as the stack reports it, or else inferred
    (RFC 9002 §7.3.2); the subtitle says which. The window, or else the bytes in flight, are left
    out if no connection reports them.
    Raises MetricError if no connection reports a loss or a state.
    """
    if isinstance(connections, xr.Dataset):
        connections = {connections.attrs.get("title") or "connection": connections}
    frame = Frame(connections, reference)
    panels = [loss_panel(frame, connections)]
    if any(reports_window(events) for events in connections.values()):
        panels.append(cwnd_panel(frame, connections))
    return stacked(frame, panels, title, [])


def reports_losses(events: xr.Dataset) -> bool:
    """Whether the log reports a loss or a congestion state."""
    return bool(events.sizes["lost"] or events.sizes["state"])


def draws_losses(events: xr.Dataset) -> bool:
    """Whether a panel of these losses and states has anything to draw; steady ones are not."""
    return bool(events.sizes["lost"] or _spans(events)["state"])


def loss_panel(frame: Frame, connections: Events) -> Panel:
    """Panel with one row per connection: its losses over its states."""
    if not any(reports_losses(events) for events in connections.values()):
        raise MetricError("no connection reports a loss or a congestion state; choose others")
    inferred = [label for label, events in connections.items() if _infers(events)]
    spans = {label: _spans(events) for label, events in connections.items()}
    losses = {label: _losses(frame, events) for label, events in connections.items()}
    names = [state for label in spans for state in spans[label]["state"]]
    triggers = sorted({trigger for rows in losses.values() for trigger in rows["trigger"]})
    span_data, loss_data = table(spans), table(losses)
    row = alt.Y("label:N", title=None, sort=None).scale(domain=list(connections), padding=0.16)
    # Vega gives a legend without entries an infinite size.
    squares = alt.Legend(symbolType="square", symbolOpacity=1.0) if names else None
    fill = alt.Fill("state:N", legend=squares)

    def draw(x: alt.X) -> Sequence[alt.Chart]:
        bars = alt.Chart(span_data).mark_bar(opacity=0.9, stroke=None)
        bars = bars.encode(
            x=x, x2="to_s:Q", y=row, fill=fill.scale(_state_scale(names)), tooltip=STATE_TOOLTIP
        )
        marks = alt.Chart(loss_data).encode(
            x=x,
            y=row,
            color=frame.colour,
            shape=alt.Shape("trigger:N", legend=alt.Legend() if triggers else None).scale(
                domain=triggers
            ),
            size=alt.Size("packets:Q", legend=None).scale(type="sqrt", range=[14, 260]),
            opacity=frame.unless_hidden(0.85),
            tooltip=TOOLTIP,
        )
        real = marks.transform_filter("!datum.spurious").mark_point(filled=True)
        spurious = marks.transform_filter("datum.spurious").mark_point(filled=False)
        return [bars, real, spurious.encode(strokeWidth=alt.value(1.4))]

    note = f"Recovery of {', '.join(inferred)}: inferred from losses (RFC 9002 §7.3.2)."
    marks = "Marks are lost packets: larger marks for more packets, hollow for spurious losses."
    return Panel(
        draw,
        ROW_HEIGHT * len(connections) + 8,
        Readout("packets lost", loss_data, "packets", "sum", ",d"),
        [marks, note] if inferred else [marks],
    )


def _infers(events: xr.Dataset) -> bool:
    return RECOVERY not in events["state_name"].values and bool(events.sizes["lost"])


def _spans(events: xr.Dataset) -> dict[str, Any]:
    """Columns of a connection's states other than the steady ones; inferred recovery is on top."""
    named = (s._replace(state=s.state.removeprefix("bbr_")) for s in states(events))  # quiche's
    spans = [s for s in named if s.state not in STEADY]
    if _infers(events):
        spans += recoveries(events)
    spans = _fewer(spans)
    return {
        "state": [s.state.replace("_", " ") for s in spans],
        "time_s": [s.from_s for s in spans],
        "to_s": [s.to_s for s in spans],
    }


def _fewer(spans: Sequence[Span]) -> list[Span]:
    """At most `MAX_SPANS` spans: neighbours in the same state are joined over the shortest gaps."""
    if len(spans) <= MAX_SPANS:
        return list(spans)
    gaps_s = sorted(b.from_s - a.to_s for a, b in pairwise(spans))
    bridge_s = gaps_s[len(spans) - MAX_SPANS]
    joined: list[Span] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last and last.state == span.state and span.from_s - last.to_s <= bridge_s:
            joined[-1] = Span(last.state, last.from_s, max(last.to_s, span.to_s))
        else:
            joined.append(span)
    return joined


def _losses(frame: Frame, events: xr.Dataset) -> dict[str, Any]:
    """Columns of the losses, counted by trigger and kind in bins of a pixel or two."""
    width_s = (frame.end_s - frame.start_s) / max(frame.rows // (4 * len(frame.labels)), 40)
    found: dict[tuple[int, str, bool], list[float]] = {}
    columns = ("lost_time_s", "lost_trigger", "lost_spurious", "lost_number")
    for time_s, trigger, spurious, number in zip(
        *(events[name].values.tolist() for name in columns), strict=True
    ):
        place = (int(time_s / width_s), TRIGGERS.get(trigger, trigger), bool(spurious))
        at = found.setdefault(place, [time_s, 0, number])
        at[1] += 1
    return {
        "time_s": [at[0] for at in found.values()],
        "packets": [int(at[1]) for at in found.values()],
        "first": [int(at[2]) for at in found.values()],
        "trigger": [trigger.replace("_", " ") for _, trigger, _ in found],
        "spurious": [spurious for _, _, spurious in found],
    }


def _state_scale(names: Sequence[str]) -> alt.Scale:
    """Scale from the states that occur to their colours, always in the same order."""
    known = {state.replace("_", " "): colour for state, colour in STATE_COLOURS.items()}
    domain = [*(n for n in known if n in names), *sorted(set(names) - set(known))]
    return alt.Scale(domain=domain, range=[known.get(name, OTHER_STATE) for name in domain])
