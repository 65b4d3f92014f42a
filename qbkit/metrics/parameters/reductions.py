"""Window reductions after losses: by how much, and whether they are reverted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qbkit.metrics.parameters.connection import GRID_PARTS, Connection
from qbkit.metrics.parameters.start import SETTLE_RTTS
from qbkit.traces.arrays import FloatArray

APART_RTTS = 1.8
"""Losses detected further apart than this belong to two recovery periods. A window whose reduction
was reverted overflows the queue again within two RTTs; the losses of one overflow are detected
within one RTT."""
SMALLEST_REDUCTION_PACKETS = 4.0
BACK = 0.95
"""A reduction is reverted if this fraction of the window is back within `BACK_RTTS`."""
BACK_RTTS = 2.0
SHRUNK_RTTS = 1.3
"""Until then a window that a loss reduces has begun to shrink, also one that leaves in bursts."""
REDUCES = 0.95
"""A sender that keeps more than this fraction of its window does not reduce it at a loss."""


@dataclass(frozen=True)
class WindowReduction:
    """The window before and after one recovery period."""

    begin_s: float
    """When the sender detected the first loss."""
    end_s: float
    """When the window had been reduced."""
    before_packets: float
    """Packets in flight when the loss was detected."""
    after_packets: float
    """Packets in flight afterwards."""
    reverted: bool
    """Whether the window was restored at once, as after a spurious loss."""

    @property
    def factor(self) -> float:
        """Fraction of the window that was left: the multiplicative decrease."""
        return self.after_packets / self.before_packets


def window_reductions_of(connection: Connection, after_s: float = 0.0) -> list[WindowReduction]:
    """Window reductions that begin after a time, in order.

    Not for losses of a slow start that ended `SETTLE_RTTS` before: a queue of 3 BDP delays them
    more, and a sender may reduce its window twice for them.
    """
    of_start = connection.sent_s < after_s - SETTLE_RTTS * connection.min_rtt_s
    late_s = connection.acked_or_lost_s[connection.lost & of_start]
    events = [event for event in _loss_events(connection, after_s) if event[0] not in late_s]
    found = [
        reduction_at(connection, losses_s[0], losses_s[-1], _rtt_s(connection, losses_s)[0])
        for losses_s in events
    ]
    return [reduction for reduction in found if reduction is not None]


def rounds_of_loss(connection: Connection, after_s: float) -> float:
    """Round trips with losses per loss event after a time; NaN without one.

    A window that is reduced (RFC 9002, section 7.3.2) ends the losses within about two.
    """
    events = _loss_events(connection, after_s)
    if not events:
        return math.nan
    rounds = np.cumsum(connection.min_rtt_s / GRID_PARTS / connection.rtt_s)
    lossy = [
        len(np.unique(np.floor(np.interp(losses_s, connection.grid_s, rounds))))
        for losses_s in events
    ]
    return float(np.mean(lossy))


def _loss_events(connection: Connection, after_s: float) -> list[FloatArray]:
    """When the losses of each recovery period were detected, after a time."""
    losses_s = connection.loss_detected_s[connection.loss_detected_s > after_s]
    apart_s = APART_RTTS * _rtt_s(connection, losses_s[1:])
    found = np.split(losses_s, np.flatnonzero(np.diff(losses_s) > apart_s) + 1)
    return [event for event in found if len(event)]


def _rtt_s(connection: Connection, at_s: FloatArray) -> FloatArray:
    rtt_s: FloatArray = np.interp(at_s, connection.grid_s, connection.rtt_s)
    return rtt_s


def reduction_at(
    connection: Connection, begin_s: float, last_s: float, rtt_s: float
) -> WindowReduction | None:
    """Reduction of one recovery period, whose first and last loss were detected then.

    None if the trace ends in it, or nothing was in flight.
    """
    grid_s, window = connection.grid_s, connection.in_flight_packets
    # TCP's window shrinks over one RTT (RFC 6937), QUIC's at once (RFC 9002 §7.3.2). Both then stay
    # at the new window until ACKs of packets sent since then open it again.
    end_s = max(begin_s + rtt_s, last_s + 0.3 * rtt_s)
    if grid_s[-1] < end_s + BACK_RTTS * rtt_s:
        return None
    held = float(window[_between(grid_s, begin_s - rtt_s, begin_s)].max())
    if held <= 0:
        return None
    left = float(np.median(window[_between(grid_s, end_s, end_s + 0.5 * rtt_s)]))
    # After a gap between bursts, half an RTT may pass before the first ACKs let the window shrink.
    # What shrinks it after another loss, of what was sent since, is that one.
    most_rtts = SHRUNK_RTTS if last_s < begin_s + rtt_s else 1.0
    first = _between(grid_s, begin_s, begin_s + most_rtts * rtt_s)
    shrunk_s = float(grid_s[first][np.argmax(window[first] < BACK * held)])  # the first if it never
    since_s = max(begin_s + 0.5 * rtt_s, shrunk_s)
    back = window[_between(grid_s, since_s, end_s + BACK_RTTS * rtt_s)]
    least = float(window[_between(grid_s, begin_s, end_s + rtt_s)].min())
    reverted = held - least > SMALLEST_REDUCTION_PACKETS and bool((back >= BACK * held).any())
    return WindowReduction(float(begin_s), end_s, held, left, reverted)


def _between(grid_s: FloatArray, begin_s: float, end_s: float) -> slice:
    low, high = np.searchsorted(grid_s, [begin_s, end_s], "right")
    return slice(int(low), int(max(high, low + 1)))
