"""BBR, version 1: draft-cardwell-iccrg-bbr-congestion-control-00, with what Linux's does beyond it.

Beyond the draft, as Linux: pacing 1 % below the bandwidth, the window for aggregated ACKs, and the
quantization budget. Not as Linux: no detection of policers (the draft has none).
"""

from __future__ import annotations

import math
from typing import ClassVar

from ..controller import Controller, Settings
from ..events import Ack, DeliverySample, Loss
from ..filters import ExtraAcked, FullPipe, MinRtt, WindowedMax
from ..gain_cycle import GAINS, GainCycle
from ..options import Option, number
from ..recovery_period import RecoveryPeriod

HIGH_GAIN = 2 / math.log(2)
"""Doubles the delivered data each round."""
WINDOW_GAIN = 2.0
BANDWIDTH_ROUNDS = len(GAINS) + 2
PROBE_RTT_S = 0.2
MIN_WINDOW_PACKETS = 4
INITIAL_WINDOW_PACKETS = 10
MARGIN = 0.99
"""Linux paces 1 % below its bandwidth, to drain what of a queue is there."""
BURST_S = 1 / 1024
"""Linux sends this much at once, but two packets at least."""
LOW_RATE_BYTES_PER_S = 1.2e6 / 8
"""Below that, one packet."""


class Bbr(Controller):
    """Models the path by its greatest delivery rate and least round trip; sends by the model."""

    options: ClassVar[dict[str, Option]] = {
        "pacing_gain_percent": number(
            "BBR's pacing rate, scaled: mvfst's is 120 (100)", 100.0, 10, 1000
        ),
        "first_rtt_ms": number(
            "the first RTT that BBR assumes instead of the measured one", None, 0.1, 10_000
        ),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.state = "startup"
        self.bandwidth = WindowedMax(BANDWIDTH_ROUNDS)
        """Bytes/s."""
        self.min_rtt = MinRtt()
        self._full = FullPipe()
        self._extra = ExtraAcked()
        self._scale = self.option["pacing_gain_percent"] / 100
        first_rtt_ms = self.option["first_rtt_ms"]
        self._first_rtt_s = first_rtt_ms and first_rtt_ms / 1e3
        self._had_rtt = False
        self.pacing_rate_bytes_per_s: float = 0.0
        self._set_pacing(self.window_bytes / 0.001 * HIGH_GAIN)
        self._rounds = 0
        self._round_start = False
        self._round_end_bytes = 0
        self._cycle = GainCycle()
        self._probe_rtt_end_s: float | None = None
        self._probe_rtt_round_done = False
        self._prior_window = 0.0
        self._lost_bytes = 0
        self._recovery = RecoveryPeriod()
        self._was_in_recovery = self._conserving = False

    # Events

    def on_loss(self, loss: Loss) -> None:
        """The first of them begins recovery."""
        self._lost_bytes += loss.lost_bytes
        if self._recovery.on_loss(loss):
            self._save_window()
        if loss.is_persistent_congestion:  # the draft's timeout: one packet, and up to what was
            self.window_bytes = float(self.packet_bytes)

    def on_ack(self, ack: Ack) -> None:
        """Update the model, then what is sent by it."""
        self._recovery.on_ack(ack)
        rtt_s = ack.rtt_s if self._had_rtt else None
        if not self._had_rtt:
            self._take_first_rtt(ack)
        if ack.delivery is None:
            return
        self._update_bandwidth(ack, ack.delivery)
        self._extra.update(
            ack.acked_bytes, self.bandwidth.value, self.window_bytes, self._round_start, ack.now_s
        )
        self._update_cycle(ack)
        self._check_full_pipe(ack, ack.delivery)
        self._update_min_rtt(rtt_s, ack)
        self._update_pacing()
        self._update_window(ack)
        self._lost_bytes = 0
        self.log(
            min_rtt_ms=self.min_rtt.value_s * 1e3, delivery_rate_mbps=self.bandwidth.value * 8e-6
        )

    def _take_first_rtt(self, ack: Ack) -> None:
        """The first sample, the handshake's, sets the pace of Startup."""
        if ack.rtt_s is not None:
            self._had_rtt = True
            rtt_s = self._first_rtt_s or ack.rtt_s
            self.min_rtt.update(rtt_s, ack.now_s)
            self._set_pacing(self.window_bytes / rtt_s * HIGH_GAIN)

    # The model

    def _update_bandwidth(self, ack: Ack, sample: DeliverySample) -> None:
        """Rounds are counted by packets: one ends when what was sent after its start arrives."""
        self._round_start = False
        if sample.interval_s < self.min_rtt.value_s:
            return  # by a late ACK of a packet declared lost: the sample would be too high
        if sample.prior_delivered_bytes >= self._round_end_bytes:
            self._round_end_bytes = ack.delivered_bytes
            self._rounds += 1
            self._round_start = True
            self._conserving = False
        if not sample.is_app_limited or sample.rate_bytes_per_s >= self.bandwidth.value:
            self.bandwidth.update(self._rounds, sample.rate_bytes_per_s)

    def _check_full_pipe(self, ack: Ack, sample: DeliverySample) -> None:
        """Startup → Drain → ProbeBW."""
        if self._round_start and not sample.is_app_limited:
            self._full.update(self.bandwidth.value)
        if self.state == "startup" and self._full.reached:
            self.state = "drain"
        in_flight = self._at_departure(ack.bytes_in_flight, ack)
        if self.state == "drain" and in_flight <= self._target(1):
            self._enter_probe_bw(ack.now_s)

    def _update_min_rtt(self, rtt_s: float | None, ack: Ack) -> None:
        """ProbeRTT: four packets in flight for a round, and 200 ms, when the minimum is old."""
        now_s = ack.now_s
        expired = self.min_rtt.update(rtt_s, now_s)
        if expired and self.state != "probe_rtt":
            self._save_window()
            self.state = "probe_rtt"
            self.is_sending_less = True
            self._probe_rtt_end_s = None
        if self.state != "probe_rtt":
            return
        if self._probe_rtt_end_s is None:
            if ack.bytes_in_flight <= MIN_WINDOW_PACKETS * self.packet_bytes:
                self._probe_rtt_end_s = now_s + PROBE_RTT_S
                self._probe_rtt_round_done = False
                self._round_end_bytes = ack.delivered_bytes
            return
        self._probe_rtt_round_done |= self._round_start
        if self._probe_rtt_round_done and now_s > self._probe_rtt_end_s:
            self._leave_probe_rtt(now_s)

    def _leave_probe_rtt(self, now_s: float) -> None:
        self.min_rtt.found_s = now_s
        self.is_sending_less = False
        self.window_bytes = max(self.window_bytes, self._prior_window)
        if self._full.reached:
            self._enter_probe_bw(now_s)
        else:
            self.state = "startup"

    def _enter_probe_bw(self, now_s: float) -> None:
        self.state = "probe_bw"
        self._cycle.begin(now_s)

    def _update_cycle(self, ack: Ack) -> None:
        if self.state == "probe_bw":
            self._cycle.update(
                ack.now_s,
                min_rtt_s=self.min_rtt.value_s,
                has_lost=self._lost_bytes > 0,
                in_flight=self._at_departure(ack.prior_bytes_in_flight, ack),
                target=self._target,
            )

    # What is sent by the model

    @property
    def pacing_gain(self) -> float:
        """Of the bandwidth, before the option scales it."""
        gains = {"startup": HIGH_GAIN, "drain": 1 / HIGH_GAIN, "probe_rtt": 1.0}
        return gains.get(self.state, self._cycle.gain)

    @property
    def window_gain(self) -> float:
        """Of the bandwidth-delay product."""
        gains = {"probe_bw": WINDOW_GAIN, "probe_rtt": 1.0}
        return gains.get(self.state, HIGH_GAIN)

    def _update_pacing(self) -> None:
        """Startup never slows down."""
        rate = self.bandwidth.value * self.pacing_gain
        if self._full.reached or rate * self._scale * MARGIN > self.pacing_rate_bytes_per_s:
            self._set_pacing(rate)

    def _set_pacing(self, rate_bytes_per_s: float) -> None:
        self.pacing_rate_bytes_per_s = rate_bytes_per_s * self._scale * MARGIN

    def _update_window(self, ack: Ack) -> None:
        """Toward the target by what is acknowledged; in recovery's first round, as it drains."""
        window = max(self.window_bytes - self._lost_bytes, self.packet_bytes)
        in_recovery = bool(self._recovery)
        if in_recovery and not self._was_in_recovery:
            self._conserving = True
            self._round_end_bytes = ack.delivered_bytes
            window = ack.bytes_in_flight + ack.acked_bytes
        elif self._was_in_recovery and not in_recovery:
            self._conserving = False
            window = max(window, self._prior_window)
        self._was_in_recovery = in_recovery
        if self._conserving:
            window = max(window, ack.bytes_in_flight + ack.acked_bytes)
        else:
            window = self._toward_target(window, ack)
        least = MIN_WINDOW_PACKETS * self.packet_bytes
        self.window_bytes = min(window, least) if self.state == "probe_rtt" else window

    def _toward_target(self, window: float, ack: Ack) -> float:
        target = self._target(self.window_gain, self._aggregation())
        if self._full.reached:
            window = min(window + ack.acked_bytes, target)
        elif window < target or ack.delivered_bytes < INITIAL_WINDOW_PACKETS * self.packet_bytes:
            window += ack.acked_bytes
        return max(window, MIN_WINDOW_PACKETS * self.packet_bytes)

    def _target(self, gain: float, more_bytes: float = 0.0) -> float:
        """Bytes in flight at that gain, and enough for the bursts of both ends."""
        if not math.isfinite(self.min_rtt.value_s):
            return INITIAL_WINDOW_PACKETS * self.packet_bytes
        product = gain * self.bandwidth.value * self.min_rtt.value_s + more_bytes
        packets = math.ceil(product / self.packet_bytes) + 3 * self._burst_packets()
        packets += packets % 2
        if self.state == "probe_bw" and self._cycle.gain > 1:
            packets += 2
        return packets * self.packet_bytes

    def _aggregation(self) -> float:
        """Bytes; at most those of 100 ms."""
        if not self._full.reached:
            return 0.0
        return min(self._extra.value_bytes, 0.1 * self.bandwidth.value)

    def _burst_packets(self) -> int:
        rate = self.pacing_rate_bytes_per_s
        least = 1 if rate < LOW_RATE_BYTES_PER_S else 2
        return max(int(rate * BURST_S / self.packet_bytes), least)

    def _at_departure(self, in_flight: int, ack: Ack) -> float:
        """What will be in flight when the next packet may go."""
        if self.pacing_gain > 1:
            in_flight += self._burst_packets() * self.packet_bytes
        wait_s = max(0.0, ack.next_departure_s - ack.now_s)
        return max(0.0, in_flight - self.bandwidth.value * wait_s)

    def _save_window(self) -> None:
        """The last window that neither recovery nor ProbeRTT had cut."""
        whole = not self._was_in_recovery and self.state != "probe_rtt"
        self._prior_window = (
            self.window_bytes if whole else max(self._prior_window, self.window_bytes)
        )
