"""Pacers for aioquic: one whose rate a controller sets, and one that never holds back."""

from __future__ import annotations

from aioquic.quic.recovery import QuicPacketPacer

CREDIT_S = 0.001
"""So much lateness is made good by sending sooner: timers of the driver wait whole milliseconds."""


class RatePacer(QuicPacketPacer):
    """Lets packets go at ``rate_bytes_per_s``, 0 for no limit: each has its earliest departure."""

    def __init__(self, *, max_datagram_size: int) -> None:
        super().__init__(max_datagram_size=max_datagram_size)
        self.rate_bytes_per_s = 0.0
        self.next_s = 0.0
        """When the next packet may go."""

    def next_send_time(self, now: float) -> float | None:  # type: ignore[override]
        """None: at once."""
        return self.next_s if self.rate_bytes_per_s and self.next_s > now else None

    def update_after_send(self, now: float) -> None:
        """One packet goes; it is taken to be full."""
        if self.rate_bytes_per_s:
            packet_s = self._max_datagram_size / self.rate_bytes_per_s
            self.next_s = max(self.next_s, now - CREDIT_S) + packet_s

    def update_rate(self, congestion_window: int, smoothed_rtt: float) -> None:
        """aioquic's own rate, window over RTT, is not wanted."""


class NoPacer(QuicPacketPacer):
    """Without a rate, aioquic's pacer never holds back."""

    def update_rate(self, congestion_window: int, smoothed_rtt: float) -> None:
        """Leave it without."""
