"""The fate of each packet: arrived, dropped by a queue, or lost at random after the queues.

A packet passes one or more queues in a row, then the random loss on the way to its receiver. If
there is only one queue between the two outer captures, they suffice; otherwise there is a capture
after each queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from qbkit.traces.arrays import BoolArray, IntArray, as_slice, pieces, small
from qbkit.traces.run.frames import ETHERNET_HEADER, Ecn, Packets, address_number
from qbkit.traces.run.match import NEVER, departures_ns, match, match_last

NO_PACKETS = (
    "the run has no packets: only its series were published or loaded; load it whole, or run it "
    "again"
)


class Fate(IntEnum):
    """What became of a packet."""

    ARRIVED = 0
    QUEUE_DROP = 1
    RANDOM_LOSS = 2
    UNKNOWN = 3
    """In a queue when the capture ended: it may have come out, or been dropped, later."""


@dataclass(frozen=True)
class Route:
    """The route of a flow's data or ACKs between its two hosts, through queues in order."""

    sender: str
    receiver: str
    bottlenecks: Sequence[int]


@dataclass(frozen=True)
class Captures:
    """Captures before the queues, after each of them, and at the receivers' links."""

    before: Packets
    queues: Sequence[Packets]
    """After each queue; empty where ``after`` is the capture after the only queue."""
    after: Packets


@dataclass(frozen=True)
class Journey:
    """All IP packets from the flows' senders to their receivers, in order of time.

    With reverse traffic also those from the receivers to the senders, on routes of their own.
    """

    packets: Packets
    """The packets at their first queue."""
    flow: IntArray
    """Index of the route, and so of the flow; ICMP messages count too."""
    at_ns: Sequence[IntArray]
    """For each queue, the time of arrival of each packet; `NEVER` where it did not arrive."""
    out_ns: Sequence[IntArray]
    """For each queue, the time of departure of each packet; `NEVER` where it did not leave."""
    arrived_ns: IntArray
    """Time of departure to the receiver; `NEVER` for lost packets."""
    fate: IntArray
    """Values of `Fate`."""
    marked: BoolArray
    """Whether the packet arrived with a CE mark that it did not have before its first queue."""


def drop_too_big_back(journey: Journey, routes: Sequence[Route], mtu_bytes: int) -> None:
    """What a router drops on a way back without queues, as the MTU asks, is not lost at random."""
    no_queue = np.array([not route.bottlenecks for route in routes])[journey.flow]
    too_big = journey.packets.frame_bytes > mtu_bytes + ETHERNET_HEADER
    journey.fate[no_queue & too_big & (journey.fate == Fate.RANDOM_LOSS)] = Fate.QUEUE_DROP


def follow(captures: Captures, routes: Sequence[Route], emptied: Sequence[bool]) -> Journey:
    """Match the packets of all captures.

    ``emptied`` says for each queue whether it was empty when the capture ended. If it was not, the
    fate of a flow's packets after the last one that came out is unknown: every queue discipline
    keeps the order within a flow.
    """
    flow, after = flow_between_hosts(captures.before, routes), captures.after
    sent, flow = captures.before.take(flow >= 0), flow[flow >= 0]
    fate = np.full(len(sent), Fate.ARRIVED, "i1")
    at_ns, out_ns, now_ns = [], [], sent.time_ns
    for k, empty in enumerate(emptied):
        here = np.array([k in route.bottlenecks for route in routes])[flow] & (now_ns != NEVER)
        chosen = as_slice(here)
        behind = captures.queues[k] if captures.queues else after
        found = match(sent.key[chosen], now_ns[chosen], behind.key, behind.time_ns)
        left_ns = _placed(departures_ns(found, behind.time_ns), here, NEVER)
        del found
        missing = here & (left_ns == NEVER)
        fate[missing] = Fate.QUEUE_DROP
        if not empty:
            fate[missing & after_the_last(flow, now_ns, here & ~missing)] = Fate.UNKNOWN
        at_ns.append(_placed(now_ns[chosen], here, NEVER))
        out_ns.append(left_ns)
        now_ns = _placed(left_ns[chosen], here, now_ns)
    came_out = now_ns != NEVER
    chosen = as_slice(came_out)
    found = match_last(sent.key[chosen], now_ns[chosen], after.key, after.time_ns)
    arrived = _placed(found, came_out, NEVER)
    del found
    fate[came_out & (arrived == NEVER)] = Fate.RANDOM_LOSS
    marked = newly_marked(sent, arrived, after)
    arrived_ns = departures_ns(arrived, after.time_ns)
    return Journey(sent, flow, at_ns, out_ns, arrived_ns, fate, marked)


def _placed(values: IntArray, mask: BoolArray, others: IntArray | int) -> IntArray:
    """As many values as the mask chooses, in their places among others; no copy without others."""
    if len(values) == len(mask):
        return values
    placed = np.full(len(mask), others)
    placed[mask] = values
    return placed


def newly_marked(sent: Packets, found: IntArray, behind: Packets) -> BoolArray:
    """Whether each packet came out with CE and went in without; ``found`` is as from `match`."""
    marked = np.zeros(len(sent), bool)
    for piece in pieces(len(sent)):
        out = found[piece] != NEVER
        with_mark = behind.ecn[found[piece][out]] == Ecn.CE
        marked[piece][out] = with_mark & (sent.ecn[piece][out] != Ecn.CE)
    return marked


def after_the_last(flow: IntArray, time_ns: IntArray, out: BoolArray) -> BoolArray:
    """Mask of the packets that are later than all packets of their flow that came ``out``."""
    last_ns = np.full(int(flow.max(initial=-1)) + 1, np.iinfo(np.int64).min)
    np.maximum.at(last_ns, flow[out], time_ns[out])
    later: BoolArray = time_ns > last_ns[flow]
    return later


def flow_between_hosts(packets: Packets, routes: Sequence[Route]) -> IntArray:
    """The route between each packet's source and destination; -1 where there is none."""
    senders = np.array([address_number(route.sender) for route in routes], np.uint64)
    receivers = np.array([address_number(route.receiver) for route in routes], np.uint64)
    order, ways = np.argsort(senders), packets.ways
    place = np.searchsorted(senders[order], ways.source)
    found = order[np.minimum(place, len(order) - 1)]
    mine = (senders[found] == ways.source) & (receivers[found] == ways.destination)
    return small(np.where(mine, found, -1), len(routes))[packets.way]
