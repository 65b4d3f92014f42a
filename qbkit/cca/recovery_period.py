"""When a controller that does not reduce its window on a loss is in recovery."""

from __future__ import annotations

import math

from .events import Ack, Loss


class RecoveryPeriod:
    """From a loss until what was sent again of the flight it was in is acknowledged.

    TCP's (RFC 6675, section 5): all that was outstanding at its start has arrived. Packets of QUIC
    do not say what they send again, so it is what was sent since the last of those losses.
    """

    def __init__(self) -> None:
        self._start_s: float | None = None
        self._end_s = -math.inf

    def __bool__(self) -> bool:
        return self._start_s is not None

    def on_ack(self, ack: Ack) -> None:
        """Every ACK."""
        if ack.newest_sent_s >= self._end_s:
            self._start_s = None

    def on_loss(self, loss: Loss) -> bool:
        """Every loss; whether it begins a period.

        A packet sent after the end is lost only where a later one was acknowledged: the period has
        ended by the ACK that shows this loss.
        """
        begins = self._start_s is None or loss.newest_sent_s >= self._end_s
        if begins:
            self._start_s = loss.now_s
        assert self._start_s is not None
        if loss.packets[0].sent_s < self._start_s:
            self._end_s = loss.now_s
        return begins
