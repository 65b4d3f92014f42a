"""A BBR and a CUBIC for the eighth set of ``causes.py``, with one change per option.

The BBR is version 1 (draft-cardwell-iccrg-bbr-congestion-control-00), but its ProbeRTT keeps half a
BDP; its phases are one generator that each ACK resumes. The CUBIC is RFC 9438. A run is named by
the source of its controller, so an edit here measures every case of it anew.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import ClassVar

import qbkit as qb
from qbkit.cca import (
    Ack,
    Controller,
    Idle,
    Loss,
    Option,
    Settings,
    WindowController,
    number,
    switch,
    whole,
)
from qbkit.cca.filters import ExtraAcked, WindowedMax

LEAST_PACKETS = 4
RISE_SAMPLES = 8
"""RTT samples of a round before HyStart trusts the least of them."""
LEAST_RISE_S = 0.004
START_PACING, LATER_PACING = 2.0, 1.25
"""CUBIC's pacing rate over window per RTT."""


@qb.controller("eighth-bbr")
class EighthBbr(Controller):
    """Startup, drain, then cruise, probe and drain for ever; an old RTT cuts in."""

    options: ClassVar[dict[str, Option]] = {
        "startup_gain": number("pacing and window gain in Startup", 2.885, 1, 10),
        "growth": number("growth of the rate in a round that keeps Startup going", 1.25, 1, 4),
        "flat_rounds": whole("rounds without it that end Startup", 3, 1, 100),
        "drain_to_bdp": number("the drain ends with so much in flight", 1.0, 0.1, 4),
        "up_gain": number("pacing gain of a probe", 1.25, 1, 4),
        "down_gain": number("pacing gain after it", 0.75, 0.1, 1),
        "cruise_rtts": whole("round trips that cruise", 6, 0, 1000),
        "window_gain": number("window over BDP after Startup", 2.0, 0.5, 10),
        "filter_rounds": whole("rounds of which the greatest rate counts", 10, 1, 10**6),
        "round_part": number("a round ends with so much of the flight of its start", 1.0, 0.05, 1),
        "probe_rtt_every_s": number(
            "age of the least RTT that asks for ProbeRTT", 10.0, 0.2, 10**6
        ),
        "probe_rtt_ms": number("length of ProbeRTT", 200.0, 1, 10_000),
        "probe_rtt_bdp": number("window in it, of at least four packets", 0.5, 0, 2),
        "room": switch("the window has room for ACKs that come together", True),
        "loss_keeps": number("part of what is in flight that losses leave (1: all)", 1.0, 0.05, 1),
        "rate_percent": number("pacing rate, of what the model says", 100.0, 10, 1000),
        "counts_limited": switch("samples that the application limits count as others", False),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.pacing_rate_bytes_per_s = math.inf
        self._rates = WindowedMax(self.option["filter_rounds"] - 1)
        self._extra = ExtraAcked()
        self._rtt_s, self._rtt_found_s = math.inf, 0.0
        self._round = self._round_end = self._flat = 0
        self._grown_from = 0.0
        self._has_lost = False
        self._pacing_gain = self._window_gain = float(self.option["startup_gain"])
        self._most_bytes = self._cap_bytes = math.inf
        self._began_s = 0.0
        self._life = self._live()
        self._now: Ack

    def bdp(self, times: float = 1.0) -> float:
        """Bytes; those of the initial window before the first sample."""
        known = self._rates.value * self._rtt_s if self._rates.value else self.window_bytes
        return times * known

    def on_ack(self, ack: Ack) -> None:
        if ack.delivery is None:
            return
        self._now = ack
        self._learn_rtt(ack)
        ends_round = ack.delivery.prior_delivered_bytes >= self._round_end
        if ends_round:
            self._round += 1
            missing = (1 - self.option["round_part"]) * ack.bytes_in_flight
            self._round_end = int(ack.delivered_bytes - missing)
        sample = ack.delivery
        rate = sample.rate_bytes_per_s
        limited = sample.is_app_limited and not self._takes_for_true()
        if not limited or rate > self._rates.value:
            self._rates.update(self._round, rate)
        self._extra.update(
            ack.acked_bytes, self._rates.value, self.window_bytes, ends_round, ack.now_s
        )
        if ends_round and not limited:
            self._check_growth()
        next(self._life)
        self._control(ack)
        if ends_round:
            self._has_lost = False

    def on_loss(self, loss: Loss) -> None:
        """The first loss of a round may leave less in flight, until the next probe."""
        if self.option["loss_keeps"] < 1 and not self._has_lost and self.state != "startup":
            in_flight = loss.bytes_in_flight + loss.lost_bytes
            self._cap_bytes = self.option["loss_keeps"] * min(in_flight, self._cap_bytes)
        self._has_lost = True

    def _takes_for_true(self) -> bool:
        return bool(self.option["counts_limited"]) and not self.is_sending_less

    def _learn_rtt(self, ack: Ack) -> None:
        """In ProbeRTT, which comes when the least is old, the next sample takes its place."""
        if ack.rtt_s is not None and ack.rtt_s < self._rtt_s:
            self._rtt_s, self._rtt_found_s = ack.rtt_s, ack.now_s

    def _check_growth(self) -> None:
        if self._rates.value >= self.option["growth"] * self._grown_from:
            self._grown_from, self._flat = self._rates.value, 0
        else:
            self._flat += 1

    def _live(self) -> Iterator[None]:
        """Each ``yield`` waits for the next ACK."""
        start = self.option["startup_gain"]
        yield from self._stay("startup", start, lambda: self._flat >= self.option["flat_rounds"])
        to_bdp = self.option["drain_to_bdp"]
        yield from self._stay("drain", 1 / start, lambda: not self._holds(to_bdp))
        self._window_gain = self.option["window_gain"]
        rtts = random.randint(0, self.option["cruise_rtts"])
        up, down = self.option["up_gain"], self.option["down_gain"]
        while True:
            yield from self._stay("cruise", 1.0, lambda: self._lasted(rtts))  # noqa: B023
            rtts = self.option["cruise_rtts"]
            self._cap_bytes = math.inf
            yield from self._stay("up", up, lambda: self._lasted(1) and self._is_probed(up))
            yield from self._stay("down", down, lambda: self._lasted(1) or not self._holds(1))
            if self._rtt_is_old():
                yield from self._probe_rtt()

    def _stay(self, state: str, gain: float, is_over: Callable[[], bool]) -> Iterator[None]:
        """Until it is over; an old RTT ends it sooner, but not Startup."""
        self.state, self._pacing_gain, self._began_s = state, gain, self._now.now_s
        while not is_over() and (state == "startup" or not self._rtt_is_old()):
            yield

    def _probe_rtt(self) -> Iterator[None]:
        """Its window for its length, once no more than that is in flight."""
        self.state, self._pacing_gain, self.is_sending_less = "probe_rtt", 1.0, True
        window_before = self.window_bytes
        self._most_bytes = self.bdp(self.option["probe_rtt_bdp"])
        self._rtt_s = math.inf if self._now.rtt_s is None else self._now.rtt_s
        least = LEAST_PACKETS * self.packet_bytes
        while self._now.bytes_in_flight > max(self._most_bytes, least):
            yield
        end_s = self._now.now_s + self.option["probe_rtt_ms"] / 1e3
        while self._now.now_s < end_s:
            yield
        self._rtt_found_s = self._now.now_s
        self._most_bytes, self.is_sending_less = math.inf, False
        self.window_bytes = max(window_before, self.window_bytes)

    def _rtt_is_old(self) -> bool:
        return self._now.now_s > self._rtt_found_s + self.option["probe_rtt_every_s"]

    def _holds(self, times: float) -> bool:
        """Whether more than so many BDP are in flight."""
        return self._now.bytes_in_flight > self.bdp(times)

    def _lasted(self, rtts: float) -> bool:
        return self._now.now_s - self._began_s > rtts * self._rtt_s

    def _is_probed(self, gain: float) -> bool:
        """The pipe has held what the probe puts in, or lost some of it."""
        return self._has_lost or self._now.prior_bytes_in_flight >= self.bdp(gain)

    def _control(self, ack: Ack) -> None:
        """Sets the rate and the window."""
        rate = self._pacing_gain * self._rates.value * self.option["rate_percent"] / 100
        if self.state == "startup":
            first = self._pacing_gain * self.window_bytes / ack.smoothed_rtt_s
            known = self.pacing_rate_bytes_per_s or math.inf
            rate = max(rate, first if math.isinf(known) else known)
        self.pacing_rate_bytes_per_s = rate
        room = self._extra.value_bytes if self.option["room"] else 0.0
        target = self.bdp(self._window_gain) + room
        window = self.window_bytes + ack.acked_bytes
        if self.state != "startup":
            window = min(window, target, self._cap_bytes, self._most_bytes)
        elif self.window_bytes >= target:
            window = self.window_bytes
        self.window_bytes = max(window, float(LEAST_PACKETS * self.packet_bytes))


@qb.controller("eighth-cubic")
class EighthCubic(WindowController):
    """CUBIC in packets and seconds, paced; HyStart ends slow start for good."""

    options: ClassVar[dict[str, Option]] = {
        "beta": number("part of the window that a loss leaves", 0.7, 0.05, 0.99),
        "c": number("C", 0.4, 0.001, 100),
        "alpha": number("additive increase of the Reno-friendly window", None, 0, 100),
        "rise_part": number("rise of the RTT that ends slow start, of the least", 0.125, 0.01, 100),
        "most_packets": whole("largest window", 10**6, 2, 10**6),
        "deaf_rtts": number("round trips after a reduction in which no loss counts", 0.0, 0, 10**4),
        "undoes_packets": whole("a loss of at most so many packets is undone", 0, 0, 10**4),
        "restarts": switch("a pause of a round trip leaves the initial window", False),
        "forgives": switch("persistent congestion is a loss as others", False),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.state = "slow_start"
        self._window = self._first = self.window_bytes / self.packet_bytes
        self._threshold = math.inf
        self._peak = self._friendly = self._k_s = self._srtt_s = 0.0
        self._epoch_s: float | None = None
        self._cut_s = -math.inf
        self._undo: tuple[float, float] | None = None
        """Window and peak before the last reduction."""
        self._lost = 0
        self._round_s, self._round_rtt_s, self._samples = -math.inf, math.inf, 0

    def on_ack(self, ack: Ack) -> None:
        self._srtt_s = ack.smoothed_rtt_s
        if ack.newest_sent_s > self._cut_s:
            self._forget_reduction()
            acked = ack.acked_bytes / self.packet_bytes
            if self._window < self._threshold:
                self._window += acked
                self._watch_rtt(ack)
            else:
                self._follow_curve(ack.now_s, acked)
        self._show()

    def on_loss(self, loss: Loss) -> None:
        self._lost += len(loss.packets)
        deaf_s = self.option["deaf_rtts"] * self._srtt_s
        if loss.newest_sent_s > self._cut_s and loss.now_s > self._cut_s + deaf_s:
            self._undo, self._lost = (self._window, self._peak), len(loss.packets)
            released = (1 + self.option["beta"]) / 2 if self._window < self._peak else 1.0
            self._peak = released * self._window
            self._window = self._threshold = max(self.option["beta"] * self._window, 2.0)
            self._cut_s, self._epoch_s = loss.now_s, None
        if loss.is_persistent_congestion and not self.option["forgives"]:
            self._window, self._epoch_s, self._undo = 2.0, None, None
        self._show()

    def on_idle(self, idle: Idle) -> None:
        if self.option["restarts"] and idle.idle_s > self._srtt_s:
            self._window, self._epoch_s = min(self._window, self._first), None
            self._show()

    def _forget_reduction(self) -> None:
        """Recovery is over: what few losses caused is undone, if an option says so."""
        if self._undo and self._lost <= self.option["undoes_packets"]:
            self._window, self._peak = self._undo
            self._threshold, self._epoch_s = self._window, None
        self._undo = None

    def _watch_rtt(self, ack: Ack) -> None:
        """HyStart: the least RTT of a round is longer than that of all."""
        if ack.newest_sent_s >= self._round_s:
            self._round_s, self._round_rtt_s, self._samples = ack.now_s, math.inf, 0
        if ack.rtt_s is None:
            return
        self._samples += 1
        self._round_rtt_s = min(self._round_rtt_s, ack.rtt_s)
        rise_s = max(self.option["rise_part"] * ack.min_rtt_s, LEAST_RISE_S)
        if self._samples >= RISE_SAMPLES and self._round_rtt_s > ack.min_rtt_s + rise_s:
            self._threshold = self._window

    def _follow_curve(self, now_s: float, acked: float) -> None:
        """The cubic a round trip ahead, but not less than Reno would have."""
        if self._epoch_s is None:
            self._epoch_s, self._friendly = now_s, self._window
            self._peak = max(self._peak, self._window)
            self._k_s = math.cbrt((self._peak - self._window) / self.option["c"])
        beta, alpha = self.option["beta"], self.option["alpha"]
        alpha = 3 * (1 - beta) / (1 + beta) if alpha is None else alpha
        self._friendly += alpha * acked / self._window
        ahead_s = now_s + self._srtt_s - self._epoch_s - self._k_s
        goal = self._peak + self.option["c"] * ahead_s**3
        step = min(max(goal - self._window, 0.0), self._window / 2)
        self._window = max(self._window + step * acked / self._window, self._friendly)

    def _show(self) -> None:
        """Tells the sender its window and its rate."""
        self._window = min(self._window, self.option["most_packets"])
        slow = self._window < self._threshold
        self.state = "slow_start" if slow else "congestion_avoidance"
        self.window_bytes = self._window * self.packet_bytes
        if self._srtt_s:
            gain = START_PACING if slow else LATER_PACING
            self.pacing_rate_bytes_per_s = gain * self.window_bytes / self._srtt_s
