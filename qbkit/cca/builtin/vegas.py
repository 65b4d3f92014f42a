"""Vegas: keeps two to four packets of its own in the queue, seen by the round trip's growth.

Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", JSAC 13(8),
1995, in the form of Linux's ``tcp_vegas``: a window in packets, adjusted once a round trip by the
whole packets in the queue: "more than 4" means 5 or more, and slow start ends at 2. After a
loss it waits for a round trip without samples of before.
"""

from __future__ import annotations

import math
from typing import ClassVar

from ..controller import Settings
from ..events import Ack, Loss
from ..loss_based import OPTIONS, LossBasedController
from ..options import Option, number
from ..rounds import RoundTrips

LEAST_SAMPLES = 3
"""With fewer in a round trip, one may be of a late ACK: that round trip grows as Reno's."""


class Vegas(LossBasedController):
    """diff = window · (RTT - baseRTT) / baseRTT, the packets it has in the queue."""

    options: ClassVar[dict[str, Option]] = {
        "pacing": OPTIONS["pacing"],
        "alpha_packets": number("with fewer in the queue the window grows (2)", 2, 0.1, 1000),
        "beta_packets": number("with more in the queue it shrinks (4)", 4, 0.1, 1000),
        "gamma_packets": number("with more in the queue slow start ends (1)", 1, 0.1, 1000),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._rounds = RoundTrips()
        self._round_rtt_s, self._samples = math.inf, 0
        self._grows_as_reno = True
        self._begins_again = False

    def on_ack(self, ack: Ack) -> None:
        """Take the RTT; at the end of a round trip, adjust."""
        if self.is_recovering(ack):
            return
        if self._begins_again:
            self._begin_again(ack)
        else:
            self._take_rtt(ack)
        super().on_ack(ack)

    def on_loss(self, loss: Loss) -> None:
        """What was seen until recovery ends says nothing of the round trips after it."""
        super().on_loss(loss)
        self._begins_again = True

    def avoid_congestion(self, ack: Ack) -> None:
        """`_adjust` does it."""
        if self._grows_as_reno:
            self.window_bytes += self.packet_bytes * ack.acked_bytes / self.window_bytes

    def window_after_loss_bytes(self, loss: Loss) -> float:
        """As Reno."""
        return self.window_bytes / 2

    def _begin_again(self, ack: Ack) -> None:
        """The first round trip after a loss begins with this ACK; the window stays."""
        self._begins_again = self._grows_as_reno = False
        self._rounds.update(ack)
        self._forget_round()

    def _take_rtt(self, ack: Ack) -> None:
        if ack.rtt_s is not None:
            self._round_rtt_s = min(self._round_rtt_s, ack.rtt_s)
            self._samples += 1
        if self._rounds.update(ack):
            self._grows_as_reno = self._samples < LEAST_SAMPLES
            if not self._grows_as_reno:
                self._adjust(ack.min_rtt_s)
            self._forget_round()

    def _adjust(self, base_rtt_s: float) -> None:
        """The least RTT of a round trip is free of delayed ACKs."""
        queued = int(self.window_bytes * (self._round_rtt_s / base_rtt_s - 1) / self.packet_bytes)
        self.log(queued_packets=queued)
        if self.is_in_slow_start:
            if queued > self.option["gamma_packets"]:
                fitting_bytes = self.window_bytes * base_rtt_s / self._round_rtt_s
                self._lower(min(self.window_bytes, fitting_bytes + self.packet_bytes))
        elif queued > self.option["beta_packets"]:
            self._lower(self.window_bytes - self.packet_bytes)
        elif queued < self.option["alpha_packets"]:
            self.window_bytes += self.packet_bytes

    def _lower(self, window_bytes: float) -> None:
        """And no slow start back to where it was."""
        self._set_window(window_bytes)
        below = self.window_bytes - self.packet_bytes
        self.ssthresh_bytes = min(self.ssthresh_bytes or math.inf, below)

    def _forget_round(self) -> None:
        self._round_rtt_s, self._samples = math.inf, 0
