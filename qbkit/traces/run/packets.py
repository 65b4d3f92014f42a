"""Data packets and acknowledgements of every flow, from the captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from qbkit.traces.arrays import BoolArray, IntArray, as_slice, small
from qbkit.traces.run.frames import Packets
from qbkit.traces.run.journey import Fate, Journey, after_the_last, newly_marked
from qbkit.traces.run.match import NEVER, departures_ns, match


@dataclass(frozen=True)
class FlowPackets:
    """Data packets in order of arrival at the queue, and acknowledgements, with their flows."""

    data: Packets
    data_flow: IntArray
    departure_ns: IntArray
    """Departure of the packet from the queue to its receiver; `NEVER` if it was lost."""
    fate: IntArray
    """Values of `Fate`."""
    marked: BoolArray
    """Whether a queue marked the packet with CE; False for what was lost."""
    acks: Packets
    ack_flow: IntArray
    ack_ends: tuple[IntArray, IntArray] | None = None
    """Departure and fate of each acknowledgement; None where nothing can happen to them."""
    left_ns: IntArray | None = None
    """Departure of each packet from its last queue, where the path behind it may hold packets."""


@dataclass(frozen=True, kw_only=True)
class Matched(FlowPackets):
    """The same from two captures alone."""

    out: Packets
    """The data packets after the queue."""

    @property
    def unexplained(self) -> int:
        """How many packets came out without going in."""
        return len(self.out) - int((self.departure_ns != NEVER).sum())


def sort_out(
    before: Packets,
    after: Packets,
    flow_of_port: Mapping[int, int],
    senders: Sequence[int],
    slack_ns: int = 0,
) -> Matched:
    """Match the captures before and after a queue, with no other information.

    Packets that did not come out were dropped. Those after the last packet of their flow that came
    out may have been in the queue when the capture ended; their fate is unknown.

    ``flow_of_port`` maps a server's port to its flow. A packet is data if its source is one of
    ``senders`` (addresses as in `Packets.source`), and an acknowledgement if only its destination
    is; others are left out. A packet may seem to leave up to ``slack_ns``
    before it arrives, if the clocks differ slightly; its delay is then zero.
    """
    flow_in, data_in = _classify(before, flow_of_port, senders)
    _, data_out = _classify(after, flow_of_port, senders)
    data, out = before.take(data_in), after.take(data_out)
    found = match(data.key, data.time_ns - slack_ns, out.key, out.time_ns)
    departure_ns = departures_ns(found, out.time_ns)
    came_out = departure_ns != NEVER
    departure_ns[came_out] = np.maximum(departure_ns, data.time_ns)[came_out]
    to_senders = np.isin(before.ways.destination, np.array(senders, np.uint64))[before.way]
    reverse = ~data_in & (flow_in >= 0) & to_senders
    fate = np.where(came_out, Fate.ARRIVED, Fate.QUEUE_DROP)
    fate[after_the_last(flow_in[data_in], data.time_ns, came_out)] = Fate.UNKNOWN
    return Matched(
        data=data,
        data_flow=flow_in[data_in],
        departure_ns=departure_ns,
        fate=fate,
        marked=newly_marked(data, found, out),
        acks=before.take(reverse),
        ack_flow=flow_in[reverse],
        out=out,
    )


def of_run(
    journey: Journey,
    back: Packets | None,
    flow_of_port: Mapping[int, int],
    senders: Sequence[int],
    span_ns: tuple[int, int],
    *,
    path_holds: bool = False,
) -> FlowPackets:
    """The flows' packets that reached the first queue within the span, and their ACKs.

    ``back`` are the packets to the senders, or None where the journey has them, as they may be
    lost. ``path_holds`` says whether the path behind the last queue delays packets.
    """
    acks_followed = back is None

    def within(packets: Packets) -> BoolArray:
        return (packets.time_ns >= span_ns[0]) & (packets.time_ns < span_ns[1])

    sent = journey.packets
    flow, data = _classify(sent, flow_of_port, senders)
    back = sent if back is None else back
    back_flow, no_ack = _classify(back, flow_of_port, senders)
    data, acks = data & within(sent), ~no_ack & (back_flow >= 0) & within(back)
    on, to = as_slice(data), as_slice(acks)
    return FlowPackets(
        data=sent.take(data).without_keys(),
        data_flow=flow[on],
        departure_ns=journey.arrived_ns[on],
        fate=journey.fate[on],
        marked=journey.marked[on],
        acks=back.take(acks).without_keys(),
        ack_flow=back_flow[to],
        ack_ends=(journey.arrived_ns[to], journey.fate[to]) if acks_followed else None,
        left_ns=reduce(np.maximum, journey.out_ns)[on] if path_holds else None,
    )


def _classify(
    packets: Packets, flow_of_port: Mapping[int, int], senders: Sequence[int]
) -> tuple[IntArray, BoolArray]:
    """Flow of each packet (-1: none), and whether the packet is data."""
    table, ways = np.full(65536, -1), packets.ways
    for port, index in flow_of_port.items():
        table[port] = index
    flow = np.maximum(table[ways.source_port], table[ways.destination_port])
    sent = np.isin(ways.source, np.array(senders, np.uint64))
    return small(flow, len(flow_of_port))[packets.way], (sent & (flow >= 0))[packets.way]
