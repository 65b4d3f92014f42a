"""A BBR and a CUBIC for the sixth set of ``causes.py``, with one change per option.

Written from draft-ietf-ccwg-bbr, and from RFC 9438 and RFC 9406, and not from those of
`qbkit.cca.builtin`. A run is named by the source of its controller, so an edit here measures every
case of it anew.
"""

from __future__ import annotations

import math
import random
from collections import deque
from typing import ClassVar

import qbkit as qb
from qbkit.cca import (
    NOT_PACED,
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

AVERAGED_ROUNDS = 10
LEAST_PACKETS = 4


@qb.controller("sixth-bbr")
class SixthBbr(Controller):
    """Probes by the clock, keeps below what has caused losses, and leaves headroom there."""

    options: ClassVar[dict[str, Option]] = {
        "startup_gain": number("pacing gain in Startup", 2.77, 1, 10),
        "startup_window_gain": number("window over BDP in Startup", 2.0, 1, 10),
        "full_growth": number("less growth of the bandwidth in a round counts as none", 1.25, 1, 4),
        "full_rounds": whole("rounds without growth that end Startup", 3, 1, 100),
        "drain_gain": number("pacing gain in Drain", 0.5, 0.05, 1),
        "drain_bdp": number("it ends when so much is in flight", 1.0, 0.1, 10),
        "up_gain": number("pacing gain in ProbeBW_UP", 1.25, 1, 4),
        "up_rounds": whole("its rounds without growth", 3, 1, 100),
        "down_gain": number("pacing gain in ProbeBW_DOWN", 0.75, 0.1, 1),
        "wait_s": number("least time from one probe to the next", 2.0, 0, 1000),
        "wait_more_s": number("a random time up to this is added", 1.0, 0, 1000),
        "window_gain": number("window over BDP in ProbeBW, but in UP", 2.0, 0.5, 10),
        "up_window_gain": number("the same in UP", 2.25, 0.5, 10),
        "headroom": number("part of inflight_hi that others may have", 0.15, 0, 0.95),
        "loss_percent": number("more loss in a round is too much", 2.0, 0, 100),
        "loss_beta": number("part of what is in flight that it leaves", 0.7, 0.05, 1),
        "filter_cycles": whole("cycles of which the greatest bandwidth counts", 2, 1, 10**6),
        "averages": switch("the bandwidth is the mean of its last rounds", False),
        "probe_rtt_every_s": number("time from one ProbeRTT to the next", 5.0, 0.2, 10**6),
        "probe_rtt_ms": number("its length", 200.0, 1, 10_000),
        "probe_rtt_bdp": number("its window", 0.5, 0, 2),
        "margin_percent": number("by so much pacing is below the bandwidth", 1.0, -100, 90),
        "extra_acked": switch("the window has room for aggregated ACKs", True),
        "paced": switch("false: no pacing", True),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.state = "startup"
        self._rounds = RoundTrips()
        self._rates: deque[tuple[int, float]] = deque(maxlen=10_000)
        """The cycle of each round, and its greatest rate."""
        self._cycle = self._flat = self._began_round = 0
        self._grown_from = 0.0
        self._rtt_s = self._newer_rtt_s = math.inf
        self._probed_rtt_s: float | None = None
        self._probe_rtt_end_s: float | None = None
        self._high = math.inf
        self._lost = 0
        self._climb = 1
        self._wait_s = self._cycle_s = 0.0
        self._epoch_s, self._epoch_acked = -math.inf, 0.0
        self._extra: deque[float] = deque([0.0], maxlen=10)
        self._window = self.window_bytes
        self._startup_rate = 0.0
        self.pacing_rate_bytes_per_s = NOT_PACED

    @property
    def bandwidth(self) -> float:
        """Bytes/s."""
        if self.option["averages"] and self.state != "startup":
            latest = [rate for _, rate in self._rates][-AVERAGED_ROUNDS:]
            return sum(latest) / len(latest) if latest else 0.0
        oldest = self._cycle - self.option["filter_cycles"]
        return max((rate for cycle, rate in self._rates if cycle > oldest), default=0.0)

    @property
    def _bdp(self) -> float:
        return self.bandwidth * self._rtt_s if self._rates else self.window_bytes

    def on_ack(self, ack: Ack) -> None:
        sample = ack.delivery
        if sample is None:
            return
        if ack.rtt_s is not None:
            self._newer_rtt_s = min(self._newer_rtt_s, ack.rtt_s)
            self._rtt_s = min(self._rtt_s, ack.rtt_s)
        round_ends = self._rounds.update(ack)
        limited = sample.is_app_limited and sample.rate_bytes_per_s < self.bandwidth
        if not limited and (round_ends or not self._rates):
            self._rates.append((self._cycle, sample.rate_bytes_per_s))
        elif not limited and sample.rate_bytes_per_s > self._rates[-1][1]:
            self._rates[-1] = (self._cycle, sample.rate_bytes_per_s)
        self._aggregate(ack, round_ends)
        self._probe_rtt(ack)
        if round_ends:
            self._end_round(sample.is_app_limited)
        self._advance(ack)
        self._control(ack)

    def on_loss(self, loss: Loss) -> None:
        """Too much of it while probing sets inflight_hi; later losses lower it, once a round."""
        self._lost += loss.lost_bytes
        in_flight = loss.bytes_in_flight + loss.lost_bytes
        if 100 * self._lost <= self.option["loss_percent"] * in_flight:
            return
        self._lost = -(2**40)  # no further one before the round ends
        self._high = self.option["loss_beta"] * min(in_flight, self._high)
        if self.state == "startup":
            self._enter("drain")
        elif self.state in ("refill", "up"):
            self._begin_cycle(loss.now_s)

    def _aggregate(self, ack: Ack, round_ends: bool) -> None:
        """What was acknowledged beyond the bandwidth, at most in ten rounds."""
        expected = self.bandwidth * (ack.now_s - self._epoch_s)
        if self._epoch_acked <= expected:
            self._epoch_s, self._epoch_acked, expected = ack.now_s, 0.0, 0.0
        self._epoch_acked += ack.acked_bytes
        if round_ends:
            self._extra.append(0.0)
        self._extra[-1] = max(self._extra[-1], self._epoch_acked - expected)

    def _probe_rtt(self, ack: Ack) -> None:
        if self._probed_rtt_s is None:
            self._probed_rtt_s = ack.now_s
            first = self.window_bytes / ack.smoothed_rtt_s
            self._startup_rate = self.option["startup_gain"] * first
        late = ack.now_s - self._probed_rtt_s > self.option["probe_rtt_every_s"]
        if self.state != "probe_rtt":
            if late and self.state != "startup":
                self._enter("probe_rtt")
                self.is_sending_less, self._newer_rtt_s = True, math.inf
            return
        window = max(self.option["probe_rtt_bdp"] * self._bdp, LEAST_PACKETS * self.packet_bytes)
        if self._probe_rtt_end_s is None:
            if ack.bytes_in_flight <= window:
                length_s = max(self.option["probe_rtt_ms"] / 1e3, self._rtt_s)
                self._probe_rtt_end_s = ack.now_s + length_s
        elif ack.now_s > self._probe_rtt_end_s:
            self._probe_rtt_end_s, self._probed_rtt_s = None, ack.now_s
            self.is_sending_less, self._rtt_s = False, self._newer_rtt_s
            self._window = max(self._window, self.option["window_gain"] * self._bdp)
            self._enter("cruise")

    def _end_round(self, limited: bool) -> None:
        self._lost = 0
        if limited:
            return
        latest = self._rates[-2][1] if len(self._rates) > 1 else 0.0
        if latest >= self.option["full_growth"] * self._grown_from:
            self._grown_from, self._flat = latest, 0
        else:
            self._flat += 1
        if self.state == "up" and math.isfinite(self._high):
            self._high += self._climb * self.packet_bytes
            self._climb *= 2

    def _enter(self, state: str) -> None:
        self.state, self._began_round, self._flat = state, self._rounds.count, 0

    def _begin_cycle(self, now_s: float) -> None:
        self._enter("down")
        self._cycle += 1
        self._cycle_s, self._climb = now_s, 1
        self._wait_s = self.option["wait_s"] + self.option["wait_more_s"] * random.random()

    def _advance(self, ack: Ack) -> None:
        """To the next state, if this one is over."""
        rounds = self._rounds.count - self._began_round
        in_flight = ack.bytes_in_flight
        if self.state == "startup" and self._flat >= self.option["full_rounds"]:
            self._enter("drain")
        elif self.state == "drain" and in_flight <= self.option["drain_bdp"] * self._bdp:
            self._begin_cycle(ack.now_s)
        elif self.state == "down" and in_flight <= min(self._bdp, self._with_headroom()):
            self._enter("cruise")
        elif self.state in ("down", "cruise") and ack.now_s > self._cycle_s + self._wait_s:
            self._enter("refill")
        elif self.state == "refill" and rounds >= 1:
            self._grown_from = self.bandwidth
            self._enter("up")
        elif self.state == "up" and self._flat >= self.option["up_rounds"]:
            self._begin_cycle(ack.now_s)

    def _with_headroom(self) -> float:
        return (1 - self.option["headroom"]) * self._high

    def _control(self, ack: Ack) -> None:
        """Sets the rate and the window."""
        rate = self._pacing_gain() * self.bandwidth * (1 - self.option["margin_percent"] / 100)
        if self.state == "startup":
            rate = self._startup_rate = max(rate, self._startup_rate)
        self.pacing_rate_bytes_per_s = rate if self.option["paced"] else NOT_PACED
        target = self._window_gain() * self._bdp
        target += max(self._extra) if self.option["extra_acked"] else 0.0
        if self.state != "startup":
            self._window = min(self._window + ack.acked_bytes, target)
        elif self._window < target:
            self._window += ack.acked_bytes
        bound = self._high
        if self.state in ("cruise", "down"):
            bound = self._with_headroom()
        elif self.state == "probe_rtt":
            bound = min(self._high, self.option["probe_rtt_bdp"] * self._bdp)
        self.window_bytes = max(min(self._window, bound), LEAST_PACKETS * self.packet_bytes)

    def _pacing_gain(self) -> float:
        known = {"startup", "drain", "up", "down"}
        return float(self.option[f"{self.state}_gain"]) if self.state in known else 1.0

    def _window_gain(self) -> float:
        names = {"startup": "startup_window_gain", "drain": "startup_window_gain"}
        names["up"] = "up_window_gain"
        return float(self.option[names.get(self.state, "window_gain")])


@qb.controller("sixth-cubic")
class SixthCubic(WindowController):
    """RFC 9438, with HyStart++ (RFC 9406) and its limit of what one ACK adds in slow start."""

    options: ClassVar[dict[str, Option]] = {
        "beta": number("part of the window that a loss leaves", 0.7, 0.05, 0.99),
        "c": number("C", 0.4, 0.001, 100),
        "k_percent": number("K, over the usual", 100.0, 1, 1000),
        "friendly_alpha": number("additive increase of the Reno-friendly region", None, 0, 100),
        "fast_convergence": switch("W_max shrinks if a loss comes below it", True),
        "hystart": switch("false: a loss ends slow start", True),
        "css_divisor": number("slower growth of Conservative Slow Start", 4.0, 1, 100),
        "css_rounds": whole("its rounds", 5, 1, 1000),
        "most_per_ack_packets": number("L: one ACK adds at most so much in slow start", 8, 0.1, 99),
        "most_packets": whole("largest window", 10**6, 2, 10**6),
        "least_packets": whole("least window", 2, 1, 10**6),
        "pacing_percent": number("rate, of the window over the RTT; 0: no pacing", 125, 0, 1000),
        "restarts": switch("after a pause the window is the initial one", False),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._cwnd = self.window_bytes / self.packet_bytes
        self._first = self._cwnd
        self._ssthresh = math.inf
        self._w_max = self._w_est = self._prior = self._k_s = 0.0
        self._epoch_s: float | None = None
        self._cut_s = -math.inf
        self._rounds = RoundTrips()
        self._samples = self._css_round = 0
        self._before_s = self._now_s = math.inf
        self._baseline_s: float | None = None
        self._smoothed_s = 0.0

    def on_ack(self, ack: Ack) -> None:
        self._smoothed_s = ack.smoothed_rtt_s
        acked = ack.acked_bytes / self.packet_bytes
        if ack.newest_sent_s > self._cut_s:
            if self._cwnd < self._ssthresh:
                self._start(ack, acked)
            else:
                self._avoid(ack.now_s, acked)
        self._apply()

    def _apply(self) -> None:
        self._cwnd = min(max(self._cwnd, self.option["least_packets"]), self.option["most_packets"])
        self.window_bytes = self._cwnd * self.packet_bytes
        part = self.option["pacing_percent"] / 100
        rate = part * self.window_bytes / self._smoothed_s if self._smoothed_s else math.inf
        self.pacing_rate_bytes_per_s = rate or NOT_PACED

    def _start(self, ack: Ack, acked: float) -> None:
        grows = min(acked, self.option["most_per_ack_packets"])
        if self._baseline_s is not None:
            grows /= self.option["css_divisor"]
        self._cwnd += grows
        if self.option["hystart"]:
            self._hystart(ack)

    def _hystart(self, ack: Ack) -> None:
        """RFC 9406, section 4.2."""
        if self._rounds.update(ack):
            self._before_s, self._now_s, self._samples = self._now_s, math.inf, 0
            if self._baseline_s is not None:
                self._css_round += 1
                if self._css_round >= self.option["css_rounds"]:
                    self._ssthresh = self._cwnd
        if ack.rtt_s is not None:
            self._now_s = min(self._now_s, ack.rtt_s)
            self._samples += 1
        if self._samples < 8 or not math.isfinite(self._before_s):
            return
        rise_s = min(max(self._before_s / 8, 0.004), 0.016)
        if self._baseline_s is None and self._now_s >= self._before_s + rise_s:
            self._baseline_s, self._css_round = self._now_s, 0
        elif self._baseline_s is not None and self._now_s < self._baseline_s:
            self._baseline_s = None

    def _avoid(self, now_s: float, acked: float) -> None:
        """RFC 9438, sections 4.2 to 4.5."""
        if self._epoch_s is None:
            self._epoch_s, self._w_est = now_s, self._cwnd
            self._w_max = max(self._w_max, self._cwnd)
            needed = (self._w_max - self._cwnd) / self.option["c"]
            self._k_s = self.option["k_percent"] / 100 * math.cbrt(needed)
        self._w_est += self._alpha() * acked / self._cwnd
        at_s = now_s - self._epoch_s
        if self._w_est > self._curve(at_s):
            self._cwnd = max(self._cwnd, self._w_est)
            return
        target = min(max(self._curve(at_s + self._smoothed_s), self._cwnd), 1.5 * self._cwnd)
        self._cwnd += (target - self._cwnd) * acked / self._cwnd

    def _curve(self, at_s: float) -> float:
        scale = (self.option["k_percent"] / 100) ** 3
        return float(self.option["c"] / scale * (at_s - self._k_s) ** 3 + self._w_max)

    def _alpha(self) -> float:
        if self.option["friendly_alpha"] is not None:
            return float(self.option["friendly_alpha"])
        beta = self.option["beta"]
        return 1.0 if self._w_est >= self._prior else 3 * (1 - beta) / (1 + beta)

    def on_loss(self, loss: Loss) -> None:
        if loss.newest_sent_s > self._cut_s:
            shrinks = self.option["fast_convergence"] and self._cwnd < self._w_max
            self._prior = self._cwnd
            self._w_max = self._cwnd * ((1 + self.option["beta"]) / 2 if shrinks else 1.0)
            self._cwnd = self._ssthresh = max(self.option["beta"] * self._cwnd, 2.0)
            self._cut_s, self._epoch_s = loss.now_s, None
        if loss.is_persistent_congestion:
            self._cwnd, self._epoch_s = 2.0, None
        self._apply()

    def on_idle(self, idle: Idle) -> None:
        if self.option["restarts"] and idle.idle_s > self._smoothed_s:
            self._cwnd = min(self._cwnd, self._first)
            self._apply()
