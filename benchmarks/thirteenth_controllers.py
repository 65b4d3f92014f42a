"""The library's BBR, Reno and CUBIC for the thirteenth set of ``causes.py``: one change per option.

A run is named by the source of its controller, so an edit here measures every case of it anew.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import qbkit as qb
from qbkit.cca import Ack, DeliverySample, Idle, Loss, Option, Settings, number, switch, whole
from qbkit.cca.builtin import bbr, cubic, reno
from qbkit.cca.filters import FULL_ROUNDS, WindowedMax


class OneChange:
    """What Reno and CUBIC have in common; the mixin comes first."""

    options: ClassVar[dict[str, Option]] = {
        "counts_losses": switch("each lost packet reduces the window", False),
        "cap_packets": whole("largest window", 10**6, 2, 10**6),
        "floor_packets": whole("least window", 2, 1, 10**4),
        "slow_start_per_ack": number("packets that slow start adds per packet", 1.0, 0.05, 4),
        "leaves_at_packets": whole("slow start ends at this window", 10**6, 2, 10**6),
        "idle_restarts": switch("after a second's pause the window is the initial one", False),
        "persists": switch("persistent congestion is a loss like others", False),
        "reverts_part": number("such a part of the reductions is reverted", 0.0, 0, 1),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._first_bytes = self.window_bytes
        self._owed = 0.0

    def on_loss(self, loss: Loss) -> None:
        if self.option["persists"]:
            loss = replace(loss, is_persistent_congestion=False)
        before = self.window_bytes, self.ssthresh_bytes, self._recovery_start_s
        for _ in range(len(loss.packets) if self.option["counts_losses"] else 1):
            if self.option["counts_losses"]:
                self._recovery_start_s = -math.inf
            super().on_loss(loss)
        if self._recovery_start_s != before[2]:
            self._owed += self.option["reverts_part"]
            if self._owed >= 1:
                self._owed -= 1
                self.window_bytes, self.ssthresh_bytes = before[0], before[0]

    def on_idle(self, idle: Idle) -> None:
        if self.option["idle_restarts"] and idle.idle_s >= 1:
            self.ssthresh_bytes = self.window_bytes
            self.window_bytes = self._first_bytes

    def on_ack(self, ack: Ack) -> None:
        super().on_ack(ack)
        self.window_bytes = min(self.window_bytes, self.option["cap_packets"] * self.packet_bytes)

    def _start_slowly(self, ack: Ack) -> None:
        acked = math.ceil(self.option["slow_start_per_ack"] * ack.acked_bytes)
        super()._start_slowly(replace(ack, acked_bytes=acked))
        if self.window_bytes >= self.option["leaves_at_packets"] * self.packet_bytes:
            self.ssthresh_bytes = self.window_bytes

    def _set_window(self, window_bytes: float) -> None:
        super()._set_window(max(window_bytes, self.option["floor_packets"] * self.packet_bytes))


@qb.controller("thirteenth-bbr")
class ThirteenthBbr(bbr.Bbr):
    """Version 1, as Linux has it."""

    options: ClassVar[dict[str, Option]] = bbr.Bbr.options | {
        "rounds_per_ack": switch("every ACK is a round", False),
        "gain_startup": number("pacing and window gain in Startup", bbr.HIGH_GAIN, 1, 10),
        "full_growth": number("growth per round that keeps Startup going", 1.25, 1.01, 2),
        "filter_rounds": whole("rounds of the bandwidth filter", bbr.BANDWIDTH_ROUNDS, 1, 10**6),
        "gain_drain": number("pacing gain in Drain", 1 / bbr.HIGH_GAIN, 0.05, 1),
        "gain_up": number("pacing gain of a probe", 1.25, 1, 4),
        "gain_down": number("pacing gain after it", 0.75, 0.05, 1),
        "gain_window": number("window over BDP in ProbeBW", 2.0, 0.5, 10),
        "aggregates": switch("the window has room for ACKs that come together", True),
        "probe_rtt_s": number("age of a minimum RTT that asks for ProbeRTT", 10.0, 0.2, 1e6),
        "probe_rtt_packets": whole("packets in flight in ProbeRTT", 4, 1, 10**4),
        "counts_limited": switch("samples that the application limits count as others", False),
        "probe_rtt_lasts_ms": number("least length of ProbeRTT", 200.0, 1, 10_000),
        "headroom": number("part of the BDP that cruising leaves free", 0.0, 0, 0.9),
        "loss_keeps": number("part of what is in flight that a loss leaves for 8 RTTs", 1, 0.05, 1),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.bandwidth = WindowedMax(self.option["filter_rounds"])
        self._cap_bytes, self._cap_end_s = math.inf, -math.inf

    def on_loss(self, loss: Loss) -> None:
        if self.option["loss_keeps"] < 1 and loss.now_s >= self._cap_end_s:
            in_flight = loss.bytes_in_flight + loss.lost_bytes
            self._cap_bytes = self.option["loss_keeps"] * in_flight
            self._cap_end_s = loss.now_s + 8 * self.min_rtt.value_s
        super().on_loss(loss)

    @property
    def pacing_gain(self) -> float:
        gain = super().pacing_gain
        if self.state in ("startup", "drain"):
            return float(self.option[f"gain_{self.state}"])
        if self.state != "probe_bw" or gain == 1:
            return gain
        return float(self.option["gain_up" if gain > 1 else "gain_down"])

    @property
    def window_gain(self) -> float:
        named = {"startup": "gain_startup", "drain": "gain_startup", "probe_bw": "gain_window"}
        name = named.get(self.state)
        return float(self.option[name]) if name else super().window_gain

    def _update_bandwidth(self, ack: Ack, sample: DeliverySample) -> None:
        if self.option["rounds_per_ack"]:
            self._round_end_bytes = 0
        limited = sample.is_app_limited and not self.option["counts_limited"]
        super()._update_bandwidth(ack, replace(sample, is_app_limited=limited))

    def _check_full_pipe(self, ack: Ack, sample: DeliverySample) -> None:
        """The filter's growth is a constant, so rounds are judged here."""
        full = self._full
        if self._round_start and not sample.is_app_limited and not full.reached:
            grows = self.bandwidth.value >= self.option["full_growth"] * full._best
            full._best = self.bandwidth.value if grows else full._best
            full._rounds = 0 if grows else full._rounds + 1
            full.reached = full._rounds >= FULL_ROUNDS
        super()._check_full_pipe(ack, replace(sample, is_app_limited=True))

    def _update_min_rtt(self, rtt_s: float | None, ack: Ack) -> None:
        every_s, usual_s = self.option["probe_rtt_s"], 10.0
        age_s = ack.now_s - self.min_rtt.found_s
        if every_s != usual_s and self.state != "probe_rtt" and math.isfinite(age_s):
            if age_s > every_s:
                self.min_rtt.found_s = min(self.min_rtt.found_s, ack.now_s - usual_s - 1e-3)
            elif age_s > usual_s:
                self.min_rtt.update(rtt_s, self.min_rtt.found_s)
                return
        waits = self._probe_rtt_end_s is None
        most = self.option["probe_rtt_packets"] * self.packet_bytes
        least = bbr.MIN_WINDOW_PACKETS * self.packet_bytes
        counted = ack.bytes_in_flight if ack.bytes_in_flight > max(most, least) else 0
        super()._update_min_rtt(rtt_s, replace(ack, bytes_in_flight=counted))
        if waits and self._probe_rtt_end_s is not None:
            self._probe_rtt_end_s += self.option["probe_rtt_lasts_ms"] / 1e3 - bbr.PROBE_RTT_S

    def _update_window(self, ack: Ack) -> None:
        super()._update_window(ack)
        packets = self.option["probe_rtt_packets"]
        if self.state == "probe_rtt" and packets != bbr.MIN_WINDOW_PACKETS:
            self.window_bytes = float(packets * self.packet_bytes)
        if self.state == "probe_bw" and self._cycle.gain == 1 and self.option["headroom"]:
            bdp = self.bandwidth.value * self.min_rtt.value_s
            self.window_bytes = min(self.window_bytes, (1 - self.option["headroom"]) * bdp)
        if ack.now_s < self._cap_end_s:
            least = bbr.MIN_WINDOW_PACKETS * self.packet_bytes
            self.window_bytes = max(min(self.window_bytes, self._cap_bytes), least)

    def _aggregation(self) -> float:
        return super()._aggregation() if self.option["aggregates"] else 0.0


@qb.controller("thirteenth-reno")
class ThirteenthReno(OneChange, reno.Reno):
    """RFC 9002, with HyStart."""

    options: ClassVar[dict[str, Option]] = (
        reno.Reno.options
        | OneChange.options
        | {"adds": number("packets that a round trip adds", 1.0, 0.01, 100)}
    )

    def avoid_congestion(self, ack: Ack) -> None:
        acked = math.ceil(self.option["adds"] * ack.acked_bytes)
        super().avoid_congestion(replace(ack, acked_bytes=acked))


@qb.controller("thirteenth-cubic")
class ThirteenthCubic(OneChange, cubic.Cubic):
    """RFC 9438, with HyStart."""

    options: ClassVar[dict[str, Option]] = (
        cubic.Cubic.options
        | OneChange.options
        | {
            "converges": switch("fast convergence", True),
            "steep": number("C over the usual", 1.0, 0.001, 1000),
            "early": number("K over the usual", 1.0, 0.0, 10),
            "friendly": number("α of the Reno-friendly window over the usual", 1.0, 0.0, 100),
        }
    )

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.alpha *= self.option["friendly"]

    def window_after_loss_bytes(self, loss: Loss) -> float:
        if not self.option["converges"]:
            self._w_max = min(self._w_max, self.window_bytes)
        return super().window_after_loss_bytes(loss)

    def _begin_epoch(self, now_s: float) -> None:
        super()._begin_epoch(now_s)
        self._k_s *= self.option["early"] * self.option["steep"] ** (-1 / 3)

    def _cubic(self, at_s: float) -> float:
        return self._w_max + (super()._cubic(at_s) - self._w_max) * self.option["steep"]
