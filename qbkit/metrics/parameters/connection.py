"""One connection as an observer sees it: when each packet was sent, and acknowledged or lost.

All parameters are inferred from these few arrays. They need no log of a stack, so every stack is
judged by the same rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows.lookup import flow_directions, flow_index, flow_labels, known_fate
from qbkit.metrics.flows.over_time import (
    APPLICATION,
    REORDERING,
    first_time_of,
    minimum_from,
    step_at,
)
from qbkit.traces.arrays import BoolArray, FloatArray
from qbkit.traces.run.attributes import delay_changes_ms, spec_of

FULL_PART = 0.6
"""A packet of at least this fraction of the most common size is full-sized."""
ACK_BYTES = 90
"""Frames of at most this size carry no data: ACKs, and part of connection establishment."""
FEWEST_PACKETS = 20
CAPTURE = "pcap"
"""The source of events that come from a capture."""
GRID_PARTS = 4
"""Points per minimum RTT in the series of bytes in flight."""


@dataclass(frozen=True, eq=False)
class Load:
    """Packets of any size that carry data and so count against the congestion window."""

    sent_s: FloatArray
    """(k,) when each packet was sent, in order."""
    acked_or_lost_s: FloatArray
    """(k,) as in `Connection`."""
    delivered_s: FloatArray
    """(k,) as in `Connection`."""
    size_bytes: FloatArray
    """(k,) sizes of the frames."""

    def sent_bytes(self, time_s: FloatArray) -> FloatArray:
        """Bytes sent up to the given times, of the same shape."""
        return step_at(time_s, *self._sent)

    def delivered_bytes(self, time_s: FloatArray) -> FloatArray:
        """Bytes that had passed the bottleneck at the given times, of the same shape."""
        return step_at(time_s, *self._delivered)

    def in_flight_bytes(self, time_s: FloatArray) -> FloatArray:
        """Bytes in flight at the given times, of the same shape."""
        return self.sent_bytes(time_s) - step_at(time_s, *self._acked_or_lost)

    @cached_property
    def _sent(self) -> tuple[FloatArray, FloatArray]:
        return _summed(self.sent_s, self.size_bytes)

    @cached_property
    def _delivered(self) -> tuple[FloatArray, FloatArray]:
        arrived = np.isfinite(self.delivered_s)
        return _summed(self.delivered_s[arrived], self.size_bytes[arrived])

    @cached_property
    def _acked_or_lost(self) -> tuple[FloatArray, FloatArray]:
        return _summed(self.acked_or_lost_s, self.size_bytes)


@dataclass(frozen=True, eq=False)
class SharedLink:
    """The bottleneck link: its rate, and the departures of all flows."""

    rate_mbps: float
    departure_s: FloatArray
    """(k,) when each packet of any flow left the queue, in order."""
    departed_bytes: FloatArray
    """(k,) bytes that had left by that time."""

    def used_part(self, begin_s: FloatArray, end_s: FloatArray) -> FloatArray:
        """Fraction of the link's rate used from each begin to its end, of the same shape."""
        by_end, by_begin = (
            step_at(t, self.departure_s, self.departed_bytes) for t in (end_s, begin_s)
        )
        part: FloatArray = (by_end - by_begin) * 8e-6 / self.rate_mbps / (end_s - begin_s)
        return part


@dataclass(frozen=True, eq=False)
class Connection:
    """Full-sized data packets of one sender, in order of sending; times in s of its clock."""

    label: str
    sent_s: FloatArray
    """(n,) when each packet was sent."""
    acked_or_lost_s: FloatArray
    """(n,) when its ACK arrived or, if it was lost, when ACKs of later packets revealed the
    loss."""
    delivered_s: FloatArray
    """(n,) when it had passed the bottleneck; NaN: lost."""
    ack_s: FloatArray
    """(m,) when ACKs arrived at the sender."""
    packet_bytes: int
    """Size of a full packet."""
    min_rtt_s: float
    """Minimum round-trip time."""
    load: Load
    """All packets that carry data, full-sized or not."""
    link: SharedLink | None = None
    """The bottleneck link; None for a log of one endpoint, which does not show it."""
    receiver_ack_s: FloatArray | None = None
    """(r,) when ACKs left for a way back that may drop or queue them; None: as they arrived."""

    @property
    def lost(self) -> BoolArray:
        """(n,) whether each packet was lost."""
        lost: BoolArray = np.isnan(self.delivered_s)
        return lost

    @cached_property
    def loss_detected_s(self) -> FloatArray:
        """(l,) when the sender detected each loss, in order."""
        return np.sort(self.acked_or_lost_s[self.lost])

    @cached_property
    def overtaken_s(self) -> FloatArray:
        """(o,) when ACKs passed over packets that arrived late, in order.

        `REORDERING` later ones had arrived before each, so that many senders take it for lost (RFC
        9002, section 6.1.1).
        """
        arrived_s, acked_s = self.delivered_s[~self.lost], self.acked_or_lost_s[~self.lost]
        passed = minimum_from(arrived_s)[REORDERING:] < arrived_s[:-REORDERING]
        return np.sort(acked_s[REORDERING:][passed])

    def loss_detected_between(self, begin_s: FloatArray, end_s: FloatArray) -> BoolArray:
        """Whether the sender detected a loss from each begin to its end, of the same shape."""
        return any_between(self.loss_detected_s, begin_s, end_s)

    @cached_property
    def grid_s(self) -> FloatArray:
        """(g,) times of `in_flight_packets`."""
        step_s = self.min_rtt_s / GRID_PARTS
        return np.arange(self.sent_s[0], max(self.sent_s[-1], self.sent_s[0] + step_s), step_s)

    @cached_property
    def in_flight_packets(self) -> FloatArray:
        """(g,) bytes in flight, in full packets; the congestion window if it is fully used."""
        return self.load.in_flight_bytes(self.grid_s) / self.packet_bytes

    @cached_property
    def rtt_s(self) -> FloatArray:
        """(g,) round-trip time of the packets acknowledged last."""
        known = np.flatnonzero(~self.lost)
        acked_or_lost_s = np.maximum.accumulate(self.acked_or_lost_s[known])
        last = np.searchsorted(acked_or_lost_s, self.grid_s, "right") - 1
        rtt_s = (self.acked_or_lost_s - self.sent_s)[known]
        return np.where(last < 0, self.min_rtt_s, rtt_s[np.maximum(last, 0)])


def any_between(times_s: FloatArray, begin_s: FloatArray, end_s: FloatArray) -> BoolArray:
    """Whether a sorted time lies from each begin to its end, of the same shape."""
    by_end, by_begin = (np.searchsorted(times_s, t) for t in (end_s, begin_s))
    found: BoolArray = np.greater(by_end, by_begin)
    return found


def observe(run: xr.Dataset, flow: str | int = 0) -> Connection:
    """A flow of a run, observed from the captures on both sides of the queue alone.

    The testbed delays data by half the base RTT before the queue, and ACKs by the other half before
    the capture; a schedule of delays changes both. With reverse traffic, ACKs then pass a queue
    themselves. Raises MetricError for a flow that cannot be observed: no packet table, no base RTT,
    no ACK, or fewer than 20 full packets.
    """
    index = flow_index(run, flow)
    label = flow_labels(run)[index]
    if "packet_time_s" not in run or "ack_time_s" not in run:
        raise MetricError(f"the run has no packets of {label}, from which parameters are inferred")
    half_s = float(run["base_rtt_ms"].values[index]) / 2e3
    mine = run["packet_flow"].values == index
    mine &= (run["packet_size_bytes"].values > ACK_BYTES) & known_fate(run)
    size_bytes = run["packet_size_bytes"].values[mine].astype(np.float64)
    delivered_s = run["packet_departure_s"].values[mine]
    seen_s = run["ack_departure_s" if "ack_departure_s" in run else "ack_time_s"].values
    of_flow = run["ack_flow"].values == index
    receiver_ack_s = run["ack_time_s"].values[of_flow] if "ack_departure_s" in run else None
    arrived = of_flow & np.isfinite(seen_s)
    ack_s, seen_s = run["ack_time_s"].values[arrived], seen_s[arrived]
    queued_s = run["packet_time_s"].values[mine]
    before_s, after_s = (delay_changes_ms(run, at_s) / 2e3 for at_s in (queued_s, delivered_s))
    sent_s = queued_s - half_s - before_s
    if before_s.any():
        sent_s = np.maximum.accumulate(sent_s)  # packets keep their order
    back_s = delivered_s + half_s + after_s
    acked_or_lost_s = np.maximum(_acked_or_lost_s(back_s, ack_s, seen_s), sent_s)
    first_s = 2 * (half_s + float(before_s[:1].sum()))  # of slow start, where it matters most
    load = Load(sent_s, acked_or_lost_s, delivered_s, size_bytes)
    # The kernel counts packets, not bytes, and a server of HTTP/2 also sends small ones.
    full_part = 0.0 if run.attrs.get("protocol") == "h2" else FULL_PART
    link = link_of(run, index)
    found = connection_of(label, load, seen_s, first_s, link, full_part)
    return replace(found, receiver_ack_s=receiver_ack_s)


def link_of(run: xr.Dataset, index: int) -> SharedLink | None:
    """The only bottleneck of a flow's data; None if there are several, or the rate is unknown.

    Its rate is that of a policer, where one lets less pass than the link.
    """
    spec = spec_of(run)
    policer_mbps = (spec.get("bottleneck") or {}).get("policer_mbps") or math.inf
    rate_mbps = min(float(run.attrs.get("rate_mbps", math.nan)), policer_mbps)
    several = spec.get("topology") == "parking_lot"
    if several or not rate_mbps > 0:
        return None
    departure_s = run["packet_departure_s"].values
    ways = np.array(flow_directions(run))
    left = np.isfinite(departure_s) & (ways == ways[index])[run["packet_flow"].values]
    sizes = run["packet_size_bytes"].values[left].astype(np.float64)
    return SharedLink(rate_mbps, *_summed(departure_s[left], sizes))


def observe_events(events: xr.Dataset) -> Connection:
    """A connection as its sender saw it, from a log (`qb.read_qlog` and the other readers).

    A capture may have been made anywhere between the sender and the queue: times are moved to the
    sender's clock by the handshake, and a packet is lost when an ACK of a later one comes. In a log
    without losses, as quiche's, that is an ACK of one three packets later (RFC 9002, section
    6.1.1). Packets that were neither acknowledged nor lost are left out. Raises MetricError as
    `observe` does.
    """
    label = str(events.attrs.get("title", "")) or "the connection"
    size_bytes = events["sent_size_bytes"].values
    mine = (events["sent_space"].values == APPLICATION) & (size_bytes > ACK_BYTES)
    sent_s = events["sent_time_s"].values[mine]
    number = events["sent_number"].values[mine]
    acked_s = first_time_of(events, "acked", number)
    lost_s = first_time_of(events, "lost", number)
    if events.attrs.get("source") == CAPTURE:
        sent_s = sent_s - sender_side_s(events)
        later_s = minimum_from(acked_s)
        lost_s = np.where(np.isfinite(lost_s) & np.isfinite(later_s), later_s, lost_s)
    elif not events.sizes["lost"]:
        lost_s = _passed_over_s(acked_s)
    acked_or_lost_s = np.where(np.isnan(lost_s), acked_s, lost_s)
    known = np.isfinite(acked_or_lost_s)
    rtt_s = (acked_s - sent_s)[np.isfinite(acked_s)]
    min_rtt_s = float(rtt_s.min(initial=np.inf))
    delivered_s = np.where(np.isnan(lost_s), acked_s - min_rtt_s / 2, np.nan)
    sizes = size_bytes[mine].astype(np.float64)
    load = Load(*(values[known] for values in (sent_s, acked_or_lost_s, delivered_s, sizes)))
    ack_s = np.unique(events["acked_time_s"].values)
    return connection_of(label, load, ack_s, min_rtt_s)


def _passed_over_s(acked_s: FloatArray) -> FloatArray:
    """When the first ACK came of a packet `REORDERING` later; NaN for those that were acked."""
    later_s = minimum_from(acked_s)
    passed_s = np.append(later_s[REORDERING:], np.full(min(REORDERING, len(acked_s)), np.inf))
    return np.where(np.isnan(acked_s) & np.isfinite(passed_s), passed_s, np.nan)


def sender_side_s(events: xr.Dataset) -> float:
    """Time in s from the place of a capture to the sender and back, by the handshake; 0 without.

    It is how long the sender took to answer the first packet that it received.
    """
    came = events["handshake_direction"].values == "received"
    time_s = events["handshake_time_s"].values
    if not came.any():
        return 0.0
    answers_s = time_s[~came & (time_s >= time_s[came][0])]
    return float(answers_s.min() - time_s[came][0]) if len(answers_s) else 0.0


def connection_of(
    label: str,
    load: Load,
    ack_s: FloatArray,
    min_rtt_s: float,
    link: SharedLink | None = None,
    full_part: float = FULL_PART,
) -> Connection:
    """The connection of a load; MetricError below 20 full packets, or without an RTT or an ACK."""
    packet_bytes = _common_size(load.size_bytes)
    full = load.size_bytes >= full_part * packet_bytes
    if full.sum() < FEWEST_PACKETS:
        raise MetricError(
            f"{label} sent {int(full.sum())} of the {FEWEST_PACKETS} full packets or more that "
            "parameters need"
        )
    if not len(ack_s) or np.isnan(load.delivered_s[full]).all():
        raise MetricError(f"no ACK reached {label}; parameters need packets that arrived")
    if not 0 < min_rtt_s < np.inf:
        raise MetricError(
            f"the base RTT of {label} is unknown, but parameters need it; for captures, give rtt_ms"
        )
    return Connection(
        label=label,
        sent_s=load.sent_s[full],
        acked_or_lost_s=load.acked_or_lost_s[full],
        delivered_s=load.delivered_s[full],
        ack_s=ack_s,
        packet_bytes=packet_bytes,
        min_rtt_s=min_rtt_s,
        load=load,
        link=link,
    )


def between(grid_s: FloatArray, begin_s: float, end_s: float) -> slice:
    """Points of a grid from a time on, until before another."""
    low, high = np.searchsorted(grid_s, [begin_s, end_s])
    return slice(int(low), int(high))


def _summed(event_s: FloatArray, size_bytes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Times of the events in order, and the cumulative bytes at each."""
    order = np.argsort(event_s, kind="stable")
    return event_s[order], np.cumsum(size_bytes[order])


def _common_size(size_bytes: FloatArray) -> int:
    """Size of the packets that carry most bytes."""
    if not len(size_bytes):
        return 1
    sizes, counts = np.unique(size_bytes, return_counts=True)
    return int(sizes[np.argmax(sizes.astype(np.float64) * counts)])


def _acked_or_lost_s(back_s: FloatArray, ack_s: FloatArray, seen_s: FloatArray) -> FloatArray:
    """Time of the first ACK that can report each packet: its own, or a later one if it was lost.

    ``ack_s`` is when each ACK passed the capture, ``seen_s`` when the sender received it. A packet
    that no ACK reports gets the end of the trace.
    """
    if not len(ack_s) or np.isnan(back_s).all():
        return np.full(len(back_s), np.nan)
    later_s = minimum_from(back_s)
    first = np.searchsorted(ack_s, later_s - 1e-6)
    known_s = np.where(np.isfinite(later_s), later_s, np.nanmax(back_s))
    ended_s = np.maximum(known_s, seen_s[-1])
    return np.where(first < len(ack_s), seen_s[np.minimum(first, len(ack_s) - 1)], ended_s)
