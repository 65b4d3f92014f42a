"""Westwood+: a loss leaves of the window what the path delivers in its least round trip.

Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP
congestion control", CCR 34(2), 2004; samples and filter of Linux's ``net/ipv4/tcp_westwood.c``.

The window falls to BWE · RTTmin at the loss, as in the paper. Linux halves it there and sets
BWE · RTTmin when recovery ends; it also counts RTTs in whole milliseconds, rounded up.
"""

from __future__ import annotations

from typing import ClassVar

from ..bandwidth_samples import BandwidthSamples
from ..controller import Settings
from ..events import Ack, Loss
from ..loss_based import LossBasedController
from ..options import Option, switch

KEPT = 7 / 8
"""Of the estimate with each sample: two such filters in a row, where the paper has one of 0.9."""


class Westwood(LossBasedController):
    """Grows as Reno; the threshold is BWE · RTTmin, so random losses cost little."""

    options: ClassVar[dict[str, Option]] = {
        **LossBasedController.options,
        "hystart": switch("true: slow start ends when the round trip grows", False),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.bandwidth_bytes_per_s = 0.0
        """BWE."""
        self._faster_bytes_per_s = 0.0
        self._min_rtt_s = 0.0
        self._samples = BandwidthSamples()

    def on_ack(self, ack: Ack) -> None:
        """One sample of the bandwidth a round trip."""
        self._min_rtt_s = ack.min_rtt_s
        sample = self._samples.update(ack)
        if sample is not None:
            self._filter(sample)
        super().on_ack(ack)

    def avoid_congestion(self, ack: Ack) -> None:
        """As Reno: one packet per window acknowledged."""
        self.window_bytes += self.packet_bytes * ack.acked_bytes / self.window_bytes

    def window_after_loss_bytes(self, loss: Loss) -> float:
        """BWE · RTTmin, what the path holds without a queue; half before there is an estimate."""
        if not self.bandwidth_bytes_per_s:
            return self.window_bytes / 2
        return self.bandwidth_bytes_per_s * self._min_rtt_s

    def _filter(self, sample: float) -> None:
        """b̂ = 7/8 b̂ + 1/8 b, and once more of that."""
        if not self.bandwidth_bytes_per_s:
            self._faster_bytes_per_s = self.bandwidth_bytes_per_s = sample
        self._faster_bytes_per_s += (1 - KEPT) * (sample - self._faster_bytes_per_s)
        behind = self._faster_bytes_per_s - self.bandwidth_bytes_per_s
        self.bandwidth_bytes_per_s += (1 - KEPT) * behind
        self.log(bwe_mbps=self.bandwidth_bytes_per_s * 8e-6)
