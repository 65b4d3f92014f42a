"""The library's BBR and Reno for the eleventh set of ``causes.py``, with one change per option.

A run is named by the source of its controller, so an edit here measures every case of it anew.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import qbkit as qb
from qbkit.cca import Ack, DeliverySample, Loss, Option, Settings, number, switch, whole
from qbkit.cca.builtin.bbr import Bbr
from qbkit.cca.builtin.reno import Reno


@qb.controller("eleventh-bbr")
class EleventhBbr(Bbr):
    """Version 1, as Linux has it."""

    options: ClassVar[dict[str, Option]] = Bbr.options | {
        "up_gain": number("pacing gain of a probe", 1.25, 1, 4),
        "phase_rtts": number("least length of a phase of the gain cycle", 1.0, 0.1, 100),
        "window_gain": number("window over BDP in ProbeBW", 2.0, 0.5, 10),
        "probes_rtt": switch("false: an old RTT is renewed without a ProbeRTT", True),
        "probe_rtt_more_ms": number("ProbeRTT lasts so much longer", 0.0, 0, 10_000),
        "room": switch("the window has room for ACKs that come together", True),
        "loss_ends_startup": switch("a round with losses ends Startup", False),
        "counts_limited": switch("samples that the application limits count as others", False),
    }

    def on_loss(self, loss: Loss) -> None:
        super().on_loss(loss)
        if self.option["loss_ends_startup"]:
            self._full.reached = True

    @property
    def pacing_gain(self) -> float:
        gain = super().pacing_gain
        probes = self.state == "probe_bw" and gain > 1
        return float(self.option["up_gain"]) if probes else gain

    @property
    def window_gain(self) -> float:
        return (
            float(self.option["window_gain"]) if self.state == "probe_bw" else super().window_gain
        )

    def _update_bandwidth(self, ack: Ack, sample: DeliverySample) -> None:
        limited = sample.is_app_limited and not self.option["counts_limited"]
        super()._update_bandwidth(ack, replace(sample, is_app_limited=limited))

    def _update_min_rtt(self, rtt_s: float | None, ack: Ack) -> None:
        if self.option["probes_rtt"]:
            waits = self._probe_rtt_end_s is None
            super()._update_min_rtt(rtt_s, ack)
            if waits and self._probe_rtt_end_s is not None:
                self._probe_rtt_end_s += self.option["probe_rtt_more_ms"] / 1e3
        else:
            self.min_rtt.update(rtt_s, ack.now_s)

    def _update_cycle(self, ack: Ack) -> None:
        if self.state == "probe_bw":
            self._cycle.update(
                ack.now_s,
                min_rtt_s=self.option["phase_rtts"] * self.min_rtt.value_s,
                has_lost=self._lost_bytes > 0,
                in_flight=self._at_departure(ack.prior_bytes_in_flight, ack),
                target=self._target,
            )

    def _aggregation(self) -> float:
        return super()._aggregation() if self.option["room"] else 0.0


@qb.controller("eleventh-reno")
class EleventhReno(Reno):
    """RFC 9002, with HyStart."""

    options: ClassVar[dict[str, Option]] = Reno.options | {
        "increase": number("packets that a round trip adds", 1.0, 0.01, 100),
        "counts_acks": switch("an ACK of any size counts as one packet, slow start aside", False),
        "limited_from_packets": whole(
            "from there on slow start adds half of it a round", 0, 0, 999
        ),
        "least_packets": whole("least window", 2, 1, 10**4),
        "deaf_rtts": number("round trips after a reduction in which no loss counts", 0.0, 0, 10**4),
        "undoes_packets": whole("a loss of at most so many packets is undone", 0, 0, 10**4),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._srtt_s = 0.0
        self._before: tuple[float, float | None] | None = None
        """Window and threshold before the last reduction, until it is over."""
        self._lost = 0

    def on_ack(self, ack: Ack) -> None:
        self._srtt_s = ack.smoothed_rtt_s
        if not self.is_recovering(ack):
            if self._before and self._lost <= self.option["undoes_packets"]:
                self.window_bytes, self.ssthresh_bytes = self._before
            self._before = None
        super().on_ack(ack)

    def on_loss(self, loss: Loss) -> None:
        self._lost += len(loss.packets)
        if loss.newest_sent_s > self._recovery_start_s:
            if loss.now_s < self._recovery_start_s + self.option["deaf_rtts"] * self._srtt_s:
                return
            self._before, self._lost = (self.window_bytes, self.ssthresh_bytes), len(loss.packets)
        super().on_loss(loss)

    def avoid_congestion(self, ack: Ack) -> None:
        counted = self.packet_bytes if self.option["counts_acks"] else ack.acked_bytes
        self.window_bytes += (
            self.option["increase"] * counted / self.window_bytes * self.packet_bytes
        )

    def _start_slowly(self, ack: Ack) -> None:
        """RFC 3742."""
        most = self.option["limited_from_packets"] * self.packet_bytes
        part = (
            min(1.0, most / (2 * self.window_bytes)) if most and self.window_bytes > most else 1.0
        )
        super()._start_slowly(replace(ack, acked_bytes=math.ceil(part * ack.acked_bytes)))

    def _set_window(self, window_bytes: float) -> None:
        super()._set_window(max(window_bytes, self.option["least_packets"] * self.packet_bytes))
