"""Who sends in a capture, and the base RTT of a path, from the packets alone."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from qbkit.traces.arrays import BoolArray
from qbkit.traces.run.frames import Packets

MOST_WAIT_NS = 10 * 10**9
"""Longest wait in the queue for which a packet of a handshake is looked up behind it."""


def senders(packets: Packets, ports: Iterable[int]) -> list[int]:
    """The address that sends most bytes of each server port, without repetition."""
    found = []
    for port in ports:
        mine = _of_port(packets, port)
        source = packets.ways.source[packets.way[mine]]
        addresses, place = np.unique(source, return_inverse=True)
        sent_bytes = np.bincount(place, packets.frame_bytes[mine])
        found.append(int(addresses[sent_bytes.argmax()]))
    return list(dict.fromkeys(found))


def handshake_rtt_ms(arrivals: Packets, leaving: Packets, port: int) -> float:
    """Base RTT in ms by the first three packets of a connection; NaN if they are not there.

    One end sends the first packet, the other end answers, and the first end goes on: SYN, SYN-ACK
    and ACK of TCP, or the first flights of QUIC. From the first to the third packet, one RTT passes
    at any point of the path. What the first two waited in the queue is subtracted. It contains the
    time that the ends took to answer. ``leaving`` are the packets behind the queue, with the
    propagation delay subtracted.
    """
    mine = np.flatnonzero(_of_port(arrivals, port))
    source = arrivals.ways.source[arrivals.way[mine]]
    answers = np.flatnonzero(source != source[0]) if len(mine) else mine
    if not len(answers):
        return math.nan
    back = np.flatnonzero(source[answers[0] :] == source[0])
    if not len(back):
        return math.nan
    first, answer, third = mine[0], mine[answers[0]], mine[answers[0] + back[0]]
    waited_ns = sum(_wait_ns(arrivals, leaving, int(i)) for i in (first, answer))
    return float(arrivals.time_ns[third] - arrivals.time_ns[first] - waited_ns) / 1e6


def _of_port(packets: Packets, port: int) -> BoolArray:
    mine: BoolArray = (packets.ways.source_port == port) | (packets.ways.destination_port == port)
    return mine[packets.way]


def _wait_ns(arrivals: Packets, leaving: Packets, i: int) -> int:
    """How long a packet waited in the queue; 0 for one that does not pass it."""
    since_ns = leaving.time_ns - arrivals.time_ns[i]
    same = (leaving.key == arrivals.key[i]) & (since_ns >= 0) & (since_ns < MOST_WAIT_NS)
    return int(since_ns[same].min()) if same.any() else 0
