"""The library's BBR and CUBIC for the twelfth set of ``causes.py``, with one change per option.

A run is named by the source of its controller, so an edit here measures every case of it anew.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import qbkit as qb
from qbkit.cca import Ack, DeliverySample, Idle, Loss, Option, Settings, number, switch, whole
from qbkit.cca.builtin import bbr, cubic
from qbkit.cca.filters import WindowedMax


@qb.controller("twelfth-bbr")
class TwelfthBbr(bbr.Bbr):
    """Version 1, as Linux has it."""

    options: ClassVar[dict[str, Option]] = bbr.Bbr.options | {
        "startup_gain": number("pacing and window gain in Startup", bbr.HIGH_GAIN, 1, 10),
        "down_gain": number("pacing gain after a probe", 0.75, 0.05, 1),
        "memory_rounds": whole("rounds of the bandwidth filter", bbr.BANDWIDTH_ROUNDS, 1, 10**6),
        "drains_to_bdp": number("a drain is over with so many BDP in flight", 1.0, 0.1, 10),
        "cruise_bdp": number("most BDP in flight while cruising", 10.0, 0.1, 10),
        "probe_rtt_every_s": number("age of a minimum RTT that asks for ProbeRTT", 10.0, 0.2, 1e6),
        "probe_rtt_bdp": number("BDP in flight in ProbeRTT, of at least four packets", 0.0, 0, 2),
        "loss_keeps": number("part of what is in flight that a round with losses leaves", 0, 0, 1),
        "round_acks": whole("so many ACKs are a round (0: counted by packets)", 0, 0, 10**6),
        "timer_ms": number("packets leave when a timer of this period fires", 0.0, 0, 1000),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.bandwidth = WindowedMax(self.option["memory_rounds"])
        self._acks = 0
        self._most_bytes = math.inf
        self._model = (self.window_bytes, self.pacing_rate_bytes_per_s)
        self._fired_s = -math.inf

    def on_loss(self, loss: Loss) -> None:
        if self.option["loss_keeps"] and not self._recovery:
            in_flight = loss.bytes_in_flight + loss.lost_bytes
            self._most_bytes = self.option["loss_keeps"] * in_flight
        self._restore()
        super().on_loss(loss)
        self._keep()

    def on_ack(self, ack: Ack) -> None:
        self._restore()
        super().on_ack(ack)
        self._keep()
        if self.option["timer_ms"] and self._full.reached:
            self._wait_for_timer(ack)

    def _restore(self) -> None:
        """The window and the rate that the model gave, not those that wait for a timer."""
        self.window_bytes, self.pacing_rate_bytes_per_s = self._model

    def _keep(self) -> None:
        self._model = (self.window_bytes, self.pacing_rate_bytes_per_s)

    def _wait_for_timer(self, ack: Ack) -> None:
        """What the rate has made due since the timer fired leaves when it fires again."""
        window, rate = self._model
        self.window_bytes, self.pacing_rate_bytes_per_s = float(ack.bytes_in_flight), math.inf
        passed_s = ack.now_s - self._fired_s
        if passed_s >= self.option["timer_ms"] / 1e3 or not ack.bytes_in_flight:
            due = rate * min(passed_s, 2 * self.option["timer_ms"] / 1e3)
            self.window_bytes = max(min(window, ack.bytes_in_flight + due), self.window_bytes)
            self._fired_s = ack.now_s

    def _update_bandwidth(self, ack: Ack, sample: DeliverySample) -> None:
        if self.option["round_acks"]:
            self._acks += 1
            ends = self._acks % self.option["round_acks"] == 0
            self._round_end_bytes = 0 if ends else 2**62
        super()._update_bandwidth(ack, sample)

    def _update_min_rtt(self, rtt_s: float | None, ack: Ack) -> None:
        """The filter's window is 10 s; an RTT that is to be old sooner is made older."""
        every_s, usual_s = self.option["probe_rtt_every_s"], 10.0
        is_old = ack.now_s > self.min_rtt.found_s + every_s
        if every_s != usual_s and self.state != "probe_rtt" and is_old:
            self.min_rtt.found_s = min(self.min_rtt.found_s, ack.now_s - usual_s - 1e-3)
        super()._update_min_rtt(rtt_s, ack)

    @property
    def pacing_gain(self) -> float:
        gain = super().pacing_gain
        if self.state == "startup":
            return float(self.option["startup_gain"])
        drains = self.state == "probe_bw" and gain < 1
        return float(self.option["down_gain"]) if drains else gain

    @property
    def window_gain(self) -> float:
        starts = self.state == "startup"
        return float(self.option["startup_gain"]) if starts else super().window_gain

    def _target(self, gain: float, more_bytes: float = 0.0) -> float:
        drains = gain == 1 and self.state in ("drain", "probe_bw")
        return super()._target(self.option["drains_to_bdp"] if drains else gain, more_bytes)

    def _update_window(self, ack: Ack) -> None:
        if self._cycle.gain > 1:
            self._most_bytes = math.inf
        super()._update_window(ack)
        bdp = self.bandwidth.value * self.min_rtt.value_s
        if self.state == "probe_rtt":
            self.window_bytes = max(self.window_bytes, self.option["probe_rtt_bdp"] * bdp)
        elif self.state == "probe_bw":
            most = self.option["cruise_bdp"] * bdp if self._cycle.gain == 1 else math.inf
            least = bbr.MIN_WINDOW_PACKETS * self.packet_bytes
            self.window_bytes = max(min(self.window_bytes, most, self._most_bytes), least)


@qb.controller("twelfth-cubic")
class TwelfthCubic(cubic.Cubic):
    """RFC 9438 with HyStart."""

    options: ClassVar[dict[str, Option]] = cubic.Cubic.options | {
        "c": number("CUBIC's C in packets/s³", cubic.C, 0.001, 100),
        "start_part": number("packets that slow start adds per packet acknowledged", 1.0, 0.05, 1),
        "late_rounds": whole("slow start goes on for so many rounds after HyStart", 0, 0, 100),
        "most_packets": whole("largest window", 10**6, 2, 10**6),
        "idle_keeps": number("part of the window that a pause of a second leaves", 1.0, 0.01, 1),
        "outlasts": switch("persistent congestion is a loss like others", False),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._end_s = math.inf

    def on_loss(self, loss: Loss) -> None:
        whole_loss = not self.option["outlasts"]
        lasting = loss.is_persistent_congestion and whole_loss
        super().on_loss(replace(loss, is_persistent_congestion=lasting))

    def on_idle(self, idle: Idle) -> None:
        if idle.idle_s >= 1 and self.option["idle_keeps"] < 1:
            self.ssthresh_bytes = self.window_bytes
            self._set_window(self.option["idle_keeps"] * self.window_bytes)

    def _start_slowly(self, ack: Ack) -> None:
        part = self.option["start_part"]
        starts = self.ssthresh_bytes is None
        super()._start_slowly(replace(ack, acked_bytes=int(part * ack.acked_bytes)))
        if starts and self.ssthresh_bytes is not None and self.option["late_rounds"]:
            self.ssthresh_bytes = None
            later_s = ack.now_s + self.option["late_rounds"] * ack.min_rtt_s
            self._end_s = min(self._end_s, later_s)
        if starts and ack.now_s >= self._end_s:
            self.ssthresh_bytes = self.window_bytes
        self._set_window(self.window_bytes)

    def avoid_congestion(self, ack: Ack) -> None:
        super().avoid_congestion(ack)
        self._set_window(self.window_bytes)

    def _begin_epoch(self, now_s: float) -> None:
        super()._begin_epoch(now_s)
        self._k_s *= (cubic.C / self.option["c"]) ** (1 / 3)

    def _cubic(self, at_s: float) -> float:
        return self._w_max + (super()._cubic(at_s) - self._w_max) * self.option["c"] / cubic.C

    def _set_window(self, window_bytes: float) -> None:
        super()._set_window(min(window_bytes, self.option["most_packets"] * self.packet_bytes))
