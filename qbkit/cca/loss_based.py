"""What loss-based controllers share: slow start, recovery, one reduction per round trip."""

from __future__ import annotations

import math
from abc import abstractmethod

from .controller import NOT_PACED, Settings, WindowController
from .events import Ack, Loss
from .hystart import HyStart
from .options import switch

MIN_WINDOW_PACKETS = 2
"""RFC 9002, section 7.2."""
OPTIONS = {
    "pacing": switch("false: send whole windows at once", True),
    "hystart": switch("false: slow start ends with a loss only", True),
}


class LossBasedController(WindowController):
    """RFC 9002, section 7, with HyStart.

    A subclass says how the window grows (`avoid_congestion`) and what a loss leaves of it
    (`window_after_loss_bytes`): Linux's ``cong_avoid`` and ``ssthresh``.
    """

    options = OPTIONS

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        if not self.option["pacing"]:
            self.pacing_rate_bytes_per_s = NOT_PACED
        self._hystart = HyStart() if self.option.get("hystart") else None
        self._recovery_start_s = -math.inf
        self.state = "slow_start"

    @abstractmethod
    def avoid_congestion(self, ack: Ack) -> None:
        """Grow ``window_bytes`` for an ACK in congestion avoidance."""

    @abstractmethod
    def window_after_loss_bytes(self, loss: Loss) -> float:
        """The new window, and the slow start threshold; called once per round trip with losses."""

    def on_ack(self, ack: Ack) -> None:
        """Grow, but not for what was sent before the last reduction, nor a window without use."""
        if self.is_recovering(ack) or ack.is_app_limited:
            return
        if self.is_in_slow_start:
            self._start_slowly(ack)
        else:
            self.avoid_congestion(ack)
        self.state = "slow_start" if self.is_in_slow_start else "congestion_avoidance"

    def on_loss(self, loss: Loss) -> None:
        """Reduce the window, if one of the packets was sent after the last reduction."""
        if loss.newest_sent_s > self._recovery_start_s:
            self.reduce(loss.now_s, self.window_after_loss_bytes(loss))
        if loss.is_persistent_congestion:
            self._collapse()

    def reduce(self, now_s: float, window_bytes: float) -> None:
        """Begin a recovery period with this window as the slow start threshold."""
        self._recovery_start_s = now_s
        self._set_window(window_bytes)
        self.ssthresh_bytes = self.window_bytes
        self.state = "recovery"

    def is_recovering(self, ack: Ack) -> bool:
        """Whether the ACK is of packets sent before the last reduction only."""
        return ack.newest_sent_s <= self._recovery_start_s

    @property
    def is_in_slow_start(self) -> bool:
        """Below the slow start threshold."""
        return self.ssthresh_bytes is None or self.window_bytes < self.ssthresh_bytes

    def _start_slowly(self, ack: Ack) -> None:
        self.window_bytes += ack.acked_bytes
        packets = self.window_bytes / self.packet_bytes
        if self.ssthresh_bytes is None and self._hystart and self._hystart.is_over(ack, packets):
            self.ssthresh_bytes = self.window_bytes

    def _collapse(self) -> None:
        """Slow start from the least window (RFC 9002, section 7.6.2)."""
        self._set_window(0)
        self._recovery_start_s = -math.inf

    def _set_window(self, window_bytes: float) -> None:
        self.window_bytes = max(window_bytes, MIN_WINDOW_PACKETS * self.packet_bytes)
