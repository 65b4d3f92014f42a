"""A BBR and a Reno for the fourth and the fifth set of ``causes.py``, with one change per option.

Written from draft-cardwell-iccrg-bbr-congestion-control-00 and RFC 9002, and not from those of
`qbkit.cca.builtin`. A run is named by the source of its controller, so an edit here measures every
case of it anew.
"""

from __future__ import annotations

import math
from typing import ClassVar

import qbkit as qb
from qbkit.cca import (
    Ack,
    Controller,
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

QUANTUM = whole("packets leave when there is room for so many", 1, 1, 1000)


def in_groups(ack: Ack, window_bytes: float, least_bytes: float) -> float:
    """The window, or what is in flight until there is room for so much at once."""
    waits = ack.bytes_in_flight and window_bytes - ack.bytes_in_flight < least_bytes
    return float(ack.bytes_in_flight) if waits else window_bytes


@qb.controller("fourth-bbr")
class FourthBbr(Controller):
    """Probes by rounds: one up, one down, and some that cruise; ProbeRTT comes by the clock."""

    options: ClassVar[dict[str, Option]] = {
        "startup_gain": number("pacing and window gain of startup", 2.89, 1, 10),
        "growth": number("growth of the rate in a round that keeps it going", 1.25, 1, 10),
        "flat_rounds": whole("rounds without that growth that end it", 3, 1, 100),
        "drain_gain": number("pacing gain of the drain after it", 0.35, 0.05, 1),
        "drain_rounds": whole("its length in rounds (0: down to one BDP)", 0, 0, 100),
        "up_gain": number("pacing gain of a probe", 1.25, 1, 4),
        "up_rounds": whole("rounds of a probe", 1, 1, 100),
        "down_gain": number("pacing gain after it", 0.75, 0.1, 1),
        "cruise_rounds": whole("rounds that cruise", 6, 0, 1000),
        "filter_rounds": whole("rounds of which the greatest rate counts", 10, 1, 10**6),
        "window_gain": number("window over BDP", 2.0, 0.5, 10),
        "cruise_gain": number("the same while cruising", None, 0.1, 10),
        "room": switch("room for what one ACK acknowledges", True),
        "probe_rtt_every_s": number("time between ProbeRTTs", 10.0, 0.5, 10**6),
        "probe_rtt_ms": number("length of one", 200.0, 1, 10_000),
        "probe_rtt_packets": whole("window in it", 4, 1, 1000),
        "loss_keeps": number("part of what is in flight that a loss leaves", 1.0, 0.1, 1),
        "rate_percent": number("pacing rate, of the rate known", 100.0, 10, 1000),
        "quantum_packets": QUANTUM,
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.state = "startup"
        self._rounds = RoundTrips()
        self._rates: dict[int, float] = {}
        self._rtt_s = math.inf
        self._most_acked = self._known_rate = 0.0
        self._flat = self._began = 0
        self._probe_rtt_s = self._loss_s = 0.0
        self._cap_bytes = math.inf
        self._window = self.window_bytes
        self.pacing_rate_bytes_per_s = self._paced = math.inf

    @property
    def rate(self) -> float:
        """Bytes/s."""
        return max(self._rates.values(), default=0.0)

    def on_ack(self, ack: Ack) -> None:
        if ack.delivery is None:
            return
        ends = self._rounds.update(ack)
        oldest = self._rounds.count - self.option["filter_rounds"]
        self._rates = {at: rate for at, rate in self._rates.items() if at > oldest}
        sample = ack.delivery
        if not sample.is_app_limited or sample.rate_bytes_per_s > self.rate or not self._rates:
            known = self._rates.get(self._rounds.count, 0.0)
            self._rates[self._rounds.count] = max(known, sample.rate_bytes_per_s)
        if self.state == "probe_rtt" or ack.rtt_s is None:
            self._rtt_s = ack.rtt_s or self._rtt_s
        else:
            self._rtt_s = min(self._rtt_s, ack.rtt_s)
        self._most_acked = max(0.98 * self._most_acked, ack.acked_bytes)
        self._probe_rtt(ack)
        self._go_on(ack, ends and not sample.is_app_limited)
        self._set(ack)

    def on_loss(self, loss: Loss) -> None:
        """Of the losses of a second, the first counts."""
        if self.option["loss_keeps"] < 1 and loss.now_s > self._loss_s + 1:
            in_flight = loss.bytes_in_flight + loss.lost_bytes
            self._cap_bytes, self._loss_s = self.option["loss_keeps"] * in_flight, loss.now_s

    def _probe_rtt(self, ack: Ack) -> None:
        if self.state == "probe_rtt":
            if ack.now_s > self._probe_rtt_s:
                self.is_sending_less = False
                self._probe_rtt_s = ack.now_s
                self._enter("cruise")
        elif not self._probe_rtt_s:
            self._probe_rtt_s = ack.now_s
        elif ack.now_s > self._probe_rtt_s + self.option["probe_rtt_every_s"]:
            self.is_sending_less = True
            self._probe_rtt_s = ack.now_s + self._rtt_s + self.option["probe_rtt_ms"] / 1e3
            self._enter("probe_rtt")

    def _enter(self, state: str) -> None:
        self.state, self._began = state, self._rounds.count

    def _go_on(self, ack: Ack, ends: bool) -> None:
        """To the next state, if this one is over."""
        rounds = self._rounds.count - self._began
        empty = ack.bytes_in_flight <= self.rate * self._rtt_s
        if self.state == "startup" and ends:
            grows = self.rate >= self.option["growth"] * self._known_rate
            self._flat = 0 if grows else self._flat + 1
            self._known_rate = self.rate if grows else self._known_rate
            if self._flat >= self.option["flat_rounds"]:
                self._enter("drain")
        elif self.state == "drain":
            needed = self.option["drain_rounds"]
            if rounds >= needed if needed else empty:
                self._enter("cruise")
        elif self.state == "cruise" and rounds >= self.option["cruise_rounds"]:
            self._enter("up")
        elif self.state == "up" and rounds >= self.option["up_rounds"]:
            self._enter("down")
        elif self.state == "down" and (rounds >= 1 or empty):
            self._enter("cruise")

    def _set(self, ack: Ack) -> None:
        gain = self.option[f"{self.state}_gain"] if self.state in GAINS else 1.0
        rate = gain * self.rate * self.option["rate_percent"] / 100
        window = self._window_gain() * self.rate * self._rtt_s
        if self.option["room"]:
            window += 2 * self._most_acked
        if self.state == "startup":
            window = max(self._window, min(window, self._window + ack.acked_bytes))
            rate = max(rate, self._paced) if math.isfinite(self._paced) else rate
        self._window, self._paced = window, rate
        if self.state == "probe_rtt":
            window = self.option["probe_rtt_packets"] * self.packet_bytes
        elif ack.now_s < self._loss_s + 1:
            window = min(window, self._cap_bytes)
        window = max(window, self.packet_bytes)
        self.pacing_rate_bytes_per_s = rate
        if self.option["quantum_packets"] > 1 and self.state != "startup":
            self._send_in_groups(ack, window)
        else:
            self.window_bytes = window

    def _send_in_groups(self, ack: Ack, window: float) -> None:
        """Below the window, in flight is what the gain asks for: without pacing, it sets it."""
        gain = self.option[f"{self.state}_gain"] if self.state in GAINS else 1.0
        wanted = min(window, max(gain, 1.0) * self.rate * self._rtt_s + 2 * self._most_acked)
        self.pacing_rate_bytes_per_s = math.inf
        quantum = self.option["quantum_packets"] * self.packet_bytes
        self.window_bytes = in_groups(ack, wanted, min(quantum, window))

    def _window_gain(self) -> float:
        name = {"startup": "startup_gain", "cruise": "cruise_gain"}.get(self.state, "window_gain")
        return float(self.option[name] or self.option["window_gain"])


GAINS = ("startup", "drain", "up", "down")


@qb.controller("fourth-reno")
class FourthReno(WindowController):
    """RFC 9002, section 7, without HyStart."""

    options: ClassVar[dict[str, Option]] = {
        "beta": number("part of the window that a loss leaves", 0.5, 0.05, 1),
        "packets_per_rtt": number("additive increase", 1.0, 0, 100),
        "holds_s": number("the window rests for so long after a loss", 0.0, 0, 1000),
        "start_part": number("packets per packet acknowledged in slow start", 1.0, 0.05, 4),
        "first_ssthresh_packets": whole("ends the first slow start", 10**6, 2, 10**6),
        "waits_rtts": number("so long after a reduction no loss counts", 0.0, 0, 10**4),
        "most_packets": whole("largest window", 10**6, 2, 10**6),
        "pacing_percent": number("pacing rate, of the window over the RTT", 125.0, 101, 1000),
        "restart_packets": whole("window after a pause (0: as before)", 0, 0, 1000),
        "forgives": switch("persistent congestion is a loss like any other", False),
        "quantum_packets": QUANTUM,
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._cwnd = self.window_bytes
        self.ssthresh_bytes = float(self.option["first_ssthresh_packets"] * self.packet_bytes)
        self._reduced_s = -math.inf
        self._rtt_s = 0.0

    def on_ack(self, ack: Ack) -> None:
        self._rtt_s = ack.smoothed_rtt_s
        if ack.newest_sent_s > self._reduced_s:
            self._grow(ack)
        self._cwnd = min(self._cwnd, self.option["most_packets"] * self.packet_bytes)
        quantum = self.option["quantum_packets"]
        self.window_bytes = self._cwnd
        if quantum > 1:
            self.window_bytes = in_groups(ack, self._cwnd, quantum * self.packet_bytes)
        self.pacing_rate_bytes_per_s = (
            self.option["pacing_percent"] / 100 * self._cwnd / (ack.smoothed_rtt_s)
        )

    def _grow(self, ack: Ack) -> None:
        assert self.ssthresh_bytes
        if self._cwnd < self.ssthresh_bytes:
            self._cwnd += self.option["start_part"] * ack.acked_bytes
        elif ack.now_s > self._reduced_s + self.option["holds_s"]:
            part = self.option["packets_per_rtt"] * self.packet_bytes / self._cwnd
            self._cwnd += part * ack.acked_bytes

    def on_loss(self, loss: Loss) -> None:
        waits_s = self.option["waits_rtts"] * self._rtt_s
        if loss.newest_sent_s > self._reduced_s and loss.now_s > self._reduced_s + waits_s:
            self._reduced_s = loss.now_s
            self._cwnd = max(self.option["beta"] * self._cwnd, 2 * self.packet_bytes)
            self.ssthresh_bytes = self._cwnd
        if loss.is_persistent_congestion and not self.option["forgives"]:
            self._cwnd, self._reduced_s = 2.0 * self.packet_bytes, -math.inf
        self.window_bytes = self._cwnd

    def on_idle(self, idle: Idle) -> None:
        if self.option["restart_packets"] and idle.idle_s > self._rtt_s:
            self._cwnd = min(self._cwnd, self.option["restart_packets"] * self.packet_bytes)
            self.window_bytes = self._cwnd
