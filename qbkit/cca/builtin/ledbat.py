"""LEDBAT: takes what others leave, at a queueing delay of its own of ``target_ms`` (RFC 6817)."""

from __future__ import annotations

import math
from collections import deque
from typing import ClassVar

from ..controller import Settings, WindowController
from ..events import Ack, Loss, Packet
from ..options import Option, number, whole

BASE_HISTORY = 10
"""Minutes of which the least delay is remembered."""
CURRENT_FILTER = 4
"""Delays of which the least is the current one."""
ALLOWED_INCREASE_PACKETS = 1
MIN_WINDOW_PACKETS = 2


class Ledbat(WindowController):
    """RFC 6817, section 2.4.2: window += GAIN · off_target · acked · packet / window.

    Delays are one way, by the receiver's clock, so a queue on the way back does not count.
    """

    uses_one_way_delay = True
    options: ClassVar[dict[str, Option]] = {
        "initial_window_packets": whole("initial congestion window (2)", 2),
        "target_ms": number("queueing delay that it aims at (100, the most allowed)", 100, 1, 100),
        "gain": number("how fast it follows (1, as Reno, the most allowed)", 1, 0.01, 1),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._base_s: deque[float] = deque(maxlen=BASE_HISTORY)
        self._minute = -1
        self._current_s: deque[float] = deque(maxlen=CURRENT_FILTER)
        self._last_halved_s = -math.inf
        self._smoothed_rtt_s = 0.0
        self.state = "congestion_avoidance"

    def on_ack(self, ack: Ack) -> None:
        """Grow or shrink in proportion to how far the delay is from the target."""
        self._smoothed_rtt_s = ack.smoothed_rtt_s
        for packet in ack.packets:
            self._take_delay(packet, ack.now_s)
        if not self._current_s:
            return
        queueing_s = min(self._current_s) - min(self._base_s)
        target_s = self.option["target_ms"] / 1e3
        growth = self.option["gain"] * (target_s - queueing_s) / target_s * ack.acked_bytes
        window = self.window_bytes + growth * self.packet_bytes / self.window_bytes
        allowed = ack.prior_bytes_in_flight + ALLOWED_INCREASE_PACKETS * self.packet_bytes
        self.window_bytes = max(min(window, allowed), MIN_WINDOW_PACKETS * self.packet_bytes)
        self.log(queue_delay_ms=queueing_s * 1e3)

    def on_loss(self, loss: Loss) -> None:
        """Half the window, at most once per round trip; one packet after a timeout."""
        least = MIN_WINDOW_PACKETS * self.packet_bytes
        if loss.now_s - self._last_halved_s >= self._smoothed_rtt_s:
            self.window_bytes = min(self.window_bytes, max(self.window_bytes / 2, least))
            self._last_halved_s = loss.now_s
        if loss.is_persistent_congestion:
            self.window_bytes = float(self.packet_bytes)

    def _take_delay(self, packet: Packet, now_s: float) -> None:
        """Section 2.4.2: a history of base delays by minute, and the newest delays."""
        if packet.one_way_delay_s is None:
            return
        minute = int(now_s // 60)
        if minute != self._minute:
            self._minute = minute
            self._base_s.append(packet.one_way_delay_s)
        self._base_s[-1] = min(self._base_s[-1], packet.one_way_delay_s)
        self._current_s.append(packet.one_way_delay_s)
