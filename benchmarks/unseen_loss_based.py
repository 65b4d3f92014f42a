"""A CUBIC and a Reno for the cases that no rule has seen, with options that change one thing.

Written from RFC 9002, RFC 9406 and RFC 9438, and not from those of `qbkit.cca.builtin`.
"""

from __future__ import annotations

import math
from typing import ClassVar

import qbkit as qb
from qbkit.cca import (
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

LOSS_BASED: dict[str, Option] = {
    "beta": number("part of the window that a loss leaves", None, 0.05, 1),
    "most_packets": whole("largest window", 10**6, 2, 10**6),
    "recovery_s": number(
        "so long after a reduction no loss counts (0: a round trip)", 0.0, 0, 1000
    ),
    "undoes_below": whole("a loss of fewer packets is taken for spurious", 0, 0, 1000),
    "hystart": switch("HyStart++", True),
    "rise_ms": number("the rise of the RTT that ends slow start", None, 0.01, 1000),
    "restarts": switch("a pause of a round trip begins at the initial window again", False),
    "persistent": switch("an outage leaves two packets", True),
    "paced": switch("false: no pacing", True),
    "quantum_packets": whole("packets leave when there is room for so many", 1, 1, 1000),
}


class LossBased(WindowController):
    """Slow start by HyStart++, one reduction a round trip, and what a subclass adds."""

    beta: ClassVar[float]
    options: ClassVar[dict[str, Option]] = LOSS_BASED

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._cwnd = self.window_bytes
        self._first_window = self.window_bytes
        self._keeps = self.option["beta"] or self.beta
        self._reduced_s = -math.inf
        self._lost_packets = 0
        self._before: float | None = None
        self._rounds = RoundTrips()
        self._round_rtt_s = self._last_round_rtt_s = math.inf
        if not self.option["paced"]:
            self.pacing_rate_bytes_per_s = math.inf

    def grow(self, ack: Ack) -> None:
        """In congestion avoidance."""
        raise NotImplementedError

    def has_reduced(self, before_bytes: float) -> None:
        """Whatever else a loss changes."""

    def on_ack(self, ack: Ack) -> None:
        self._undo(ack)
        if ack.newest_sent_s > self._reduced_s:
            if self.ssthresh_bytes is None or self._cwnd < self.ssthresh_bytes:
                self._cwnd += ack.acked_bytes
                self._end_slow_start(ack)
            else:
                self.grow(ack)
        self._cwnd = min(self._cwnd, self.option["most_packets"] * self.packet_bytes)
        room = self._cwnd - ack.bytes_in_flight
        waits = ack.bytes_in_flight and room < self.option["quantum_packets"] * self.packet_bytes
        blocks = self.option["quantum_packets"] > 1 and waits
        self.window_bytes = float(ack.bytes_in_flight) if blocks else self._cwnd

    def on_loss(self, loss: Loss) -> None:
        if loss.newest_sent_s > self._reduced_s and (
            loss.now_s > self._reduced_s + self.option["recovery_s"]
        ):
            self._before, self._lost_packets = self._cwnd, 0
            self._reduced_s = loss.now_s
            self._cwnd = max(self._keeps * self._cwnd, 2 * self.packet_bytes)
            self.ssthresh_bytes = self._cwnd
            self.has_reduced(self._before)
        self._lost_packets += len(loss.packets)
        if loss.is_persistent_congestion and self.option["persistent"]:
            self._cwnd, self._reduced_s = 2.0 * self.packet_bytes, -math.inf
            self._before = None
        self.window_bytes = self._cwnd

    def on_idle(self, idle: Idle) -> None:
        if self.option["restarts"] and idle.idle_s > 0.2:
            self._cwnd = self.window_bytes = min(self._cwnd, self._first_window)

    def _undo(self, ack: Ack) -> None:
        """A round trip after a reduction, the loss may look too small to be one."""
        if self._before is None or ack.newest_sent_s <= self._reduced_s:
            return
        if self._lost_packets < self.option["undoes_below"]:
            self._cwnd = self.ssthresh_bytes = self._before
        self._before = None

    def _end_slow_start(self, ack: Ack) -> None:
        """RFC 9406, without its second, conservative, part."""
        if not self.option["hystart"] or self.ssthresh_bytes is not None:
            return
        if self._rounds.update(ack):
            self._last_round_rtt_s, self._round_rtt_s = self._round_rtt_s, math.inf
        self._round_rtt_s = min(self._round_rtt_s, ack.rtt_s or math.inf)
        if math.isinf(self._last_round_rtt_s) or math.isinf(self._round_rtt_s):
            return
        usual_s = min(max(self._last_round_rtt_s / 8, 0.004), 0.016)
        rise_s = self.option["rise_ms"] / 1e3 if self.option["rise_ms"] else usual_s
        if self._round_rtt_s >= self._last_round_rtt_s + rise_s:
            self.ssthresh_bytes = self._cwnd


@qb.controller("unseen-reno")
class UnseenReno(LossBased):
    """RFC 9002."""

    beta = 0.5
    options: ClassVar[dict[str, Option]] = {
        **LOSS_BASED,
        "packets_per_rtt": number("additive increase", 1.0, 0, 100),
    }

    def grow(self, ack: Ack) -> None:
        part = self.option["packets_per_rtt"] * self.packet_bytes / self._cwnd
        self._cwnd += part * ack.acked_bytes


@qb.controller("unseen-cubic")
class UnseenCubic(LossBased):
    """RFC 9438, with its rule that the friendly window grows by one from the last peak on."""

    beta = 0.7
    options: ClassVar[dict[str, Option]] = {
        **LOSS_BASED,
        "c": number("packets/s³", 0.4, 0.001, 100),
        "friendly": switch("at least as fast as Reno", True),
        "k_part": number("K, of the usual", 1.0, 0, 10),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._peak = self._friendly = 0.0
        self._since_s: float | None = None

    def has_reduced(self, before_bytes: float) -> None:
        """Fast convergence too."""
        lower = before_bytes < self._peak
        self._peak = before_bytes * (1 + self._keeps) / 2 if lower else before_bytes
        self._friendly = self._cwnd
        self._since_s = None

    def grow(self, ack: Ack) -> None:
        packet = self.packet_bytes
        if self._since_s is None:
            self._since_s = ack.now_s
            self._peak = max(self._peak, self._cwnd)
            self._friendly = max(self._friendly, self._cwnd)
            usual_s = ((self._peak - self._cwnd) / packet / self.option["c"]) ** (1 / 3)
            self._k_s = usual_s * self.option["k_part"]
        ahead_s = ack.now_s + ack.smoothed_rtt_s - self._since_s - self._k_s
        cubic = self._peak + self.option["c"] * packet * ahead_s**3
        goal = min(max(cubic, self._cwnd), 1.5 * self._cwnd)
        alpha = 1.0 if self._friendly >= self._peak else 3 * (1 - self._keeps) / (1 + self._keeps)
        self._friendly += alpha * packet * ack.acked_bytes / self._cwnd
        self._cwnd += (goal - self._cwnd) * ack.acked_bytes / self._cwnd
        if self.option["friendly"]:
            self._cwnd = max(self._cwnd, self._friendly)
