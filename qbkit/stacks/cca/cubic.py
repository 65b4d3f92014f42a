"""CUBIC, RFC 9438, of N emulated flows."""

from __future__ import annotations

from .knobs import Knobs
from .window import WindowController

C = 0.4
"""Packets/s³ (RFC 9438, section 5.1)."""
MAX_GROWTH = 1.5
"""No round trip grows the window by more (section 4.2)."""


class Cubic(WindowController):
    """As Linux and chromium have it: the Reno-friendly window grows by α for ever.

    RFC 9438 section 4.3 wants α = 1 from the window of the last loss on; neither of them does so.
    """

    one_flow_beta = 0.7

    def __init__(self, knobs: Knobs, *, max_datagram_size: int) -> None:
        super().__init__(knobs, max_datagram_size=max_datagram_size)
        self.alpha = friendly_alpha(self.flows, self.beta)
        self._rtt_s = 0.0
        self._w_max = 0.0
        self._w_est = 0.0
        self._epoch_s: float | None = None
        self._k_s = 0.0

    def on_rtt_measurement(self, *, now: float, rtt: float) -> None:
        """The target is a round trip ahead."""
        super().on_rtt_measurement(now=now, rtt=rtt)
        self._rtt_s = rtt

    def on_persistent_congestion(self) -> None:
        """Section 4.8: as after a timeout."""
        super().on_persistent_congestion()
        self._epoch_s = None

    def _before_cut(self) -> None:
        """Fast convergence (section 4.7): leave room when the last peak was not reached."""
        again_below = self._window < self._w_max
        self._w_max = self._window * ((1 + self.beta) / 2 if again_below else 1)
        self._epoch_s = None

    def _grown(self, acked_bytes: int, now: float) -> float:
        if self._epoch_s is None:
            self._begin_epoch(now)
        target = self._cubic(now + self._rtt_s)
        target = min(max(target, self._window), MAX_GROWTH * self._window)
        share = acked_bytes / self._window
        self._w_est += self.alpha * self._packet_bytes * share
        return max(self._window + (target - self._window) * share, self._w_est)

    def _begin_epoch(self, now: float) -> None:
        """Section 4.2: K is the time to come back to the peak, none after HyStart."""
        self._epoch_s = now
        self._w_max = max(self._w_max, self._window)
        self._w_est = self._window
        self._k_s = ((self._w_max - self._window) / (C * self._packet_bytes)) ** (1 / 3)

    def _cubic(self, at_s: float) -> float:
        assert self._epoch_s is not None
        return C * self._packet_bytes * (at_s - self._epoch_s - self._k_s) ** 3 + self._w_max


def friendly_alpha(flows: int, beta: float) -> float:
    """Packets a round trip that grow as N Reno flows do on average, at that β.

    3N²(1 − β)/(1 + β): chromium's ``cubic_bytes``; for N = 1 it is RFC 9438's equation 4.
    """
    return 3 * flows**2 * (1 - beta) / (1 + beta)
