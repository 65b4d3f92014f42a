"""BBR, version 1: draft-cardwell-iccrg-bbr-congestion-control-00, with what Linux's does beyond it.

Beyond the draft, as Linux: pacing 1 % below the bandwidth, the window for aggregated ACKs, and the
quantization budget. Not as Linux: no detection of policers (the draft has none).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from aioquic.quic.packet_builder import QuicSentPacket
from aioquic.tls import Epoch

from .base import Controller
from .cycle import GAINS, GainCycle
from .episode import LossEpisode
from .filters import ExtraAcked, FullPipe, MinRtt, WindowedMax
from .knobs import Knobs
from .pacer import RatePacer
from .rate import DeliveryRate, Sample

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

    def __init__(self, knobs: Knobs, *, max_datagram_size: int) -> None:
        super().__init__(knobs, max_datagram_size=max_datagram_size)
        self.pacer: RatePacer = RatePacer(max_datagram_size=max_datagram_size)
        self.state = "startup"
        self.bandwidth = WindowedMax(BANDWIDTH_ROUNDS)
        """Bytes/s."""
        self.min_rtt = MinRtt()
        self._rate = DeliveryRate()
        self._full = FullPipe()
        self._extra = ExtraAcked()
        self._scale = knobs.pacing_gain_percent / 100
        self._first_rtt_s = knobs.first_rtt_ms and knobs.first_rtt_ms / 1e3
        self._rtt_s: float | None = None
        self._had_rtt = False
        self._window = float(self.congestion_window)
        self._set_pacing(self._window / 0.001 * HIGH_GAIN)
        self._rounds = 0
        self._round_start = False
        self._round_end_bytes = 0
        self._cycle = GainCycle()
        self._probe_rtt_end_s: float | None = None
        self._probe_rtt_round_done = False
        self._prior_window = 0.0
        self._prior_in_flight: int | None = None
        self._lost_bytes = 0
        self._recovery = LossEpisode()
        self._was_in_recovery = self._conserving = False

    # What happens to packets

    def on_packet_sent(self, *, packet: QuicSentPacket) -> None:
        """Packets of the handshake are no data: the model is not to know them."""
        if packet.epoch is Epoch.ONE_RTT:
            self._rate.on_sent(packet, self.bytes_in_flight)
        super().on_packet_sent(packet=packet)

    def on_packet_acked(self, *, now: float, packet: QuicSentPacket) -> None:
        """What an ACK does is done at its end, in `on_ack_end`."""
        if self._prior_in_flight is None:
            self._prior_in_flight = self.bytes_in_flight
        super().on_packet_acked(now=now, packet=packet)
        self._rate.on_acked(packet, now)
        self._recovery.on_acked(packet)

    def on_packets_lost(self, *, now: float, packets: Iterable[QuicSentPacket]) -> None:
        """The first of them begins recovery."""
        lost = list(packets)
        super().on_packets_lost(now=now, packets=lost)
        self._lost_bytes += sum(packet.sent_bytes for packet in lost)
        self._forget(lost)
        if not self._recovery:
            self._save_window()
        self._recovery.on_lost(lost, now)

    def on_packets_expired(self, *, packets: Iterable[QuicSentPacket]) -> None:
        """No loss to BBR either."""
        expired = list(packets)
        super().on_packets_expired(packets=expired)
        self._forget(expired)

    def on_persistent_congestion(self) -> None:
        """The draft's retransmission timeout: one packet, and from there up to what was before."""
        self._window = float(self._packet_bytes)
        self.congestion_window = self._packet_bytes

    def on_rtt_measurement(self, *, now: float, rtt: float) -> None:
        """Keep it until the ACK's end; the first sets the pace of Startup."""
        if not self._had_rtt:
            self._had_rtt = True
            rtt = self._first_rtt_s or rtt
            self.min_rtt.update(rtt, now)
            self._set_pacing(self._window / rtt * HIGH_GAIN)
        else:
            self._rtt_s = rtt

    def on_app_limited(self) -> None:
        """Samples of now do not lower the model."""
        self._rate.limit(self.bytes_in_flight)

    def on_ack_end(self, *, now: float) -> None:
        """Update the model, then what is sent by it."""
        sample, rtt_s = self._rate.take(), self._rtt_s
        prior_in_flight = self._prior_in_flight or 0
        self._rtt_s = self._prior_in_flight = None
        if sample is None:
            return
        self._update_bandwidth(sample)
        self._extra.update(
            sample.acked_bytes, self.bandwidth.value, self._window, self._round_start, now
        )
        self._update_cycle(now, prior_in_flight)
        self._check_full_pipe(sample, now)
        self._update_min_rtt(rtt_s, now)
        self._update_pacing()
        self._update_window(sample.acked_bytes)
        self._lost_bytes = 0

    # The model

    def _update_bandwidth(self, sample: Sample) -> None:
        """Rounds are counted by packets: one ends when what was sent after its start arrives."""
        self._round_start = False
        if sample.interval_s < self.min_rtt.value_s:
            return  # by a late ACK of a packet thought lost: it would tell too much
        if sample.prior_delivered_bytes >= self._round_end_bytes:
            self._round_end_bytes = self._rate.delivered_bytes
            self._rounds += 1
            self._round_start = True
            self._conserving = False
        if not sample.app_limited or sample.bytes_per_s >= self.bandwidth.value:
            self.bandwidth.update(self._rounds, sample.bytes_per_s)

    def _check_full_pipe(self, sample: Sample, now: float) -> None:
        """Startup → Drain → ProbeBW."""
        if self._round_start and not sample.app_limited:
            self._full.update(self.bandwidth.value)
        if self.state == "startup" and self._full.reached:
            self.state = "drain"
        in_flight = self._at_departure(self.bytes_in_flight, now)
        if self.state == "drain" and in_flight <= self._target(1):
            self._enter_probe_bw(now)

    def _update_min_rtt(self, rtt_s: float | None, now: float) -> None:
        """ProbeRTT: four packets in flight for a round, and 200 ms, when the minimum is old."""
        expired = self.min_rtt.update(rtt_s, now)
        if expired and self.state != "probe_rtt":
            self._save_window()
            self.state = "probe_rtt"
            self._probe_rtt_end_s = None
        if self.state != "probe_rtt":
            return
        self._rate.limit(self.bytes_in_flight)
        if self._probe_rtt_end_s is None:
            if self.bytes_in_flight <= MIN_WINDOW_PACKETS * self._packet_bytes:
                self._probe_rtt_end_s = now + PROBE_RTT_S
                self._probe_rtt_round_done = False
                self._round_end_bytes = self._rate.delivered_bytes
            return
        self._probe_rtt_round_done |= self._round_start
        if self._probe_rtt_round_done and now > self._probe_rtt_end_s:
            self._leave_probe_rtt(now)

    def _leave_probe_rtt(self, now: float) -> None:
        self.min_rtt.found_s = now
        self._window = max(self._window, self._prior_window)
        if self._full.reached:
            self._enter_probe_bw(now)
        else:
            self.state = "startup"

    def _enter_probe_bw(self, now: float) -> None:
        self.state = "probe_bw"
        self._cycle.begin(now)

    def _update_cycle(self, now: float, prior_in_flight: int) -> None:
        if self.state == "probe_bw":
            self._cycle.update(
                now,
                min_rtt_s=self.min_rtt.value_s,
                has_lost=self._lost_bytes > 0,
                in_flight=self._at_departure(prior_in_flight, now),
                target=self._target,
            )

    # What is sent by the model

    @property
    def pacing_gain(self) -> float:
        """Of the bandwidth, before the knob scales it."""
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
        if self._full.reached or rate * self._scale * MARGIN > self.pacer.rate_bytes_per_s:
            self._set_pacing(rate)

    def _set_pacing(self, rate_bytes_per_s: float) -> None:
        self.pacer.rate_bytes_per_s = rate_bytes_per_s * self._scale * MARGIN

    def _update_window(self, acked_bytes: int) -> None:
        """Toward the target by what is acknowledged; in recovery's first round, as it drains."""
        window = max(self._window - self._lost_bytes, self._packet_bytes)
        in_recovery = bool(self._recovery)
        if in_recovery and not self._was_in_recovery:
            self._conserving = True
            self._round_end_bytes = self._rate.delivered_bytes
            window = self.bytes_in_flight + acked_bytes
        elif self._was_in_recovery and not in_recovery:
            self._conserving = False
            window = max(window, self._prior_window)
        self._was_in_recovery = in_recovery
        if self._conserving:
            window = max(window, self.bytes_in_flight + acked_bytes)
        else:
            window = self._toward_target(window, acked_bytes)
        least = MIN_WINDOW_PACKETS * self._packet_bytes
        self._window = min(window, least) if self.state == "probe_rtt" else window
        self.congestion_window = int(self._window)

    def _toward_target(self, window: float, acked_bytes: int) -> float:
        target = self._target(self.window_gain, self._aggregation())
        if self._full.reached:
            window = min(window + acked_bytes, target)
        elif (
            window < target
            or self._rate.delivered_bytes < INITIAL_WINDOW_PACKETS * self._packet_bytes
        ):
            window += acked_bytes
        return max(window, MIN_WINDOW_PACKETS * self._packet_bytes)

    def _target(self, gain: float, more_bytes: float = 0.0) -> float:
        """Bytes in flight at that gain, and enough for the bursts of both ends."""
        if not math.isfinite(self.min_rtt.value_s):
            return INITIAL_WINDOW_PACKETS * self._packet_bytes
        product = gain * self.bandwidth.value * self.min_rtt.value_s + more_bytes
        packets = math.ceil(product / self._packet_bytes) + 3 * self._burst_packets()
        packets += packets % 2
        if self.state == "probe_bw" and self._cycle.gain > 1:
            packets += 2
        return packets * self._packet_bytes

    def _aggregation(self) -> float:
        """Bytes; at most those of 100 ms."""
        if not self._full.reached:
            return 0.0
        return min(self._extra.value_bytes, 0.1 * self.bandwidth.value)

    def _burst_packets(self) -> int:
        rate = self.pacer.rate_bytes_per_s
        least = 1 if rate < LOW_RATE_BYTES_PER_S else 2
        return max(int(rate * BURST_S / self._packet_bytes), least)

    def _at_departure(self, in_flight: int, now: float) -> float:
        """What will be in flight when the next packet may go."""
        if self.pacing_gain > 1:
            in_flight += self._burst_packets() * self._packet_bytes
        wait_s = max(0.0, self.pacer.next_s - now)
        return max(0.0, in_flight - self.bandwidth.value * wait_s)

    def _save_window(self) -> None:
        """The last window that neither recovery nor ProbeRTT had cut."""
        whole = not self._was_in_recovery and self.state != "probe_rtt"
        self._prior_window = self._window if whole else max(self._prior_window, self._window)

    def _forget(self, packets: Iterable[QuicSentPacket]) -> None:
        for packet in packets:
            self._rate.on_gone(packet)
