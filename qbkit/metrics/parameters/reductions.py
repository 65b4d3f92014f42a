"""What a sender does about a loss: by how much it cuts its window, and whether it takes it back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbkit.metrics.parameters.connection import Connection
from qbkit.traces.arrays import FloatArray

APART_RTTS = 1.8
"""Losses that are told of further apart belong to two episodes. A window that was cut and taken
back overflows the queue again within two RTTs; what one overflow lost is told within one."""
SMALLEST_CUT_PACKETS = 4.0
BACK = 0.95
"""A cut is reverted when this part of the window is back within `BACK_RTTS`."""
BACK_RTTS = 2.0


@dataclass(frozen=True)
class WindowReduction:
    """One episode of loss."""

    begin_s: float
    """When the sender first knew of it."""
    end_s: float
    """When the window was cut."""
    before_packets: float
    """In flight when the sender knew of it."""
    after_packets: float
    """In flight afterwards."""
    reverted: bool
    """Whether the window was back at once, as after a loss that was found spurious."""

    @property
    def factor(self) -> float:
        """What was left of the window: the multiplicative decrease."""
        return self.after_packets / self.before_packets


def window_reductions_of(connection: Connection, after_s: float = 0.0) -> list[WindowReduction]:
    """The episodes of loss that begin after a time, in order."""
    loss_detected_s = connection.loss_detected_s[connection.loss_detected_s > after_s]
    if not len(loss_detected_s):
        return []
    rtt_s = np.interp(loss_detected_s, connection.grid_s, connection.rtt_s)
    first = np.flatnonzero(np.diff(loss_detected_s, prepend=-np.inf) > APART_RTTS * rtt_s)
    ends = np.append(first[1:], len(loss_detected_s))
    found = [
        _cut(connection, loss_detected_s[i], loss_detected_s[j - 1], rtt_s[i])
        for i, j in zip(first, ends, strict=True)
    ]
    return [cut for cut in found if cut is not None]


def _cut(
    connection: Connection, begin_s: float, last_s: float, rtt_s: float
) -> WindowReduction | None:
    """The cut of one episode; None where the trace ends in it, or nothing was in flight before."""
    grid_s, window = connection.grid_s, connection.in_flight_packets
    # TCP's window shrinks over one RTT (RFC 6937), QUIC's at once (RFC 9002 §7.3.2): afterwards
    # both stand at the new one, until the ACKs of what was sent since then open it again.
    end_s = max(begin_s + rtt_s, last_s + 0.3 * rtt_s)
    if grid_s[-1] < end_s + BACK_RTTS * rtt_s:
        return None
    held = float(window[_between(grid_s, begin_s - rtt_s, begin_s)].max())
    if held <= 0:
        return None
    left = float(np.median(window[_between(grid_s, end_s, end_s + 0.5 * rtt_s)]))
    back = window[_between(grid_s, begin_s + 0.5 * rtt_s, end_s + BACK_RTTS * rtt_s)]
    least = float(window[_between(grid_s, begin_s, end_s + rtt_s)].min())
    reverted = held - least > SMALLEST_CUT_PACKETS and bool((back >= BACK * held).any())
    return WindowReduction(float(begin_s), end_s, held, left, reverted)


def _between(grid_s: FloatArray, begin_s: float, end_s: float) -> slice:
    low, high = np.searchsorted(grid_s, [begin_s, end_s], "right")
    return slice(int(low), int(max(high, low + 1)))
