"""A Reno for the ninth set of ``causes.py``, with one change per option.

It is RFC 9002 with the delay half of Hybrid Slow Start, and it takes the second timeout in a row,
not persistent congestion, for the end of its path. A run is named by the source of its controller,
so an edit here measures every case of it anew.
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
    Settings,
    Timeout,
    WindowController,
    number,
    switch,
    whole,
)

PACING = {"slow_start": 2.0, "congestion_avoidance": 1.25}
"""Pacing rate over window per RTT, by state."""
SAMPLES, RISE_PART, RISE_S = 8, 1 / 8, 0.004
"""So many RTTs of a round, and by how much the least of them must exceed that of all."""
IDLE_S = 1.0


@qb.controller("ninth-reno")
class NinthReno(WindowController):
    """NewReno in packets, paced; Hybrid Slow Start looks at the least RTT of each round."""

    options: ClassVar[dict[str, Option]] = {
        "beta": number("part of the window that a loss leaves", 0.5, 0.05, 0.99),
        "increase": number("packets that a round trip adds", 1.0, 0.01, 100),
        "trusts_each": switch("Hybrid Slow Start looks at each RTT, not the least of some", False),
        "most_packets": whole("largest window", 10**6, 2, 10**6),
        "timer_ms": number("packets leave when a timer of this period fires", 0.0, 0, 1000),
        "idle_keeps": number("part of the window that a pause of a second leaves", 1.0, 0.01, 1),
        "ignores_timeouts": switch("no timeout changes the window", False),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._window = self.window_bytes / self.packet_bytes
        self._threshold, self._cut_s = math.inf, -math.inf
        self._round_s, self._rtts = -math.inf, list[float]()
        self._fired_s = -math.inf

    def on_ack(self, ack: Ack) -> None:
        acked = ack.acked_bytes / self.packet_bytes
        if ack.newest_sent_s > self._cut_s:
            if self._window < self._threshold:
                self._window += acked
                self._watch_rtt(ack)
            else:
                self._window += self.option["increase"] * acked / self._window
            self._window = min(self._window, self.option["most_packets"])
        self._show()
        self.pacing_rate_bytes_per_s = PACING[self.state] * self.window_bytes / ack.smoothed_rtt_s
        if self.option["timer_ms"]:
            self._wait_for_timer(ack)

    def on_loss(self, loss: Loss) -> None:
        """Once a round trip."""
        if loss.newest_sent_s > self._cut_s:
            self._window = self._threshold = max(self.option["beta"] * self._window, 2.0)
            self._cut_s = loss.now_s
        self._show()

    def on_timeout(self, timeout: Timeout) -> None:
        """The second in a row begins again from two packets."""
        if timeout.consecutive == 2 and not self.option["ignores_timeouts"]:
            self._threshold = max(self._window / 2, 2.0)
            self._window, self._cut_s = 2.0, timeout.now_s
            self._show()

    def on_idle(self, idle: Idle) -> None:
        if idle.idle_s >= IDLE_S and self.option["idle_keeps"] < 1:
            self._threshold = self._window
            self._window = max(self.option["idle_keeps"] * self._window, 2.0)
            self._show()

    def _watch_rtt(self, ack: Ack) -> None:
        """Slow start ends with a round of longer RTTs, or, if an option says so, with one RTT."""
        if ack.rtt_s is None:
            return
        if ack.newest_sent_s >= self._round_s:
            self._round_s, self._rtts = ack.now_s, []
        self._rtts.append(ack.rtt_s)
        trusted = self.option["trusts_each"] or len(self._rtts) >= SAMPLES
        seen_s = ack.rtt_s if self.option["trusts_each"] else min(self._rtts)
        if trusted and seen_s > ack.min_rtt_s + max(RISE_PART * ack.min_rtt_s, RISE_S):
            self._threshold = self._window

    def _show(self) -> None:
        self.state = "slow_start" if self._window < self._threshold else "congestion_avoidance"
        self.window_bytes = self._window * self.packet_bytes

    def _wait_for_timer(self, ack: Ack) -> None:
        """Between two firings the window is what is in flight; at one, all of it may leave."""
        self.pacing_rate_bytes_per_s = NOT_PACED
        if ack.now_s >= self._fired_s + self.option["timer_ms"] / 1e3:
            self._fired_s = ack.now_s
        elif ack.bytes_in_flight:
            self.window_bytes = min(self.window_bytes, float(ack.bytes_in_flight))
