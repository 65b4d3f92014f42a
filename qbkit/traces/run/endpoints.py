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
    """The addresses of the end that sends most bytes of each server port, without repetition: the
    server's, or those of all its clients."""
    source, source_port, port_there = packets.ways[0], *packets.ways[2:]
    way_bytes = np.bincount(packets.way, packets.frame_bytes, minlength=len(source))
    found: list[int] = []
    for port in ports:
        of_server, of_clients = source_port == port, port_there == port
        if (of_server & of_clients).any():  # the ports do not say which end is the server
            mine = source[of_server | of_clients]
            addresses, place = np.unique(mine, return_inverse=True)
            sent_bytes = np.bincount(place, way_bytes[of_server | of_clients])
            found.append(int(addresses[sent_bytes.argmax()]))
        else:
            ends = (of_server, of_clients)
            side = max(ends, key=lambda end: way_bytes[end].sum()) & (way_bytes > 0)
            found += np.unique(source[side]).tolist()
    return list(dict.fromkeys(found))


def handshake_rtt_ms(arrivals: Packets, leaving: Packets, port: int) -> float:
    """Base RTT in ms by the first three packets of a connection; NaN if they are not there.

    One end sends the first packet, the other end answers, and the first end goes on: SYN, SYN-ACK
    and ACK of TCP, or the first flights of QUIC. From the first to the third packet, one RTT passes
    at any point of the path. If the first one is sent again, the last of them before the answer
    counts. What the first two waited in the queue is subtracted. It contains the time that the ends
    took to answer. ``leaving`` are the packets behind the queue, with the propagation delay
    subtracted.
    """
    mine = np.flatnonzero(_of_port(arrivals, port))
    if not len(mine):
        return math.nan
    source, destination, *ports = (field[arrivals.way[mine]] for field in arrivals.ways)
    there = (source, destination, *ports)
    forth = np.logical_and.reduce([field == field[0] for field in there])
    back_ways = (destination, source, *ports[::-1])
    back = np.logical_and.reduce([a == b[0] for a, b in zip(back_ways, there, strict=True)])
    answers = np.flatnonzero(back)
    if not len(answers):
        return math.nan
    then = np.flatnonzero(forth[answers[0] :])
    if not len(then):
        return math.nan
    asked = np.flatnonzero(forth[: answers[0]])[-1]
    first, answer, third = mine[asked], mine[answers[0]], mine[answers[0] + then[0]]
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
