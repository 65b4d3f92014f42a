"""More of our controllers with one known change each, for ``benchmarks/causes.py``.

They were tried after the rules of `qbkit.metrics.parameters` had been written. A controller travels
as the text of its file, so ``changed_controllers.py`` stays as it is, and its runs with it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import qbkit as qb
from qbkit.cca import Ack, DeliverySample, Loss, Option, Settings, number, switch, whole
from qbkit.cca.builtin.bbr import Bbr
from qbkit.cca.builtin.cubic import Cubic
from qbkit.cca.builtin.reno import Reno
from qbkit.cca.loss_based import LossBasedController

OVER_WINDOW = 1.25
"""A window is paced at so many of it per round trip (RFC 9002, section 7.7)."""
BATCHES: dict[str, Option] = {
    "timer_ms": number("packets leave when a timer of this period fires", 0.0, 0, 1000),
    "quantum_packets": whole("packets leave when so many of them are due (0: each)", 0, 0, 1000),
}


class Batches:
    """What has become due at the pacing rate leaves together, by time or by number.

    Controllers hear ACKs but have no timer of their own: a batch leaves with the first ACK after it
    is due.
    """

    def __init__(self, packet_bytes: int, timer_s: float, quantum_packets: int) -> None:
        self._packet_bytes = packet_bytes
        self._timer_s = timer_s
        self._quantum_bytes = quantum_packets * packet_bytes
        self._before_s = self._fired_s = -math.inf
        self._due_bytes = 0.0
        self.used = bool(timer_s or quantum_packets)

    def window(self, ack: Ack, window_bytes: float, rate_bytes_per_s: float) -> float:
        """The window that lets go what is due, and nothing else."""
        if math.isfinite(self._before_s):
            self._due_bytes += rate_bytes_per_s * (ack.now_s - self._before_s)
        self._before_s = ack.now_s
        fires = ack.now_s >= self._fired_s + self._timer_s
        if not (fires and self._due_bytes >= self._quantum_bytes) and ack.bytes_in_flight:
            return float(ack.bytes_in_flight)
        self._fired_s = ack.now_s
        packets = max(self._due_bytes // self._packet_bytes, 0 if ack.bytes_in_flight else 2)
        let_go = min(ack.bytes_in_flight + packets * self._packet_bytes, window_bytes)
        self._due_bytes = max(self._due_bytes - packets * self._packet_bytes, 0.0)
        return max(let_go, float(ack.bytes_in_flight))


@qb.controller("further-bbr")
class FurtherBbr(Bbr):
    """BBR with one change."""

    options: ClassVar[dict[str, Option]] = {
        **Bbr.options,
        **BATCHES,
        "round_ms": number("a round is a fixed time (0: counted by packets)", 0.0, 0, 10_000),
        "counts_limited": switch("samples that the application limits count as others", False),
        "headroom": number("part of the BDP in flight while cruising", None, 0.1, 2),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._next_round_s = -math.inf
        timer_s, packets = self.option["timer_ms"] / 1e3, self.option["quantum_packets"]
        self._batches = Batches(self.packet_bytes, timer_s, packets)
        self._decided: tuple[float, float] | None = None

    def on_loss(self, loss: Loss) -> None:
        self._restore()
        super().on_loss(loss)

    def on_ack(self, ack: Ack) -> None:
        self._restore()
        super().on_ack(ack)
        if self._batches.used and self._full.reached:
            self._decided = self.window_bytes, self.pacing_rate_bytes_per_s
            self.window_bytes = self._batches.window(ack, *self._decided)
            self.pacing_rate_bytes_per_s = math.inf

    def _restore(self) -> None:
        """What the model decided, in place of what lets a batch go."""
        if self._decided:
            self.window_bytes, self.pacing_rate_bytes_per_s = self._decided
            self._decided = None

    def _update_bandwidth(self, ack: Ack, sample: DeliverySample) -> None:
        if self.option["counts_limited"]:
            sample = replace(sample, is_app_limited=False)
        round_s = self.option["round_ms"] / 1e3
        if round_s:
            over = ack.now_s >= self._next_round_s
            self._next_round_s = ack.now_s + round_s if over else self._next_round_s
            self._round_end_bytes = 0 if over else 2**62
        super()._update_bandwidth(ack, sample)

    def _toward_target(self, window: float, ack: Ack) -> float:
        window = super()._toward_target(window, ack)
        headroom = self.option["headroom"]
        if headroom and self.state == "probe_bw" and self._cycle.gain == 1:
            window = min(window, headroom * self.bandwidth.value * self.min_rtt.value_s)
        return window


LOSS_BASED: dict[str, Option] = {
    **BATCHES,
    "collapses": switch("each loss event is taken for persistent congestion", False),
    "recovery_s": number("losses so long after a reduction do not reduce again", 0.0, 0, 1000),
}


class FurtherLossBased(LossBasedController):
    """What the two share."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        timer_s, packets = self.option["timer_ms"] / 1e3, self.option["quantum_packets"]
        self._batches = Batches(self.packet_bytes, timer_s, packets)
        self._decided_bytes = 0.0

    def on_loss(self, loss: Loss) -> None:
        self._restore()
        if loss.now_s < self._recovery_start_s + self.option["recovery_s"]:
            return
        if self.option["collapses"] and loss.newest_sent_s > self._recovery_start_s:
            loss = replace(loss, is_persistent_congestion=True)
        super().on_loss(loss)

    def on_ack(self, ack: Ack) -> None:
        self._restore()
        super().on_ack(ack)
        if self._batches.used:
            self._decided_bytes = self.window_bytes
            rate = OVER_WINDOW * self.window_bytes / ack.smoothed_rtt_s
            self.window_bytes = self._batches.window(ack, self.window_bytes, rate)
            self.pacing_rate_bytes_per_s = math.inf

    def _restore(self) -> None:
        if self._decided_bytes:
            self.window_bytes, self._decided_bytes = self._decided_bytes, 0.0


@qb.controller("further-cubic")
class FurtherCubic(FurtherLossBased, Cubic):
    """CUBIC with one change."""

    options: ClassVar[dict[str, Option]] = {**Cubic.options, **LOSS_BASED}


@qb.controller("further-reno")
class FurtherReno(FurtherLossBased, Reno):
    """Reno with one change."""

    options: ClassVar[dict[str, Option]] = {**Reno.options, **LOSS_BASED}
