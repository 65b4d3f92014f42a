"""Westwood+'s samples of the bandwidth: what was acknowledged in each round trip.

As Linux's ``westwood_update_window``: a sample ends with the first ACK that comes later than the
latest RTT.
"""

from __future__ import annotations

from .events import Ack

LEAST_SAMPLE_S = 0.05
"""Linux's Westwood+ takes a sample an RTT, but none of less than 50 ms."""


class BandwidthSamples:
    """From one ACK on, until the latest RTT has passed."""

    def __init__(self) -> None:
        self._rtt_s = 0.0
        self._acked_bytes = 0
        self._since_s: float | None = None

    def update(self, ack: Ack) -> float | None:
        """Every ACK; a sample in bytes/s where one ends with it."""
        self._rtt_s = self._rtt_s if ack.rtt_s is None else ack.rtt_s
        if self._since_s is None:
            self._since_s = ack.now_s
            return None
        self._acked_bytes += ack.acked_bytes
        elapsed_s = ack.now_s - self._since_s
        if elapsed_s <= max(self._rtt_s, LEAST_SAMPLE_S):
            return None
        sample = self._acked_bytes / elapsed_s
        self._acked_bytes, self._since_s = 0, ack.now_s
        return sample
