"""A BBR for the cases that no rule has seen, with options that change one thing.

Written from draft-ietf-ccwg-bbr, without its bounds on what is in flight, and not from that of
`qbkit.cca.builtin`. A run is named by the source of its controller, so an edit here measures every
case of it anew.
"""

from __future__ import annotations

import math
from typing import ClassVar

import qbkit as qb
from qbkit.cca import Ack, Controller, Loss, Option, RoundTrips, Settings, number, switch, whole

LEAST_PACKETS = 4


@qb.controller("unseen-bbr")
class UnseenBbr(Controller):
    """Probes by the clock: down, cruise, refill, up; the greatest rate of two cycles counts."""

    options: ClassVar[dict[str, Option]] = {
        "startup_gain": number("pacing gain of startup", 2.77, 1, 10),
        "startup_rounds": whole("rounds without growth that end it", 3, 1, 100),
        "drain_gain": number("pacing gain of the drain after it", 0.36, 0.05, 1),
        "drains_to_bdp": number("what ends a drain, in flight", 1.0, 0.5, 5),
        "up_gain": number("pacing gain of a probe", 1.25, 1, 4),
        "down_gain": number("pacing gain after it", 0.75, 0.1, 1),
        "probe_s": number("from probe to probe", 1.0, 0.1, 1000),
        "memory_cycles": whole("cycles that the greatest rate counts", 2, 1, 10**6),
        "memory_rounds": whole("rounds instead of these (0: cycles)", 0, 0, 10**6),
        "acks_a_round": whole("a round is so many ACKs (0: counted by packets)", 0, 0, 1000),
        "window_gain": number("window over BDP", 2.0, 0.5, 10),
        "cruise_bdp": number("window while cruising, in BDP", None, 0.1, 2),
        "aggregation": switch("room for what one ACK acknowledges", True),
        "probe_rtt_every_s": number("time between ProbeRTTs", 8.0, 0.5, 10**6),
        "probe_rtt_ms": number("length of ProbeRTT", 200.0, 1, 10_000),
        "probe_rtt_bdp": number("window in it", 0.5, 0, 2),
        "burst_keeps": number("part of the window that a loss leaves for a second", 1.0, 0.1, 1),
        "rate_percent": number("pacing rate, of the rate known", 99.0, 10, 1000),
        "paced": switch("false: no pacing", True),
        "timer_ms": number("packets leave when it fires only", 0.0, 0, 1000),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.state = "startup"
        self._rounds = RoundTrips()
        self._acks = self._round_count = 0
        self._rates: dict[int, float] = {}
        self._cycle = 0
        self._rtt_s = math.inf
        self._rtt_found_s = self._began_s = self._fired_s = 0.0
        self._cap_end_s = self._probe_rtt_end_s = 0.0
        self._grown = 0.0
        self._flat_rounds = 0
        self._most_acked = 0.0
        self._cap_bytes = math.inf
        self._first_window = self.window_bytes
        self._paced = self.option["startup_gain"] * self.window_bytes / 0.05
        self._model = (self.window_bytes, self._paced)
        self.pacing_rate_bytes_per_s = self._paced if self.option["paced"] else math.inf

    @property
    def rate(self) -> float:
        """Bytes/s."""
        return max(self._rates.values(), default=0.0)

    def bdp(self, times: float = 1.0) -> float:
        """Bytes in flight that fill the path so many times."""
        return times * self.rate * self._rtt_s

    def on_ack(self, ack: Ack) -> None:
        if ack.delivery is None:
            return
        ends = self._round_ends(ack)
        self._learn_rate(ack)
        if ack.rtt_s is not None and ack.rtt_s < self._rtt_s:
            self._rtt_s, self._rtt_found_s = ack.rtt_s, ack.now_s
        self._go_on(ack, ends)
        self._probe_rtt(ack)
        self._set(ack)

    def on_loss(self, loss: Loss) -> None:
        keeps = self.option["burst_keeps"]
        if keeps < 1 and loss.now_s > self._cap_end_s:
            self._cap_bytes = keeps * (loss.bytes_in_flight + loss.lost_bytes)
            self._cap_end_s = loss.now_s + 1

    def _round_ends(self, ack: Ack) -> bool:
        ends = self._rounds.update(ack)
        if self.option["acks_a_round"]:
            self._acks += 1
            ends = self._acks % self.option["acks_a_round"] == 0
        self._round_count += ends
        return ends

    def _learn_rate(self, ack: Ack) -> None:
        assert ack.delivery
        by_rounds = self.option["memory_rounds"]
        now = self._round_count if by_rounds else self._cycle
        oldest = now - (by_rounds or self.option["memory_cycles"])
        self._rates = {at: rate for at, rate in self._rates.items() if at > oldest}
        rate = ack.delivery.rate_bytes_per_s
        if not ack.delivery.is_app_limited or rate > self.rate:
            self._rates[now] = max(rate, self._rates.get(now, 0.0))
        if not self._rates:
            self._rates[now] = rate
        self._most_acked = max(0.98 * self._most_acked, ack.acked_bytes)

    def _go_on(self, ack: Ack, ends: bool) -> None:
        """To the next state, if this one is over."""
        empty = ack.bytes_in_flight <= self.bdp(self.option["drains_to_bdp"])
        due = ack.now_s > self._began_s + self.option["probe_s"]
        limited = ack.delivery is not None and ack.delivery.is_app_limited
        over = {
            "startup": lambda: ends and not limited and self._is_full(),
            "drain": lambda: empty,
            "down": lambda: empty or due,
            "cruise": lambda: due,
            "refill": lambda: ends,
            "up": lambda: ends and ack.bytes_in_flight >= self.bdp(self.option["up_gain"]),
        }.get(self.state, lambda: False)
        if not over():
            return
        following = {"startup": "drain", "cruise": "refill", "refill": "up", "up": "down"}
        self.state = following.get(self.state, "cruise")
        if self.state == "up":
            self._began_s = ack.now_s
            self._cycle += 1

    def _is_full(self) -> bool:
        if self.rate >= 1.25 * self._grown:
            self._grown, self._flat_rounds = self.rate, 0
        else:
            self._flat_rounds += 1
        return self._flat_rounds >= self.option["startup_rounds"]

    def _probe_rtt(self, ack: Ack) -> None:
        """When the least RTT is old; what is measured at its end counts."""
        if self.state == "probe_rtt":
            if ack.now_s > self._probe_rtt_end_s:
                self.state, self.is_sending_less = "cruise", False
                self._rtt_found_s = self._began_s = ack.now_s
        elif ack.now_s > self._rtt_found_s + self.option["probe_rtt_every_s"]:
            self._rtt_s = ack.rtt_s or self._rtt_s
            self._probe_rtt_end_s = ack.now_s + self.option["probe_rtt_ms"] / 1e3 + self._rtt_s
            self.state, self.is_sending_less = "probe_rtt", True

    def _set(self, ack: Ack) -> None:
        gains = {"startup": "startup_gain", "drain": "drain_gain", "up": "up_gain"}
        named = {**gains, "down": "down_gain"}.get(self.state)
        rate = (
            (self.option[named] if named else 1.0) * self.rate * self.option["rate_percent"] / 100
        )
        window = self.bdp(max(self._window_gain(), 0.1))
        if self.option["aggregation"]:
            window += 2 * self._most_acked
        if self.state == "startup":
            window = min(self._model[0] + ack.acked_bytes, max(window, self._first_window))
            rate = max(rate, self._paced)
            self._paced = rate
        if self.state == "probe_rtt":
            window = self.bdp(self.option["probe_rtt_bdp"])
        if ack.now_s < self._cap_end_s:
            window = min(window, self._cap_bytes)
        window = max(window, LEAST_PACKETS * self.packet_bytes)
        self._model = window, rate if self.option["paced"] else math.inf
        self.window_bytes, self.pacing_rate_bytes_per_s = self._model
        if self.option["timer_ms"] and self.state != "startup":
            self._wait_for_timer(ack)

    def _window_gain(self) -> float:
        if self.state == "startup":
            return float(self.option["startup_gain"])
        if self.state in ("down", "cruise") and self.option["cruise_bdp"]:
            return float(self.option["cruise_bdp"])
        return float(self.option["window_gain"])

    def _wait_for_timer(self, ack: Ack) -> None:
        """Nothing leaves before it fires, and then all that was due."""
        window, rate = self._model
        self.pacing_rate_bytes_per_s = math.inf
        if ack.now_s < self._fired_s + self.option["timer_ms"] / 1e3 and ack.bytes_in_flight:
            self.window_bytes = max(ack.bytes_in_flight, 1.0)
            return
        due = max(rate * (ack.now_s - self._fired_s), 2.0 * self.packet_bytes)
        self.window_bytes = min(window, ack.bytes_in_flight + due)
        self.window_bytes = max(self.window_bytes, float(ack.bytes_in_flight), self.packet_bytes)
        self._fired_s = ack.now_s
