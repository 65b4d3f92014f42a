"""Bytes ACKed, rates, round trips and recovery of one connection over time, from its events.

All functions take an events dataset (`qbkit.traces.logs.events.EventTables.dataset`) from any kind
of log, and consider the application data packet number space.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.traces.arrays import BoolArray, FloatArray, IntArray

APPLICATION = 2
MAX_TRIPS = 20_000
"""Most round trips considered; of longer connections, every n-th one."""
RTT_METRICS = ("srtt_ms", "latest_rtt_ms", "min_rtt_ms")
REORDERING = 3
"""A packet is lost when one sent this many packets later is ACKed (RFC 9002 §6.1.1)."""


class Span(NamedTuple):
    """A congestion state from ``from_s`` to ``to_s``, in seconds."""

    state: str
    from_s: float
    to_s: float


def time_span_s(events: xr.Dataset) -> tuple[float, float]:
    """First and last time of any event; MetricError without events.

    What a sender still receives after everything else is none of its transfer.
    """
    tables = [str(n) for n in events.data_vars if str(n).endswith("_time_s")]
    times = {name: events[name].values for name in tables if len(events[name])}
    if not is_receiver(events) and len(times) > 1:
        times.pop("received_time_s", None)
    if not times:
        raise MetricError("the log has no events; choose another")
    starts, ends = ([edge(t) for t in times.values()] for edge in (np.min, np.max))
    return float(min(starts)), float(max(ends))


def bytes_acked(events: xr.Dataset) -> tuple[FloatArray, FloatArray]:
    """Times (s) of the ACKs of new packets, and the bytes ACKed up to each.

    In a receiver's log, received packets count as ACKed. Events of a run (`qbkit.flow_events`) have
    whole frames, whose headers count. Raises MetricError if the log reports no
    packets, or no sizes.
    """
    table = "received" if is_receiver(events) else "acked"
    mine = _application(events, table)
    time_s = events[f"{table}_time_s"].values[mine].astype(float)
    size_bytes = events[f"{table}_size_bytes"].values[mine].astype(float)
    if not size_bytes.sum():
        raise MetricError("the log has no acknowledged packet of known size; use another log")
    order = np.argsort(time_s, kind="stable")
    total = np.cumsum(size_bytes[order])
    last = np.append(np.flatnonzero(np.diff(time_s[order])), len(total) - 1)
    return time_s[order][last], total[last]


def is_receiver(events: xr.Dataset) -> bool:
    """Whether the log is that of a receiver: more bytes were received than sent."""
    received, sent = (events[f"{table}_size_bytes"].values for table in ("received", "sent"))
    return bool(received.sum() > sent.sum())


def rtt(events: xr.Dataset) -> tuple[FloatArray, FloatArray]:
    """Times (s) and RTT (s): the smoothed, else latest, else minimum RTT that the stack reports.

    If it reports none, the time from each packet to its acknowledgement. Raises MetricError if that
    is unknown too.
    """
    for name in RTT_METRICS:
        if name in events:
            value_s = events[name].values / 1e3
            known = np.isfinite(value_s) & (value_s > 0)
            if known.any():
                return events["metric_time_s"].values[known], value_s[known]
    acked_s = events["acked_time_s"].values[_application(events, "acked")]
    rtt_s = acked_s - sent_time_of(events, "acked")
    known = np.isfinite(rtt_s) & (rtt_s > 0)
    if not known.any():
        raise MetricError("the log has neither RTTs nor packets with their acknowledgements")
    order = np.argsort(acked_s[known], kind="stable")
    return acked_s[known][order], rtt_s[known][order]


def round_trips(events: xr.Dataset) -> tuple[FloatArray, int]:
    """Times (s) at which round trips end, by the RTT at that time, and round trips per step.

    A step has more than one round trip only in connections of more than `MAX_TRIPS`.
    """
    time_s, rtt_s = rtt(events)
    start_s, end_s = time_span_s(events)
    time_s = np.concatenate([[start_s], time_s, [end_s]])
    pace = 1 / np.concatenate([rtt_s[:1], rtt_s, rtt_s[-1:]])
    order = np.argsort(time_s, kind="stable")
    time_s, pace = time_s[order], pace[order]
    trips = np.concatenate([[0.0], np.cumsum(np.diff(time_s) * (pace[1:] + pace[:-1]) / 2)])
    step = max(1, -int(-trips[-1] // MAX_TRIPS))
    return np.interp(np.arange(0, trips[-1], step), trips, time_s), step


def acked_rate(events: xr.Dataset) -> tuple[FloatArray, FloatArray]:
    """Rate of the bytes ACKed in each round trip (Mbit/s), and the time (s) when the trip ended."""
    ends_s, _ = round_trips(events)
    acked_s, total = bytes_acked(events)
    if len(ends_s) < 2:
        raise MetricError("the connection is shorter than one round trip, so it has no rate")
    at_end = step_at(ends_s, acked_s, total)
    return ends_s[1:], np.diff(at_end) * 8 / 1e6 / np.diff(ends_s)


def cwnd_growth(events: xr.Dataset) -> tuple[FloatArray, FloatArray]:
    """Growth of cwnd in each round trip (bytes per RTT), and the time (s) when the trip ended."""
    ends_s, step = round_trips(events)
    cwnd = value_at(events, "cwnd_bytes", ends_s)
    return ends_s[1:], np.diff(cwnd) / step


def value_at(events: xr.Dataset, name: str, times_s: FloatArray) -> FloatArray:
    """Last value of a metric reported before each time; NaN before the first."""
    values = events[name].values.astype(float)
    known = ~np.isnan(values)
    return step_at(times_s, events["metric_time_s"].values[known], values[known], np.nan)


def step_at(
    times_s: FloatArray, event_s: FloatArray, value: FloatArray, before: float = 0.0
) -> FloatArray:
    """Value of the last event up to each time; ``before`` at times before the first event."""
    return np.concatenate([[before], value])[np.searchsorted(event_s, times_s, side="right")]


def is_reported(events: xr.Dataset, name: str) -> bool:
    """Whether the events have at least one finite value of a metric."""
    return name in events and bool(np.isfinite(events[name].values).any())


def states(events: xr.Dataset) -> list[Span]:
    """Congestion states as the stack reports them, each until the next one or the end."""
    end_s = time_span_s(events)[1]
    spans: list[Span] = []
    for time_s, name in zip(
        events["state_time_s"].values.tolist(), events["state_name"].values.tolist(), strict=True
    ):
        if spans and spans[-1].state == name:
            continue
        if spans:
            spans[-1] = Span(spans[-1].state, spans[-1].from_s, time_s)
        spans.append(Span(name, time_s, end_s))
    return spans


def recoveries(events: xr.Dataset) -> list[Span]:
    """Recovery periods inferred from losses (RFC 9002 §7.3.2), for stacks that do not report them.

    A period begins when a packet sent after the start of the previous period is detected as lost.
    It ends when a packet sent during the period is acknowledged.
    """
    end_s = time_span_s(events)[1]
    acked_number = events["acked_number"].values[_application(events, "acked")]
    acked_s = events["acked_time_s"].values[_application(events, "acked")]
    detected_s = _detected(events, acked_number, acked_s)
    acked_sent_s = sent_time_of(events, "acked")
    by_sent = np.argsort(acked_sent_s, kind="stable")[: np.isfinite(acked_sent_s).sum()]
    sent_order, first_ack_s = acked_sent_s[by_sent], minimum_from(acked_s[by_sent])
    spans: list[Span] = []
    for begin_s, sent_s in sorted(zip(detected_s, sent_time_of(events, "lost"), strict=True)):
        if not spans or sent_s > spans[-1].from_s:
            row = int(np.searchsorted(sent_order, begin_s, side="right"))
            until_s = float(first_ack_s[row]) if row < len(first_ack_s) else end_s
            spans.append(Span("recovery", float(begin_s), max(until_s, float(begin_s))))
    return spans


def sent_time_of(events: xr.Dataset, table: str) -> FloatArray:
    """When the packets of a table (``acked`` or ``lost``) were sent (s); NaN if unknown."""
    wanted = events[f"{table}_number"].values[_application(events, table)]
    return first_time_of(events, "sent", wanted)


def first_time_of(events: xr.Dataset, table: str, wanted: IntArray) -> FloatArray:
    """First time (s) at which a table has each of these packet numbers; NaN: never."""
    mine = _application(events, table)
    number, time_s = events[f"{table}_number"].values[mine], events[f"{table}_time_s"].values[mine]
    if not len(number):
        return np.full(len(wanted), np.nan)
    order = np.argsort(number, kind="stable")
    rows = np.minimum(np.searchsorted(number[order], wanted), len(number) - 1)
    found = number[order][rows] == wanted
    return np.where(found, time_s[order][rows], np.nan)


def _application(events: xr.Dataset, table: str) -> BoolArray:
    mine: BoolArray = events[f"{table}_space"].values == APPLICATION
    return mine


def _detected(events: xr.Dataset, acked_number: IntArray, acked_s: FloatArray) -> FloatArray:
    """Time of each loss detection: not before a packet sent `REORDERING` later was ACKed."""
    mine = _application(events, "lost")
    lost_s, lost_number = events["lost_time_s"].values[mine], events["lost_number"].values[mine]
    order = np.argsort(acked_number, kind="stable")
    rows = np.searchsorted(acked_number[order], lost_number + REORDERING)
    noticed_s = np.append(minimum_from(acked_s[order]), -np.inf)[rows]
    return np.maximum(lost_s, noticed_s)


def minimum_from(values: FloatArray) -> FloatArray:
    """Minimum of each value and all values after it that are not NaN; NaN without one."""
    return np.fmin.accumulate(values[::-1])[::-1]
