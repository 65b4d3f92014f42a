"""NewReno, RFC 9002 section 7 and appendix B, of N emulated flows."""

from __future__ import annotations

from typing import ClassVar

from ..controller import Settings
from ..emulated_flows import OPTIONS, beta_of
from ..events import Ack, Loss
from ..loss_based import LossBasedController
from ..options import Option


class Reno(LossBasedController):
    """N packets more per round trip, and half of one flow's window less per loss."""

    options: ClassVar[dict[str, Option]] = {**LossBasedController.options, **OPTIONS}

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.beta = beta_of(self.option, 0.5)

    def avoid_congestion(self, ack: Ack) -> None:
        """RFC 9002, section 7.3.3: one packet per window acknowledged."""
        packets = self.option["emulated_flows"] * ack.acked_bytes / self.window_bytes
        self.window_bytes += packets * self.packet_bytes

    def window_after_loss_bytes(self, loss: Loss) -> float:
        """RFC 9002, section 7.3.2."""
        return self.window_bytes * self.beta
