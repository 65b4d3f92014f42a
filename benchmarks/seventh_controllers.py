"""A BBR and a CUBIC for the seventh set of ``causes.py``, with one change per option.

The BBR is version 2 of draft-cardwell-iccrg-bbr-congestion-control-02, but losses lower its bounds
whatever was delivered; the CUBIC is that of `qbkit.cca.builtin`, paced as Linux does. A run is
named by the source of its controller, so an edit here measures every case of it anew.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import ClassVar

import qbkit as qb
from qbkit.cca import (
    Ack,
    Controller,
    DeliverySample,
    Idle,
    Loss,
    Option,
    RoundTrips,
    Settings,
    number,
    switch,
    whole,
)
from qbkit.cca.builtin.cubic import Cubic
from qbkit.cca.filters import ExtraAcked, FullPipe

LEAST_PACKETS = 4
MARGIN = 0.99
LOSS_PART = 0.02
"""More loss than this of what is in flight is too much."""
PROBE_RTT_EVERY_S, PROBE_RTT_S, PROBE_RTT_BDP = 5.0, 0.2, 0.5
PROBING = ("startup", "refill", "up")
"""States that look for more: a loss does not lower the bounds of what is usual."""
GAINED = ("startup", "drain", "up", "down", "cruise")
"""States whose pacing gain is an option; it is 1 in the others."""
HALVES_EACH_S = 0.5
PACING_AFTER_START = 1.2


@qb.controller("seventh-bbr")
class SeventhBbr(Controller):
    """Refills, probes up, drains down and cruises; losses lower its bounds until it refills."""

    options: ClassVar[dict[str, Option]] = {
        "startup_gain": number("pacing gain in Startup", 2.77, 1, 10),
        "drain_gain": number("pacing gain in Drain", 0.36, 0.05, 1),
        "skips_drain": switch("Startup is followed by CRUISE", False),
        "up_gain": number("pacing gain in UP", 1.25, 1, 4),
        "down_gain": number("pacing gain in DOWN", 0.75, 0.1, 1),
        "cruise_gain": number("pacing gain in CRUISE", 1.0, 0.1, 4),
        "window_gain": number("window over BDP", 2.0, 0.5, 10),
        "smoothed": switch("that BDP is of the smoothed RTT, not of the least", False),
        "cycle_s": number("least time from probe to probe", 2.0, 0.1, 1000),
        "cycle_rounds": whole("it probes after so many rounds, if that is sooner", 63, 1, 10**6),
        "filter_s": number("the greatest rate of so many seconds (0: two cycles)", 0, 0, 1000),
        "counts_limited": switch("samples that the application limits count as others", False),
        "lower_bounds": switch("false: losses lower neither bw_lo nor inflight_lo", True),
        "lower_beta": number("part of them that a round with losses leaves", 0.7, 0.05, 1),
        "renews_percent": number("an RTT so little above the least renews it", 0.0, 0, 1000),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.state = "startup"
        self._rounds = RoundTrips()
        self._full, self._extra = FullPipe(), ExtraAcked()
        self._rates: dict[float, float] = {}
        """Greatest rate by cycle, or by second."""
        self._cycle = self._began_round = self._cycle_round = 0
        self._began_s = self._cycle_s = self._wait_s = 0.0
        self._rtt_s = self._probed_rtt_s = math.inf
        self._rtt_found_s = self._probe_rtt_end_s = 0.0
        self._high = self._low_window = self._low_rate = math.inf
        self._lost = 0
        self._window = self.window_bytes
        self.pacing_rate_bytes_per_s = self._startup_rate = math.inf

    @property
    def known_rate(self) -> float:
        """Bytes/s; that of the path."""
        return max(self._rates.values(), default=0.0)

    @property
    def rate(self) -> float:
        """Bytes/s; not more than bw_lo."""
        return min(self.known_rate, self._low_rate)

    def bdp(self, times: float = 1.0) -> float:
        """Bytes in flight that fill the path so many times."""
        return times * self.rate * self._rtt_s

    def on_ack(self, ack: Ack) -> None:
        sample = ack.delivery
        if sample is None:
            return
        if self.option["counts_limited"]:
            sample = replace(sample, is_app_limited=self.is_sending_less)
        ends = self._rounds.update(ack)
        self._learn_rate(ack, sample)
        self._extra.update(ack.acked_bytes, self.rate, self._window, ends, ack.now_s)
        self._learn_rtt(ack)
        if ends:
            self._end_round(sample)
        self._go_on(ack, sample)
        self._probe_rtt(ack)
        self._set(ack)

    def on_loss(self, loss: Loss) -> None:
        """Too much of it ends Startup and UP, and sets inflight_hi."""
        self._lost += loss.lost_bytes
        in_flight = loss.bytes_in_flight + loss.lost_bytes
        if self.state not in PROBING or self._lost <= LOSS_PART * in_flight:
            return
        self._high = max(float(in_flight), 0.7 * self.bdp(self.option["window_gain"]))
        if self.state == "startup":
            self._full.reached = True
        else:
            self._enter("down", loss.now_s)

    def _learn_rate(self, ack: Ack, sample: DeliverySample) -> None:
        """The greatest of two cycles, or of some seconds."""
        rate, length_s = sample.rate_bytes_per_s, self.option["filter_s"]
        at = ack.now_s // 1 if length_s else float(self._cycle)
        if not sample.is_app_limited or rate >= self.known_rate:
            self._rates[at] = max(rate, self._rates.get(at, 0.0))
            oldest = max(self._rates) - (length_s or 2)
            self._rates = {time: kept for time, kept in self._rates.items() if time > oldest}

    def _learn_rtt(self, ack: Ack) -> None:
        if ack.rtt_s is None:
            return
        if self.state == "probe_rtt":
            self._probed_rtt_s = min(self._probed_rtt_s, ack.rtt_s)
        if ack.rtt_s < self._rtt_s:
            self._rtt_s, self._rtt_found_s = ack.rtt_s, ack.now_s
        elif ack.rtt_s < self._rtt_s * (1 + self.option["renews_percent"] / 100):
            self._rtt_found_s = ack.now_s

    def _end_round(self, sample: DeliverySample) -> None:
        """A round with losses lowers bw_lo and inflight_lo."""
        if not sample.is_app_limited:
            self._full.update(self.known_rate)
        if self._lost and self.option["lower_bounds"] and self.state not in PROBING:
            beta = self.option["lower_beta"]
            self._low_rate = beta * self.rate
            self._low_window = beta * min(self._low_window, self._window)
        self._lost = 0

    def _enter(self, state: str, now_s: float) -> None:
        self.state, self._began_s, self._began_round = state, now_s, self._rounds.count
        if state == "down":
            self._wait_s = self.option["cycle_s"] + random.random()
            self._cycle_s, self._cycle_round = now_s, self._rounds.count
        elif state == "refill":
            self._low_rate = self._low_window = math.inf

    def _go_on(self, ack: Ack, sample: DeliverySample) -> None:
        """To the next state, if this one is over."""
        in_flight = ack.bytes_in_flight
        if self.state == "startup" and self._full.reached:
            self._enter("cruise" if self.option["skips_drain"] else "drain", ack.now_s)
        elif self.state == "drain" and in_flight <= self.bdp():
            self._enter("down", ack.now_s)
        elif self.state == "down" and in_flight <= min(self.bdp(), 0.85 * self._high):
            self._enter("cruise", ack.now_s)
        elif self.state in ("down", "cruise") and self._is_due(ack.now_s):
            self._enter("refill", ack.now_s)
        elif self.state == "refill" and self._rounds.count > self._began_round:
            self._enter("up", ack.now_s)
        elif self.state == "up":
            self._high = max(self._high, float(in_flight))
            filled = in_flight >= self.bdp(self.option["up_gain"])
            if filled and ack.now_s > self._began_s + self._rtt_s:
                self._cycle += not sample.is_app_limited
                self._enter("down", ack.now_s)

    def _is_due(self, now_s: float) -> bool:
        rounds = self._rounds.count - self._cycle_round
        return now_s > self._cycle_s + self._wait_s or rounds >= self.option["cycle_rounds"]

    def _probe_rtt(self, ack: Ack) -> None:
        """Half a BDP for 200 ms, when no RTT has been as low as the least for five seconds."""
        if self.state == "probe_rtt":
            if not self._probe_rtt_end_s and ack.bytes_in_flight <= self.bdp(PROBE_RTT_BDP):
                self._probe_rtt_end_s = ack.now_s + PROBE_RTT_S
            if self._probe_rtt_end_s and ack.now_s > self._probe_rtt_end_s:
                self.is_sending_less = False
                self._rtt_s, self._rtt_found_s = self._probed_rtt_s, ack.now_s
                self._low_rate = self._low_window = math.inf
                self._enter("down", ack.now_s)
        elif ack.now_s > self._rtt_found_s + PROBE_RTT_EVERY_S and self._full.reached:
            self.is_sending_less = True
            self._probed_rtt_s, self._probe_rtt_end_s = math.inf, 0.0
            self._enter("probe_rtt", ack.now_s)

    def _set(self, ack: Ack) -> None:
        """The rate and the window."""
        gain = self.option[f"{self.state}_gain"] if self.state in GAINED else 1.0
        rate = gain * MARGIN * self.rate
        if self.state == "startup":
            first = gain * self.window_bytes / ack.smoothed_rtt_s
            before = first if math.isinf(self._startup_rate) else self._startup_rate
            rate = self._startup_rate = max(rate, before)
        self.pacing_rate_bytes_per_s = rate
        smoothed = self.option["smoothed"] and self._full.reached
        rtt_s = ack.smoothed_rtt_s if smoothed else self._rtt_s
        target = self.option["window_gain"] * self.rate * rtt_s + self._extra.value_bytes
        grown = self._window + ack.acked_bytes
        self._window = min(grown, target) if self._full.reached else max(self._window, target)
        self._window = max(self._window, LEAST_PACKETS * self.packet_bytes)
        bound = self._high if self.state in ("refill", "up") else 0.85 * self._high
        if self.state == "probe_rtt":
            bound = min(bound, self.bdp(PROBE_RTT_BDP))
        window = min(self._window, bound, self._low_window)
        self.window_bytes = max(window, LEAST_PACKETS * self.packet_bytes)


@qb.controller("seventh-cubic")
class SeventhCubic(Cubic):
    """CUBIC with one change; paced at twice the window per RTT in slow start, then at 1.2 times."""

    options: ClassVar[dict[str, Option]] = {
        **Cubic.options,
        "counts_acks": switch("in slow start, an ACK of any size adds one packet", False),
        "rise_percent": number("rise of the RTT that ends slow start, of HyStart's", 100, 1, 1000),
        "start_pacing_percent": number("pacing rate in slow start", 200.0, 100, 2000),
        "keeps_threshold": switch("slow start goes on up to the window before the loss", False),
        "decays": switch("a pause halves the window each half second", False),
    }

    def on_ack(self, ack: Ack) -> None:
        super().on_ack(ack)
        part = self.option["start_pacing_percent"] / 100
        part = part if self.is_in_slow_start else PACING_AFTER_START
        self.pacing_rate_bytes_per_s = part * self.window_bytes / ack.smoothed_rtt_s

    def _start_slowly(self, ack: Ack) -> None:
        """HyStart sees a rise as many times as high as it would have to be lower."""
        before = self.window_bytes
        if ack.rtt_s is not None:
            rise_s = (ack.rtt_s - ack.min_rtt_s) * 100 / self.option["rise_percent"]
            ack = replace(ack, rtt_s=ack.min_rtt_s + rise_s)
        super()._start_slowly(ack)
        if self.option["counts_acks"]:
            self.window_bytes = before + min(ack.acked_bytes, self.packet_bytes)

    def reduce(self, now_s: float, window_bytes: float) -> None:
        before = self.window_bytes
        super().reduce(now_s, window_bytes)
        if self.option["keeps_threshold"]:
            self.ssthresh_bytes = before

    def on_idle(self, idle: Idle) -> None:
        if self.option["decays"]:
            halved = self.window_bytes * 0.5 ** (idle.idle_s // HALVES_EACH_S)
            self.window_bytes = max(halved, LEAST_PACKETS * self.packet_bytes)
