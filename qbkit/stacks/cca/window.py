"""What CUBIC and Reno share: slow start, one cut a round trip, N emulated flows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from aioquic.quic.congestion.base import K_MINIMUM_WINDOW
from aioquic.quic.packet_builder import QuicSentPacket

from .base import Controller, sent_s
from .hystart import HyStart
from .knobs import Knobs
from .pacer import NoPacer


class WindowController(Controller):
    """RFC 9002, section 7, with HyStart.

    N emulated flows share a loss: one of them backs off to β, so that (N − 1 + β)/N is left
    (chromium's ``tcp_cubic_sender_bytes``).
    """

    one_flow_beta: float
    """β of one flow where no knob sets it."""

    def __init__(self, knobs: Knobs, *, max_datagram_size: int) -> None:
        super().__init__(knobs, max_datagram_size=max_datagram_size)
        self.flows = knobs.emulated_flows
        one = self.one_flow_beta if knobs.beta is None else knobs.beta
        self.beta = emulated_beta(self.flows, one)
        if not knobs.pacing:
            self.pacer = NoPacer(max_datagram_size=max_datagram_size)
        self._hystart = HyStart() if knobs.hystart else None
        self._window = float(self.congestion_window)
        self._congestion_recovery_start_time = 0.0  # aioquic's name: the driver's telemetry asks it

    def on_packet_acked(self, *, now: float, packet: QuicSentPacket) -> None:
        """Grow, but not by what was sent before the last cut."""
        super().on_packet_acked(now=now, packet=packet)
        if sent_s(packet) <= self._congestion_recovery_start_time:
            return
        if self.ssthresh is None or self._window < self.ssthresh:
            self._window += packet.sent_bytes
            if self._hystart:
                self._hystart.on_acked(packet, now)
        else:
            self._window = self._grown(packet.sent_bytes, now)
        self.congestion_window = int(self._window)

    def on_packets_lost(self, *, now: float, packets: Iterable[QuicSentPacket]) -> None:
        """Cut the window, if one of them was sent after the last cut."""
        lost = list(packets)
        super().on_packets_lost(now=now, packets=lost)
        if max(map(sent_s, lost)) <= self._congestion_recovery_start_time:
            return
        self._congestion_recovery_start_time = now
        self._before_cut()
        self._set_window(max(self._window * self.beta, K_MINIMUM_WINDOW * self._packet_bytes))
        self.ssthresh = self.congestion_window

    def on_persistent_congestion(self) -> None:
        """RFC 9002, section 7.6.2: slow start again, from the least window."""
        self._set_window(K_MINIMUM_WINDOW * self._packet_bytes)
        self._congestion_recovery_start_time = 0.0

    def on_rtt_measurement(self, *, now: float, rtt: float) -> None:
        """HyStart: leave slow start when the round trip grows."""
        window_packets = self._window / self._packet_bytes
        if self.ssthresh is None and self._hystart and self._hystart.is_over(rtt, window_packets):
            self.ssthresh = self.congestion_window

    def _set_window(self, window_bytes: float) -> None:
        self._window = float(window_bytes)
        self.congestion_window = int(window_bytes)

    @abstractmethod
    def _grown(self, acked_bytes: int, now: float) -> float:
        """The window in congestion avoidance after an ACK."""

    def _before_cut(self) -> None:
        """Note what is needed of the window that a loss is about to cut."""


def emulated_beta(flows: int, beta: float) -> float:
    """What a loss leaves of the window of so many flows, one of which backs off to β."""
    return (flows - 1 + beta) / flows
