"""Our controllers with one known change each, for ``benchmarks/causes.py``.

Each option is one change; with all defaults they are those of `qbkit.cca.builtin`. A run is named
by the source of its controller, so an edit here measures every case of these controllers anew.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import ClassVar

import qbkit as qb
from qbkit.cca import Ack, DeliverySample, Loss, Option, Settings, number, switch, whole
from qbkit.cca.builtin.bbr import Bbr
from qbkit.cca.builtin.cubic import C, Cubic
from qbkit.cca.builtin.reno import Reno
from qbkit.cca.filters import FullPipe, MinRtt, WindowedMax
from qbkit.cca.gain_cycle import GainCycle
from qbkit.cca.hystart import (
    GREATEST_RISE_S,
    LEAST_RISE_S,
    LEAST_WINDOW_PACKETS,
    RTT_SHARE,
    SAMPLES,
    HyStart,
)
from qbkit.cca.loss_based import LossBasedController


class ChangedCycle(GainCycle):
    """A cycle of other gains, and perhaps one whose drain needs both a round trip and an empty
    queue."""

    def __init__(self, up: float, down: float, cruises: int, drains_fully: bool) -> None:
        super().__init__()
        self.gains = (up, down, *[1.0] * cruises)
        self.drains_fully = drains_fully

    @property
    def gain(self) -> float:
        return self.gains[self._phase]

    def begin(self, now: float) -> None:
        self._phase = random.choice([n for n in range(len(self.gains)) if n != 1])
        self._start_s = now

    def update(
        self,
        now: float,
        *,
        min_rtt_s: float,
        has_lost: bool,
        in_flight: float,
        target: Callable[[float], float],
    ) -> None:
        over = now - self._start_s > min_rtt_s
        if self.gain > 1:
            over = over and (has_lost or in_flight >= target(self.gain))
        elif self.gain < 1:
            empty = in_flight <= target(1.0)
            over = (over and empty) if self.drains_fully else (over or empty)
        if over:
            self._phase = (self._phase + 1) % len(self.gains)
            self._start_s = now


class ChangedMinRtt(MinRtt):
    """One that expires after another time."""

    def __init__(self, window_s: float) -> None:
        super().__init__()
        self.window_s = window_s

    def update(self, rtt_s: float | None, now: float) -> bool:
        expired = now > self.found_s + self.window_s and math.isfinite(self.value_s)
        if rtt_s is not None and (rtt_s < self.value_s or expired):
            self.value_s, self.found_s = rtt_s, now
        return expired


class ChangedFullPipe(FullPipe):
    """One that leaves startup after another number of rounds without growth."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.needed = rounds

    def update(self, bandwidth: float) -> None:
        if bandwidth >= 1.25 * self._best:
            self._best, self._rounds = bandwidth, 0
            return
        self._rounds += 1
        self.reached = self.reached or self._rounds >= self.needed


@qb.controller("changed-bbr")
class ChangedBbr(Bbr):
    """BBR with one change."""

    options: ClassVar[dict[str, Option]] = {
        **Bbr.options,
        "up_gain": number("gain of the probe for bandwidth", 1.25, 1, 4),
        "down_gain": number("gain of the drain after it", 0.75, 0.1, 1),
        "cruises": whole("phases between drain and probe", 6, 0, 200),
        "drains_fully": switch("a drain needs a round trip and an empty queue", False),
        "bandwidth_rounds": whole("rounds that the bandwidth filter remembers", 10, 1, 10**6),
        "rounds_by_ack": switch("every ACK counts as a round", False),
        "startup_gain": number("gain of startup", 2.885, 1, 10),
        "startup_rounds": whole("rounds without growth that end startup", 3, 1, 1000),
        "drain_gain": number("gain of the drain after startup", 0.3466, 0.05, 1),
        "window_gain": number("window over BDP", 2.0, 0.5, 10),
        "cruise_window_gain": number("the same while cruising", None, 0.1, 10),
        "min_rtt_s": number("how long the least RTT counts", 10.0, 0.5, 10**6),
        "probe_rtt_ms": number("length of ProbeRTT", 200.0, 1, 10_000),
        "probe_rtt_bdp": number("window in ProbeRTT, in BDP, and four packets at least", 0.0, 0, 2),
        "aggregation": switch("room for aggregated ACKs", True),
        "loss_beta": number("part of what is in flight that a loss leaves", 1.0, 0.1, 1),
        "pacing": switch("false: no pacing", True),
    }

    def __init__(self, settings: Settings) -> None:
        self._loss_cap = math.inf
        super().__init__(settings)
        o = self.option
        self.bandwidth = WindowedMax(o["bandwidth_rounds"])
        self._cycle = ChangedCycle(o["up_gain"], o["down_gain"], o["cruises"], o["drains_fully"])
        self.min_rtt = ChangedMinRtt(o["min_rtt_s"])
        self._full = ChangedFullPipe(o["startup_rounds"])

    @property
    def pacing_gain(self) -> float:
        gains = {"startup": self.option["startup_gain"], "drain": self.option["drain_gain"]}
        return gains.get(self.state, super().pacing_gain)

    @property
    def window_gain(self) -> float:
        if self.state == "startup":
            return max(self.option["startup_gain"], 2.0)
        if self.state != "probe_bw":
            return super().window_gain
        cruising = self.option["cruise_window_gain"] if self._cycle.gain == 1 else None
        return cruising or self.option["window_gain"]

    def on_ack(self, ack: Ack) -> None:
        if self._loss_cap < math.inf:
            self._loss_cap += self.packet_bytes * ack.acked_bytes / self._loss_cap
        super().on_ack(ack)
        self.window_bytes = min(self.window_bytes, self._loss_cap)

    def on_loss(self, loss: Loss) -> None:
        begins = not self._recovery
        super().on_loss(loss)
        if begins and self.option["loss_beta"] < 1:
            in_flight = loss.bytes_in_flight + loss.lost_bytes
            self._loss_cap = max(
                self.option["loss_beta"] * min(in_flight, self._loss_cap), 4 * self.packet_bytes
            )

    def _update_bandwidth(self, ack: Ack, sample: DeliverySample) -> None:
        if self.option["rounds_by_ack"]:
            self._round_end_bytes = 0
        super()._update_bandwidth(ack, sample)

    def _update_min_rtt(self, rtt_s: float | None, ack: Ack) -> None:
        before = self._probe_rtt_end_s
        super()._update_min_rtt(rtt_s, ack)
        if before is None and self._probe_rtt_end_s is not None:
            self._probe_rtt_end_s += self.option["probe_rtt_ms"] / 1e3 - 0.2

    def _update_window(self, ack: Ack) -> None:
        super()._update_window(ack)
        if self.state == "probe_rtt" and self.option["probe_rtt_bdp"]:
            product = self.bandwidth.value * self.min_rtt.value_s
            self.window_bytes = max(self.window_bytes, self.option["probe_rtt_bdp"] * product)
            if ack.bytes_in_flight <= self.window_bytes and self._probe_rtt_end_s is None:
                self._probe_rtt_end_s = ack.now_s + self.option["probe_rtt_ms"] / 1e3
                self._probe_rtt_round_done = False
                self._round_end_bytes = ack.delivered_bytes

    def _aggregation(self) -> float:
        return super()._aggregation() if self.option["aggregation"] else 0.0

    def _set_pacing(self, rate_bytes_per_s: float) -> None:
        super()._set_pacing(rate_bytes_per_s)
        if not self.option["pacing"]:
            self.pacing_rate_bytes_per_s = math.inf

    def _burst_packets(self) -> int:
        if math.isfinite(self.pacing_rate_bytes_per_s):
            return super()._burst_packets()
        return 2


LOSS_BASED: dict[str, Option] = {
    "revert_every": whole("every n-th reduction is reverted (0: none)", 0, 0, 1000),
    "reductions": whole("reductions for each loss event", 1, 1, 5),
    "every_loss": switch("every loss reduces the window, in recovery too", False),
    "most_packets": whole("largest window", 10**6, 2, 10**6),
    "least_packets": whole("least window", 2, 1, 10**6),
    "start_gain": number("packets per packet acknowledged in slow start", 1.0, 0.05, 4),
    "hystart_rise": number("HyStart's rise, over the usual", 1.0, 0.01, 100),
}


class ChangedHyStart(HyStart):
    """One that is more or less patient."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def is_over(self, ack: Ack, window_packets: float) -> bool:
        super().is_over(ack, window_packets)
        if self._samples < SAMPLES or window_packets < LEAST_WINDOW_PACKETS:
            return False
        usual_s = min(max(RTT_SHARE * self._least_rtt_s, LEAST_RISE_S), GREATEST_RISE_S)
        return self._round_rtt_s > self._least_rtt_s + self.scale * usual_s


class ChangedLossBased(LossBasedController):
    """What the changed Reno and CUBIC share."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._count = 0
        if self._hystart and self.option["hystart_rise"] != 1:
            self._hystart = ChangedHyStart(self.option["hystart_rise"])

    def on_loss(self, loss: Loss) -> None:
        if self.option["every_loss"]:
            self._recovery_start_s = -math.inf
        before = self.window_bytes
        start_s = self._recovery_start_s
        super().on_loss(loss)
        if self._recovery_start_s == start_s:
            return
        for _ in range(self.option["reductions"] - 1):
            self.reduce(loss.now_s, self.window_after_loss_bytes(loss))
        self._count += 1
        every = self.option["revert_every"]
        if every and self._count % every == 0:
            self.window_bytes = before
            self.ssthresh_bytes = before

    def _start_slowly(self, ack: Ack) -> None:
        before = self.window_bytes
        super()._start_slowly(ack)
        self.window_bytes += (self.option["start_gain"] - 1) * (self.window_bytes - before)

    def on_ack(self, ack: Ack) -> None:
        super().on_ack(ack)
        self.window_bytes = min(self.window_bytes, self.option["most_packets"] * self.packet_bytes)

    def _set_window(self, window_bytes: float) -> None:
        super()._set_window(max(window_bytes, self.option["least_packets"] * self.packet_bytes))


@qb.controller("changed-cubic")
class ChangedCubic(ChangedLossBased, Cubic):
    """CUBIC with one change."""

    options: ClassVar[dict[str, Option]] = {
        **Cubic.options,
        **LOSS_BASED,
        "c": number("CUBIC's C", C, 0.001, 100),
        "k_percent": number("K, over the usual", 100.0, 0, 1000),
        "alpha": number("packets per RTT of the Reno-friendly window", None, 0.0, 100),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        if self.option["alpha"] is not None:
            self.alpha = self.option["alpha"]

    def _begin_epoch(self, now_s: float) -> None:
        super()._begin_epoch(now_s)
        self._k_s *= self.option["k_percent"] / 100 * (C / self.option["c"]) ** (1 / 3)

    def _cubic(self, at_s: float) -> float:
        assert self._epoch_s is not None
        grown = self.option["c"] * self.packet_bytes * (at_s - self._epoch_s - self._k_s) ** 3
        return grown + self._w_max


@qb.controller("changed-reno")
class ChangedReno(ChangedLossBased, Reno):
    """Reno with one change."""

    options: ClassVar[dict[str, Option]] = {
        **Reno.options,
        **LOSS_BASED,
        "increase": number("packets per RTT", 1.0, 0.0, 1000),
    }

    def avoid_congestion(self, ack: Ack) -> None:
        before = self.window_bytes
        super().avoid_congestion(ack)
        self.window_bytes += (self.option["increase"] - 1) * (self.window_bytes - before)
