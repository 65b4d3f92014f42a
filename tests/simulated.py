"""A simulated window-limited sender over a FIFO queue: connections with known parameters."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from qbkit.metrics.parameters.connection import Connection, Load, SharedLink, connection_of
from qbkit.traces.logs.events import EventTables

RATE_PPS, RTT_S = 1000.0, 0.05
BDP_PACKETS = RATE_PPS * RTT_S
PACKET_BYTES = 1500
TIMEOUT_S = 1.0


def simulate(
    *,
    alpha: float = 1.0,
    beta: float = 0.5,
    initial_window: int = 10,
    ack_every: int = 1,
    revert_after_s: float | None = None,
    lose_each_s: float = np.inf,
    loss_part: float = 0.0,
    most_packets: float = np.inf,
    seed: int = 0,
    threshold_packets: float = np.inf,
    duration_s: float = 30.0,
    buffer_packets: float = BDP_PACKETS,
) -> Connection:
    """AIMD after slow start: +``alpha`` packets an RTT, times ``beta`` at the first loss of an RTT.

    ``revert_after_s``: time until a window reduction is reverted. ``lose_each_s``: time between
    losses besides the queue's drops; ``loss_part``: probability that a packet is lost.
    ``most_packets``: the application's limit of packets in flight.
    """
    rng = np.random.default_rng(seed)
    window, threshold = float(initial_window), threshold_packets
    recovery_s, restore = -1.0, []
    sent_s: list[float] = []
    delivered_s: list[float] = []
    acked_or_lost_s: list[float] = []
    acks: list[tuple[float, int]] = []
    pending: list[int] = []
    ack_s: list[float] = []
    now_s, free_s, in_flight, lost = 0.0, 0.0, 0, set()
    next_loss_s = lose_each_s
    while now_s < duration_s:
        while restore and restore[0][0] <= now_s:
            window = max(window, restore.pop(0)[1])
        while in_flight < int(min(window, most_packets)):
            number = len(sent_s)
            sent_s.append(now_s)
            acked_or_lost_s.append(np.nan)
            in_flight += 1
            arrival_s = now_s + RTT_S / 2
            full = (free_s - arrival_s) * RATE_PPS > buffer_packets
            at_random = loss_part > 0 and rng.random() < loss_part
            if full or at_random or now_s > next_loss_s:
                next_loss_s = next_loss_s + lose_each_s if now_s > next_loss_s else next_loss_s
                delivered_s.append(np.nan)
                lost.add(number)
                continue
            free_s = max(free_s, arrival_s) + 1 / RATE_PPS
            delivered_s.append(free_s)
            pending.append(number)
            if len(pending) >= ack_every:
                heapq.heappush(acks, (free_s + RTT_S / 2, number))
                pending.clear()
        if not acks:  # a timeout: all in flight is lost, or waits for an ACK of more packets
            now_s += TIMEOUT_S
            for n in [*lost, *pending]:
                acked_or_lost_s[n] = now_s
            in_flight, window = 0, 1.0
            lost.clear()
            pending.clear()
            continue
        now_s, highest = heapq.heappop(acks)
        ack_s.append(now_s)
        newly = [n for n in range(highest - 8 * ack_every, highest + 1) if n >= 0]
        newly = [n for n in newly if np.isnan(acked_or_lost_s[n]) and n not in lost]
        acked_late = [n for n in lost if n < highest]
        for n in [*newly, *acked_late]:
            acked_or_lost_s[n] = now_s
        lost -= set(acked_late)
        in_flight -= len(newly) + len(acked_late)
        if acked_late and max(sent_s[n] for n in acked_late) > recovery_s:
            if revert_after_s is not None:
                restore.append((now_s + revert_after_s, window))
            threshold = window = window * beta
            recovery_s = now_s
        elif sent_s[highest] > recovery_s:
            window += len(newly) if window < threshold else alpha * len(newly) / window
        window = max(window, 1.0)
    fates = np.array(acked_or_lost_s)
    known = np.isfinite(fates)
    times = (np.array(sent_s), fates, np.array(delivered_s))
    load = Load(*(t[known] for t in times), np.full(known.sum(), float(PACKET_BYTES)))
    left_s = np.sort(load.delivered_s[np.isfinite(load.delivered_s)])
    through_bytes = PACKET_BYTES * np.arange(1.0, len(left_s) + 1)
    link = SharedLink(RATE_PPS * PACKET_BYTES * 8e-6, left_s, through_bytes)
    return connection_of("simulated", load, np.array(ack_s), RTT_S, link)


def put_packets(tables: EventTables, packets: Iterable[tuple[float, int, int]]) -> None:
    """Write packets to a log: (time in s, 0 sent, 1 acknowledged or 2 lost, number)."""
    for time_s, kind, number in sorted(packets):
        if kind == 0:
            tables.sent(time_s, "application", number, 1500)
        elif kind == 1:
            tables.acked(time_s, "application", number, number)
        else:
            tables.lost(time_s, "application", number, "reordering_threshold")
