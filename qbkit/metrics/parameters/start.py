"""Start of a connection: initial window, growth and end of slow start, pacing."""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import dataclass

import numpy as np

from qbkit.metrics.parameters.connection import Connection
from qbkit.traces.arrays import FloatArray

GROWS = 1.3
"""Slow start continues while a round sends at least this times the packets of the one before."""
STAND = 2
"""Number of rounds in a row without growth that end slow start; pacing may delay a single one."""
ADDS = 1.15
"""A round that grows by less belongs to what follows slow start."""
OVERSHOOTS = 3.0
"""A slow start that grows by more in a round overflows any queue many times."""
SETTLE_RTTS = 4
HANDSHAKE, MOST_OF_HANDSHAKE = 3.0, 6
"""If a flight exceeds all before it by this factor, these were the handshake, unless they have more
packets than this: a slow start can grow by more. Stacks have up to three."""
HANDSHAKE_RTTS = 2.5
"""The first flight after the handshake begins earlier than this."""
EARLY = 0.02
"""Fraction of an RTT by which jitter may show a packet before the ACK that triggered it."""
SPREAD = 1.6
"""A round is paced if it takes more than this times as long as the ACKs that clock it."""
MIDDLE = (0.3, 0.9)
"""Part of a round whose rate counts; it excludes an initial burst and a last stray packet."""
QUEUES = 1.15
"""The packets of a round queue if their median RTT is more than this times the minimum."""
BURST_GAIN = 2.0
LARGEST_GAIN = 8.0
"""Packets sent faster than this times cwnd/RTT are a burst."""


@dataclass(frozen=True)
class Round:
    """Packets ``first`` to ``last`` - 1, which the ACKs of the previous round triggered."""

    first: int
    last: int

    @property
    def packets(self) -> int:
        """Number of packets."""
        return self.last - self.first

    def middle(self) -> tuple[int, int]:
        """First and last packet of the middle part."""
        low, high = (self.first + int(part * (self.packets - 1)) for part in MIDDLE)
        return low, high


@dataclass(frozen=True, eq=False)
class Start:
    """Slow start in rounds, without the handshake."""

    rounds: list[Round]
    end_s: float
    """When the last round ended."""
    settled_s: float
    """When losses of slow start are repaired and the window reduction is complete."""
    by_loss: bool
    """Whether a loss ended slow start."""

    @property
    def window_packets(self) -> FloatArray:
        """(k,) packets of each round."""
        return np.array([r.packets for r in self.rounds], dtype=np.float64)

    @property
    def growth(self) -> FloatArray:
        """Ratio of each round to the one before it, without what the end of slow start cut short.

        A loss cuts the last round; of a single one that overshoots, the rest says enough. Else its
        end cuts the last round that grows.
        """
        grown = self.window_packets[1:] / self.window_packets[:-1]
        if self.by_loss and len(grown) == 1 and grown[0] > OVERSHOOTS:
            return grown
        if self.by_loss or not len(grown) or grown[-1] >= ADDS:
            return grown[:-1]
        grows = np.flatnonzero(grown >= ADDS)
        return grown[: grows[-1]] if len(grows) else grown[:0]


def start_of(connection: Connection) -> Start:
    """Divide the beginning of a connection into rounds, until slow start ends."""
    sent_s, acked_or_lost_s = connection.sent_s, connection.acked_or_lost_s
    rounds: list[Round] = []
    first = _first_data(connection)
    while first < len(sent_s):
        end_s = acked_or_lost_s[first] - EARLY * connection.min_rtt_s
        last = max(int(np.searchsorted(sent_s, end_s)), first + 1)
        rounds.append(Round(first, last))
        if connection.lost[first:last].any() or _stands(rounds):
            break
        first = last
    last_round = rounds[-1]
    end_s = float(sent_s[last_round.last - 1])
    # Losses of the last round are detected one round trip later, which a deep queue makes long.
    early = (connection.loss_detected_s < end_s + 2 * connection.min_rtt_s).any()
    lossy = bool(early or connection.lost[last_round.first : last_round.last].any())
    by_loss = lossy and not _stood(rounds)
    return Start(rounds, end_s, end_s + SETTLE_RTTS * connection.min_rtt_s, by_loss)


def _stood(rounds: list[Round]) -> bool:
    """Whether the last whole round had not grown: slow start ended before the loss that came."""
    return len(rounds) > STAND and rounds[-2].packets < GROWS * rounds[-3].packets


def _stands(rounds: list[Round]) -> bool:
    """Whether the last `STAND` rounds have not grown."""
    return len(rounds) > STAND and all(
        later.packets < GROWS * earlier.packets
        for earlier, later in itertools.pairwise(rounds[-STAND - 1 :])
    )


def _first_data(connection: Connection) -> int:
    """The first packet after the handshake: its flight far exceeds all packets before it."""
    sent_s, rtt_s = connection.sent_s, connection.min_rtt_s
    begin_s = sent_s < sent_s[0] + HANDSHAKE_RTTS * rtt_s
    flights = np.flatnonzero(np.diff(sent_s[begin_s]) > rtt_s / 2) + 1
    ends = np.searchsorted(sent_s, sent_s[flights] + (1 - EARLY) * rtt_s)
    far = ends - flights >= HANDSHAKE * flights
    after = flights[far & (flights <= MOST_OF_HANDSHAKE)]
    return int(after[-1]) if len(after) else 0


def pacing_gains(connection: Connection, start: Start) -> FloatArray:
    """Sending rate over cwnd/RTT of the paced rounds of slow start; empty without pacing.

    A paced round takes longer than the ACKs that clock it, or follows a paced round. Most rounds
    must be paced, because a single one may have been delayed. Only rounds whose packets hardly
    queue count, because a queue slows the ACKs and so any sender. The first round may burst and the
    last one is cut short, so neither counts.
    """
    gains: list[float] = []
    counting: list[bool] = []
    for number in range(len(start.rounds) - 1):
        gain, spaced, queues = _gain(connection, start, number)
        paced = spaced or (number > 0 and math.isfinite(gains[-1]))
        gains.append(gain if paced and gain < LARGEST_GAIN else math.inf)
        counting.append(number > 0 and not queues)
    chosen = np.array(gains)[counting] if any(counting) else np.array(gains)
    found = chosen[np.isfinite(chosen)]
    return found if 2 * len(found) >= len(chosen) else np.empty(0)


def shows_pacing(connection: Connection, start: Start) -> bool:
    """Whether slow start shows if it is paced: in rounds that hardly queue.

    In a burst, the packets of such a round leave at twice its window per RTT, or faster: the link
    is not yet full, and each ACK lets out two. A round that is slower is not one. What leaves all
    at once shows it, too, although it queues.
    """
    rounds = [_gain(connection, start, n) for n in range(1, len(start.rounds) - 1)]
    clear = [(gain, spaced) for gain, spaced, queues in rounds if not queues or gain > LARGEST_GAIN]
    if not clear:
        return False
    paced = bool(len(pacing_gains(connection, start)))
    return paced or statistics.median_low([gain for gain, _ in clear]) > BURST_GAIN


def _gain(connection: Connection, start: Start, number: int) -> tuple[float, bool, bool]:
    """Gain of a round, whether it takes longer than its ACKs did, and whether its packets queue.

    The window is what the sender may have in flight at that time: the packets of the previous
    round, plus as many as were acknowledged of those.
    """
    this = start.rounds[number]
    low, high = this.middle()
    span_s = float(connection.sent_s[high] - connection.sent_s[low])
    window, acks_s = float(this.packets), 0.0
    if number:
        before = start.rounds[number - 1]
        first, last = before.middle()
        acks_s = float(connection.acked_or_lost_s[last] - connection.acked_or_lost_s[first])
        middle_s = connection.sent_s[(low + high) // 2]
        acked = connection.acked_or_lost_s[before.first : before.last] <= middle_s
        window = before.packets + float(acked.sum())
    rtt_s = float(np.median((connection.acked_or_lost_s - connection.sent_s)[low : high + 1]))
    gain = (high - low) / max(span_s, 1e-9) * connection.min_rtt_s / window
    return gain, span_s > SPREAD * acks_s, rtt_s > QUEUES * connection.min_rtt_s


def burst_packets(connection: Connection) -> float:
    """99th percentile of the number of packets that leave within a millisecond."""
    ends = np.searchsorted(connection.sent_s, connection.sent_s + 1e-3)
    return float(np.quantile(ends - np.arange(len(ends)), 0.99))
