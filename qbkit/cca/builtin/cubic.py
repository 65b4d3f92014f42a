"""CUBIC, RFC 9438, of N emulated flows."""

from __future__ import annotations

from typing import ClassVar

from ..controller import Settings
from ..emulated_flows import OPTIONS, beta_of
from ..events import Ack, AppLimited, Loss
from ..loss_based import LossBasedController
from ..options import Option

C = 0.4
"""Packets/s³ (RFC 9438, section 5.1)."""
MAX_GROWTH = 1.5
"""No round trip grows the window by more (section 4.2)."""


class Cubic(LossBasedController):
    """As in Linux and chromium, the Reno-friendly window always grows by α.

    RFC 9438 section 4.3 wants α = 1 from the window of the last loss on; neither of them does so.
    """

    options: ClassVar[dict[str, Option]] = {**LossBasedController.options, **OPTIONS}

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.beta = beta_of(self.option, 0.7)
        self.alpha = friendly_alpha(self.option["emulated_flows"], self.beta)
        self._rtt_s = 0.0
        self._w_max = 0.0
        self._w_est = 0.0
        self._epoch_s: float | None = None
        self._used_s = 0.0
        self._is_limited = False
        self._k_s = 0.0

    def on_ack(self, ack: Ack) -> None:
        """The target is a round trip ahead."""
        if ack.rtt_s is not None:
            self._rtt_s = ack.rtt_s
        if not ack.is_app_limited:
            self._leave_out_pause(ack.now_s)
        super().on_ack(ack)

    def on_app_limited(self, limited: AppLimited) -> None:
        """The window stays as it is until it is used again."""
        self._is_limited = True

    def on_loss(self, loss: Loss) -> None:
        """Section 4.8: persistent congestion is like a timeout."""
        super().on_loss(loss)
        if loss.is_persistent_congestion:
            self._epoch_s = None

    def window_after_loss_bytes(self, loss: Loss) -> float:
        """Fast convergence (section 4.7): leave room when the last peak was not reached."""
        again_below = self.window_bytes < self._w_max
        self._w_max = self.window_bytes * ((1 + self.beta) / 2 if again_below else 1)
        self._epoch_s = None
        return self.window_bytes * self.beta

    def avoid_congestion(self, ack: Ack) -> None:
        """Sections 4.2 to 4.5: the larger of the cubic and the Reno-friendly window."""
        if self._epoch_s is None:
            self._begin_epoch(ack.now_s)
        window = self.window_bytes
        target = self._cubic(ack.now_s + self._rtt_s)
        target = min(max(target, window), MAX_GROWTH * window)
        share = ack.acked_bytes / window
        self._w_est += self.alpha * self.packet_bytes * share
        self.window_bytes = max(window + (target - window) * share, self._w_est)

    def _begin_epoch(self, now_s: float) -> None:
        """Section 4.2: K is the time to come back to the peak, none after HyStart."""
        self._epoch_s = now_s
        self._w_max = max(self._w_max, self.window_bytes)
        self._w_est = self.window_bytes
        self._k_s = ((self._w_max - self.window_bytes) / (C * self.packet_bytes)) ** (1 / 3)

    def _leave_out_pause(self, now_s: float) -> None:
        """Section 5.8: time in which the window stayed, as the application limited it, is none."""
        if self._is_limited and self._epoch_s is not None:
            self._epoch_s += now_s - self._used_s
        self._used_s, self._is_limited = now_s, False

    def _cubic(self, at_s: float) -> float:
        assert self._epoch_s is not None
        return C * self.packet_bytes * (at_s - self._epoch_s - self._k_s) ** 3 + self._w_max


def friendly_alpha(flows: int, beta: float) -> float:
    """Packets a round trip that grow as N Reno flows do on average, at that β.

    3N²(1 − β)/(1 + β): chromium's ``cubic_bytes``; for N = 1 it is RFC 9438's equation 4.
    """
    return 3 * flows**2 * (1 - beta) / (1 + beta)
