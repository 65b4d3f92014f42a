"""When a controller that does not cut its window on a loss is in recovery."""

from __future__ import annotations

import math
from collections.abc import Iterable

from aioquic.quic.packet_builder import QuicSentPacket

from .base import sent_s


class LossEpisode:
    """From a loss until what was sent again of the flight it was in is acknowledged.

    TCP's (RFC 6675, section 5): all that was outstanding at its start has arrived. Packets of QUIC
    do not say what they send again, so it is what was sent since the last of those losses.
    """

    def __init__(self) -> None:
        self._start_s: float | None = None
        self._end_s = -math.inf

    def __bool__(self) -> bool:
        return self._start_s is not None

    def on_acked(self, packet: QuicSentPacket) -> None:
        """Every packet."""
        if sent_s(packet) >= self._end_s:
            self._start_s = None

    def on_lost(self, packets: Iterable[QuicSentPacket], now: float) -> None:
        """Every loss."""
        if self._start_s is None:
            self._start_s = now
        if min(map(sent_s, packets)) < self._start_s:
            self._end_s = now
