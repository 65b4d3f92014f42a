"""QUIC-DC: Westwood+ that takes a long one-way queueing delay for congestion.

"QUIC-Delay Control (QUIC-DC)": section III, equations 3 to 7.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar

from ..bandwidth_samples import BandwidthSamples
from ..controller import Settings
from ..events import Ack, Loss, Packet
from ..loss_based import LossBasedController
from ..options import Option, number, switch

FILTER_MEMORY = 0.2
"""Equation 7; Westwood+'s own filter remembers more, and is slow after the start."""


class QueueingDelay:
    """Equations 3 to 5: one-way delay variations, summed up from the first packet on."""

    def __init__(self) -> None:
        self.value_s = 0.0
        """OWQD of the latest packet: how much longer than the first it was on its way."""
        self._previous_s: float | None = None

    def update(self, packet: Packet) -> None:
        """OWQD_i = OWQD_(i-1) + (OWD_i − OWD_(i-1)); the clocks' offset cancels out."""
        if packet.one_way_delay_s is None:
            return
        if self._previous_s is not None:
            self.value_s += packet.one_way_delay_s - self._previous_s
        self._previous_s = packet.one_way_delay_s


class Bandwidth:
    """BWE: what was acknowledged in each round trip, filtered by equation 7."""

    def __init__(self) -> None:
        self.bytes_per_s = 0.0
        self._samples = BandwidthSamples()

    def update(self, ack: Ack) -> None:
        """Every ACK."""
        sample = self._samples.update(ack)
        if sample is not None:
            memory = FILTER_MEMORY if self.bytes_per_s else 0.0
            self.bytes_per_s = memory * self.bytes_per_s + (1 - memory) * sample


class QuicDc(LossBasedController):
    """After a loss, or above the delay threshold, the window is BWE times the least RTT."""

    uses_one_way_delay = True
    options: ClassVar[dict[str, Option]] = {
        **LossBasedController.options,
        "hystart": switch("true: slow start also ends when the RTT grows (false)", False),
        "delay_threshold_ms": number(
            "one-way queueing delay that counts as congestion (20)", 20.0, 0.1, 10_000
        ),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._threshold_s = self.option["delay_threshold_ms"] / 1e3
        self._queueing = QueueingDelay()
        self._bandwidth = Bandwidth()
        self._min_rtt_s = math.inf

    def on_ack(self, ack: Ack) -> None:
        """Equation 6: OWQD above the threshold is a congestion event, once per round trip."""
        self._bandwidth.update(ack)
        self._min_rtt_s = ack.min_rtt_s
        is_late = self._is_late(ack.packets)
        self.log(
            one_way_queueing_delay_ms=self._queueing.value_s * 1e3,
            bwe_mbps=self._bandwidth.bytes_per_s * 8e-6,
        )
        if is_late and not self.is_recovering(ack):
            self.reduce(ack.now_s, self.pipe_bytes)
        else:
            super().on_ack(ack)

    def window_after_loss_bytes(self, loss: Loss) -> float:
        """As Westwood+ after three duplicate ACKs."""
        return self.pipe_bytes

    def avoid_congestion(self, ack: Ack) -> None:
        """As NewReno: one packet more per round trip."""
        self.window_bytes += self.packet_bytes * ack.acked_bytes / self.window_bytes

    @property
    def pipe_bytes(self) -> float:
        """BWE·RTTmin: a full pipe and an empty queue."""
        return self._bandwidth.bytes_per_s * self._min_rtt_s

    def _is_late(self, packets: Iterable[Packet]) -> bool:
        """Whether one of them waited longer than the threshold."""
        late = False
        for packet in packets:
            self._queueing.update(packet)
            late = late or self._queueing.value_s > self._threshold_s
        return late
