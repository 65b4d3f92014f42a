"""Westwood+'s samples of the bandwidth: what was acknowledged in each round trip."""

from __future__ import annotations

from .events import Ack

LEAST_SAMPLE_S = 0.05
"""Linux's Westwood+ takes a sample an RTT, but none of less than 50 ms."""


class BandwidthSamples:
    """From one ACK on, until a smoothed RTT has passed."""

    def __init__(self) -> None:
        self._acked_bytes = 0
        self._since_s: float | None = None

    def update(self, ack: Ack) -> float | None:
        """Every ACK; a sample in bytes/s where one ends with it."""
        if self._since_s is None:
            self._since_s = ack.now_s
            return None
        self._acked_bytes += ack.acked_bytes
        elapsed_s = ack.now_s - self._since_s
        if elapsed_s <= max(ack.smoothed_rtt_s, LEAST_SAMPLE_S):
            return None
        sample = self._acked_bytes / elapsed_s
        self._acked_bytes, self._since_s = 0, ack.now_s
        return sample
