"""A CUBIC for the tenth set of ``causes.py``, with one change per option.

The window is not added to: RFC 9438's curves give it, from what has passed since the epoch's start.
Slow start ends as in RFC 9406, without its rounds of conservative growth. A run is named by the
source of its controller, so an edit here measures every case of it anew.
"""

from __future__ import annotations

import math
from typing import ClassVar

import qbkit as qb
from qbkit.cca import (
    NOT_PACED,
    Ack,
    Idle,
    Loss,
    Option,
    RoundTrips,
    Settings,
    WindowController,
    number,
    switch,
    whole,
)

PACING = {"slow_start": 2.0, "congestion_avoidance": 1.25}
"""Pacing rate over window per RTT, by state."""
LEAST_PACKETS = 2.0
SAMPLES, LEAST_RISE_S, MOST_RISE_S = 8, 0.004, 0.016
"""So many RTTs of a round, and by how much the least of them must exceed that of the last round."""
IDLE_S = 0.5


class Epoch:
    """Congestion avoidance since a reduction, in packets: the higher of two curves counts."""

    def __init__(
        self, start_s: float, window: float, plateau: float, lost_at: float, c: float, alpha: float
    ) -> None:
        """``lost_at`` is the window that the last loss ended; from there Reno's curve is Reno's."""
        self.reno = window
        self._top = max(plateau, window)
        self._top_s = start_s + ((self._top - window) / c) ** (1 / 3)
        self._lost_at, self._c, self._alpha = lost_at, c, alpha

    def cubic(self, at_s: float) -> float:
        return float(self._c * (at_s - self._top_s) ** 3 + self._top)

    def count(self, acked: float, window: float) -> None:
        """So many packets were acknowledged with this window."""
        self.reno += (self._alpha if self.reno < self._lost_at else 1.0) * acked / window


@qb.controller("tenth-cubic")
class TenthCubic(WindowController):
    """CUBIC by epochs, with fast convergence and HyStart++, paced."""

    options: ClassVar[dict[str, Option]] = {
        "beta": number("part of the window that a loss leaves", 0.7, 0.05, 0.99),
        "c": number("CUBIC's C in packets/s³", 0.4, 0.001, 100),
        "alpha": number("packets per round trip of the Reno-friendly curve", 9 / 17, 0, 100),
        "start_part": number("packets that slow start adds per packet acknowledged", 1.0, 0.05, 1),
        "hystart": switch("false: a loss alone ends slow start", True),
        "idle_keeps": number("part of the window that half a second's pause leaves", 1.0, 0.01, 1),
        "outlasts": switch("persistent congestion is a loss like others", False),
        "forgives_packets": whole("a round that loses at most so many is undone", 0, 0, 1000),
        "burst_packets": whole("packets leave when there is room for so many", 1, 1, 1000),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._window = self.window_bytes / self.packet_bytes
        self._threshold, self._plateau = math.inf, 0.0
        self._epoch: Epoch | None = None
        self._cut_s = -math.inf
        self._lost: float = -math.inf
        """Packets of the round of a loss; what is lost after it has been judged does not count."""
        self._undone: tuple[float, float, float] | None = None
        self._rounds = RoundTrips()
        self._rtts_s = list[float]()
        self._last_rtt_s = math.inf

    def on_ack(self, ack: Ack) -> None:
        acked = ack.acked_bytes / self.packet_bytes
        if ack.newest_sent_s > self._cut_s:
            self._judge_loss()
            if ack.is_app_limited:
                self._epoch = None
            elif self._window < self._threshold:
                self._window += self.option["start_part"] * acked
                if self.option["hystart"] and self._rtt_rises(ack):
                    self._threshold = self._window
            else:
                self._avoid(ack, acked)
        self._show()
        self._pace(ack)

    def on_loss(self, loss: Loss) -> None:
        """Once a round trip; CUBIC ends its epoch."""
        if loss.newest_sent_s > self._cut_s:
            self._undone = self._window, self._threshold, self._plateau
            converges = self._window < self._plateau
            self._plateau = self._window * ((1 + self.option["beta"]) / 2 if converges else 1)
            self._window = self._threshold = self._least(self.option["beta"] * self._window)
            self._epoch, self._cut_s, self._lost = None, loss.now_s, 0
        self._lost += len(loss.packets)
        if loss.is_persistent_congestion and not self.option["outlasts"]:
            self._window, self._cut_s, self._undone = LEAST_PACKETS, -math.inf, None
        self._show()

    def on_idle(self, idle: Idle) -> None:
        self._epoch = None
        if idle.idle_s >= IDLE_S and self.option["idle_keeps"] < 1:
            self._threshold = self._window
            self._window = self._least(self.option["idle_keeps"] * self._window)
        self._show()

    def _least(self, packets: float) -> float:
        return float(max(packets, LEAST_PACKETS))

    def _avoid(self, ack: Ack, acked: float) -> None:
        if self._epoch is None:
            lost_at = self._undone[0] if self._undone else self._window
            shape = self.option["c"], self.option["alpha"]
            self._epoch = Epoch(ack.now_s, self._window, self._plateau, lost_at, *shape)
        self._epoch.count(acked, self._window)
        # RFC 9438, section 4.4: the curve of a round trip later, at most half as much again
        aim = min(self._epoch.cubic(ack.now_s + ack.smoothed_rtt_s), 1.5 * self._window)
        steps = (aim - self._window) * acked / self._window
        self._window = max(self._window + max(steps, 0.0), self._epoch.reno)

    def _judge_loss(self) -> None:
        """The round of the loss is over: undo it if it lost too little."""
        if self._undone and 0 < self._lost <= self.option["forgives_packets"]:
            self._window, self._threshold, self._plateau = self._undone
            self._epoch = None
        self._lost = -math.inf

    def _rtt_rises(self, ack: Ack) -> bool:
        """HyStart++: the least RTT of this round is an eighth above that of the last."""
        if self._rounds.update(ack):
            self._last_rtt_s = min(self._rtts_s, default=math.inf)
            self._rtts_s = []
        if ack.rtt_s is not None:
            self._rtts_s.append(ack.rtt_s)
        if len(self._rtts_s) < SAMPLES or math.isinf(self._last_rtt_s):
            return False
        rise_s = min(max(self._last_rtt_s / 8, LEAST_RISE_S), MOST_RISE_S)
        return min(self._rtts_s) >= self._last_rtt_s + rise_s

    def _show(self) -> None:
        self.state = "slow_start" if self._window < self._threshold else "congestion_avoidance"
        self.window_bytes = self._window * self.packet_bytes

    def _pace(self, ack: Ack) -> None:
        """In bursts nothing leaves until there is room for one, and then it is not paced."""
        self.pacing_rate_bytes_per_s = PACING[self.state] * self.window_bytes / ack.smoothed_rtt_s
        if self.option["burst_packets"] > 1:
            self.pacing_rate_bytes_per_s = NOT_PACED
            room = self.window_bytes - ack.bytes_in_flight
            if ack.bytes_in_flight and room < self.option["burst_packets"] * self.packet_bytes:
                self.window_bytes = float(ack.bytes_in_flight)
