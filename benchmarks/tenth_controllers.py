"""A BBR for the tenth set of ``causes.py``, with one change per option.

It is version 3 (draft-ietf-ccwg-bbr), with a class for each state that says what comes after it.
Unlike the draft it always has a ceiling, the most that the last probe had in flight, it has no
short-term bound of the bandwidth, and Startup has one gain. A run is named by the source of its
controller, so an edit here measures every case of it anew.
"""

from __future__ import annotations

import math
import random
from collections import deque
from typing import ClassVar

import qbkit as qb
from qbkit.cca import (
    Ack,
    Controller,
    DeliverySample,
    Loss,
    Option,
    RoundTrips,
    Settings,
    number,
    switch,
    whole,
)
from qbkit.cca.filters import ExtraAcked, FullPipe, WindowedMin

LEAST_PACKETS = 4
UP_WINDOW_GAIN_MORE = 0.25
PACING_MARGIN = 0.99
"""Pacing rate over what the gains make of the bandwidth."""
MIN_RTT_S = 10.0
LOSS_PART = 0.02
"""More loss in a round than this part of what is in flight is too much."""
WAIT_MORE_S = 1.0


class Model:
    """The bandwidth of the latest cycles in bytes/s, and the least RTT."""

    def __init__(self, cycles: int) -> None:
        self._rates = deque([0.0], maxlen=cycles)
        self._least = WindowedMin()
        self.rtt_s = self._probed_rtt_s = math.inf
        self.probed_s = 0.0
        """When the RTT was last found, or probed."""

    @property
    def bandwidth(self) -> float:
        """0 before the first sample."""
        return max(self._rates)

    def bdp(self, times: float = 1.0) -> float:
        """Bytes; infinite before the first sample."""
        return times * self.bandwidth * self.rtt_s if self.bandwidth else math.inf

    def learn_rate(self, sample: DeliverySample) -> None:
        rate = sample.rate_bytes_per_s
        if not sample.is_app_limited or rate > self.bandwidth:
            self._rates[-1] = max(self._rates[-1], rate)

    def learn_rtt(self, ack: Ack, every_s: float) -> bool:
        """Whether no lower RTT came for so long."""
        is_old = ack.now_s > self.probed_s + every_s
        if ack.rtt_s is not None:
            self.rtt_s = self._least.update(ack.now_s, ack.rtt_s, MIN_RTT_S)
            if is_old or ack.rtt_s < self._probed_rtt_s:
                self._probed_rtt_s, self.probed_s = ack.rtt_s, ack.now_s
        return is_old

    def next_cycle(self) -> None:
        """A cycle without samples does not count."""
        if self._rates[-1]:
            self._rates.append(0.0)


class State:
    """At this gain, with so much in flight at most, until another state comes after it."""

    gain: ClassVar[str] = ""
    """The option that is the pacing gain; 1 without one."""

    def __init__(self, bbr: TenthBbr, now_s: float) -> None:
        self.bbr = bbr
        self.first_round = bbr.rounds.count

    def most_bytes(self) -> float:
        return self.bbr.bound

    def after(self, ack: Ack, ends_round: bool) -> type[State] | None:
        """The next state, if this one is over."""
        raise NotImplementedError

    def after_loss(self, in_flight: float) -> type[State] | None:
        """The same when too much of a round was lost; by default it bounds what is in flight."""
        self.bbr.bound = self.bbr.option["beta"] * min(self.bbr.bound, in_flight)
        return None


class Startup(State):
    gain = "startup_gain"

    def __init__(self, bbr: TenthBbr, now_s: float) -> None:
        super().__init__(bbr, now_s)
        self._pipe = FullPipe()

    def after(self, ack: Ack, ends_round: bool) -> type[State] | None:
        if ends_round and not ack.is_app_limited:
            self._pipe.update(self.bbr.model.bandwidth)
        return Drain if self._pipe.reached else None

    def after_loss(self, in_flight: float) -> type[State] | None:
        return Drain


class Drain(State):
    gain = "drain_gain"

    def after(self, ack: Ack, ends_round: bool) -> type[State] | None:
        return Down if ack.bytes_in_flight <= self.bbr.model.bdp() else None


class Down(State):
    """Until the queue is empty, or until it is time to probe."""

    gain = "down_gain"

    def __init__(self, bbr: TenthBbr, now_s: float) -> None:
        super().__init__(bbr, now_s)
        bbr.probe_s = now_s + bbr.option["wait_s"] + random.uniform(0, WAIT_MORE_S)

    def most_bytes(self) -> float:
        return min(self.bbr.bound, (1 - self.bbr.option["headroom"]) * self.bbr.ceiling)

    def after(self, ack: Ack, ends_round: bool) -> type[State] | None:
        if ack.now_s >= self.bbr.probe_s:
            return Refill
        is_drained = ack.bytes_in_flight <= min(self.most_bytes(), self.bbr.model.bdp())
        return Cruise if is_drained else None


class Cruise(State):
    most_bytes = Down.most_bytes

    def after(self, ack: Ack, ends_round: bool) -> type[State] | None:
        return Refill if ack.now_s >= self.bbr.probe_s else None


class Refill(State):
    """A round trip that fills the pipe."""

    def __init__(self, bbr: TenthBbr, now_s: float) -> None:
        super().__init__(bbr, now_s)
        bbr.bound = math.inf
        bbr.model.next_cycle()

    def after(self, ack: Ack, ends_round: bool) -> type[State] | None:
        return Up if self.bbr.rounds.count > self.first_round else None


class Up(State):
    """Until the bandwidth stops growing, or too much is lost."""

    gain = "up_gain"

    def __init__(self, bbr: TenthBbr, now_s: float) -> None:
        super().__init__(bbr, now_s)
        self._pipe = FullPipe()
        self._peak = 0.0

    def after(self, ack: Ack, ends_round: bool) -> type[State] | None:
        self._peak = max(self._peak, float(ack.prior_bytes_in_flight))
        if ends_round and not ack.is_app_limited and ack.delivery:
            self._pipe.update(ack.delivery.rate_bytes_per_s)
        if not self._pipe.reached:
            return None
        self.bbr.ceiling = self._peak
        return Down

    def after_loss(self, in_flight: float) -> type[State] | None:
        self.bbr.ceiling = max(in_flight, self.bbr.model.bdp(self.bbr.option["beta"]))
        return Down


class ProbeRtt(State):
    """So long, and a round trip, with little in flight."""

    def __init__(self, bbr: TenthBbr, now_s: float) -> None:
        super().__init__(bbr, now_s)
        self._most = max(
            bbr.model.bdp(bbr.option["probe_rtt_bdp"]), float(LEAST_PACKETS * bbr.packet_bytes)
        )
        self._end_s = math.inf

    def most_bytes(self) -> float:
        return min(self.bbr.bound, self._most)

    def after(self, ack: Ack, ends_round: bool) -> type[State] | None:
        rounds = self.bbr.rounds
        if math.isinf(self._end_s) and ack.bytes_in_flight <= self._most:
            self._end_s = ack.now_s + self.bbr.option["probe_rtt_ms"] / 1e3
            self.first_round = rounds.count
        if ack.now_s < self._end_s or rounds.count == self.first_round:
            return None
        self.bbr.model.probed_s = ack.now_s
        return Down

    def after_loss(self, in_flight: float) -> type[State] | None:
        return None


@qb.controller("tenth-bbr")
class TenthBbr(Controller):
    """Goes from state to state; an RTT that is old is probed from any but Startup."""

    options: ClassVar[dict[str, Option]] = {
        "startup_gain": number("pacing and window gain in Startup", 2.77, 1, 10),
        "drain_gain": number("pacing gain in Drain", 0.5, 0.05, 1),
        "up_gain": number("pacing gain in UP", 1.25, 1, 4),
        "down_gain": number("pacing gain in DOWN", 0.9, 0.1, 1),
        "wait_s": number("least time from DOWN to the next probe", 2.0, 0, 1000),
        "window_gain": number("window over BDP after Startup", 2.0, 0.5, 10),
        "headroom": number("part of the ceiling that DOWN and CRUISE leave free", 0.15, 0, 0.95),
        "beta": number("part of what is in flight that too much loss leaves", 0.7, 0.05, 1),
        "filter_cycles": whole("cycles of which the greatest bandwidth counts", 2, 1, 10**6),
        "probe_rtt_every_s": number("time without a lower RTT that asks for ProbeRTT", 5, 0.2, 1e6),
        "probe_rtt_ms": number("length of ProbeRTT", 200.0, 1, 10_000),
        "probe_rtt_bdp": number("window in it, of at least four packets", 0.5, 0, 2),
        "rate_percent": number("pacing rate, of what the model says", 100.0, 10, 1000),
        "room": switch("the window has room for ACKs that come together", True),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.rounds = RoundTrips()
        self.model = Model(self.option["filter_cycles"])
        self.ceiling = self.bound = math.inf
        """What DOWN and CRUISE leave some of free, and what a loss leaves until the next probe."""
        self.probe_s = 0.0
        self._extra = ExtraAcked()
        self._lost = 0
        self._window = self.window_bytes
        self._go(Startup, 0.0)

    def on_ack(self, ack: Ack) -> None:
        if ack.delivery is None:
            first = self.option["startup_gain"] * self.window_bytes / ack.smoothed_rtt_s
            self.pacing_rate_bytes_per_s = first
            return
        ends_round = self.rounds.update(ack)
        self.model.learn_rate(ack.delivery)
        rate = self.model.bandwidth
        self._extra.update(ack.acked_bytes, rate, self._window, ends_round, ack.now_s)
        is_old = self.model.learn_rtt(ack, self.option["probe_rtt_every_s"])
        if is_old and not isinstance(self._state, Startup | ProbeRtt):
            self._go(ProbeRtt, ack.now_s)
        elif after := self._state.after(ack, ends_round):
            self._go(after, ack.now_s)
        if ends_round:
            self._lost = 0
        self._set_window(ack)
        self._set_rate()

    def on_loss(self, loss: Loss) -> None:
        """The first time that a round loses too much."""
        in_flight = loss.bytes_in_flight + loss.lost_bytes
        was_bad = self._lost > LOSS_PART * in_flight
        self._lost += loss.lost_bytes
        if not was_bad and self._lost > LOSS_PART * in_flight:
            after = self._state.after_loss(in_flight)
            if after:
                self._go(after, loss.now_s)

    def _go(self, state: type[State], now_s: float) -> None:
        self._state = state(self, now_s)
        self.state = state.__name__.lower()
        self.is_sending_less = state is ProbeRtt

    def _set_window(self, ack: Ack) -> None:
        more = UP_WINDOW_GAIN_MORE if isinstance(self._state, Up) else 0.0
        starts = isinstance(self._state, Startup)
        gain = self.option["startup_gain" if starts else "window_gain"] + more
        target = self.model.bdp(gain) + (self._extra.value_bytes if self.option["room"] else 0.0)
        grown = min(self._window + ack.acked_bytes, target)
        self._window = max(self._window, grown) if starts else grown
        window = min(self._window, self._state.most_bytes())
        self.window_bytes = max(window, float(LEAST_PACKETS * self.packet_bytes))

    def _set_rate(self) -> None:
        gain = self.option[self._state.gain] if self._state.gain else 1.0
        rate = gain * PACING_MARGIN * self.option["rate_percent"] / 100 * self.model.bandwidth
        if isinstance(self._state, Startup):
            rate = max(rate, self.pacing_rate_bytes_per_s or 0.0)
        self.pacing_rate_bytes_per_s = rate
