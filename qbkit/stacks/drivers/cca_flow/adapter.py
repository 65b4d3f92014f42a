"""Adapts a controller of `qbkit.cca` to aioquic's interfaces of controllers and pacers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from aioquic.quic.congestion.base import QuicCongestionControl
from aioquic.quic.packet_builder import QuicSentPacket
from aioquic.quic.recovery import QuicPacketPacer
from aioquic.tls import Epoch

from qbkit.cca.controller import Controller
from qbkit.cca.flight import Flight, InFlight, RttEstimate
from qbkit.cca.pacing import Departures

from .arrivals import Report
from .guard import Guard


class Adapter(QuicCongestionControl):
    """Reports what aioquic says of packets to a `Flight`, and shows aioquic the window."""

    def __init__(self, controller: Controller, guard: Guard) -> None:
        super().__init__(max_datagram_size=controller.packet_bytes)
        self.controller = controller
        self.guard = guard
        self.flight = Flight(controller)
        self.rtt_sample_s: float | None = None
        """Of the ACK being read."""
        self._arrivals_s: dict[int, float] = {}
        self._ce_count = self._new_ce_packets = 0
        self._update()

    def on_packet_sent(self, *, packet: QuicSentPacket) -> None:
        """It is in flight now."""
        assert packet.sent_time is not None
        is_handshake = packet.epoch is not Epoch.ONE_RTT
        packet.in_flight_record = self.flight.on_sent(  # type: ignore[attr-defined]
            packet.sent_bytes, packet.sent_time, is_handshake=is_handshake
        )
        self._update()

    def on_packet_acked(self, *, now: float, packet: QuicSentPacket) -> None:
        """Keep it; the controller gets it when the whole ACK has been read."""
        record, delay_s = _record(packet), None
        if self._arrivals_s and packet.epoch is Epoch.ONE_RTT:
            arrival_s = self._arrivals_s.get(packet.packet_number)
            delay_s = None if arrival_s is None else arrival_s - record.packet.sent_s
        self.flight.on_acked(record, now, delay_s)
        self._update()

    def on_packets_lost(self, *, now: float, packets: Iterable[QuicSentPacket]) -> None:
        """Likewise, or when the loss timer has been handled."""
        for packet in packets:
            self.flight.on_lost(_record(packet), now)
        self._update()

    def on_packets_expired(self, *, packets: Iterable[QuicSentPacket]) -> None:
        """Of a space that is discarded, or sent again by a probe: not known to be lost."""
        for packet in packets:
            self.flight.on_expired(_record(packet))
        self._update()

    def on_persistent_congestion(self) -> None:
        """By the losses just reported."""
        self.flight.on_persistent_congestion()

    def on_rtt_measurement(self, *, now: float, rtt: float) -> None:
        """Keep it until the ACK has been read."""
        self.rtt_sample_s = rtt

    def on_report(self, report: Report) -> None:
        """It belongs to the ACK that follows."""
        if self.controller.uses_one_way_delay:
            self._arrivals_s = {number: at_us / 1e6 for number, at_us in report.arrivals}
        self._new_ce_packets += max(0, report.ce_count - self._ce_count)
        self._ce_count = max(self._ce_count, report.ce_count)

    def end_ack(self, now: float, rtt: RttEstimate, **more: Any) -> None:
        """One ACK frame has been read."""
        ce_packets, self._new_ce_packets = self._new_ce_packets, 0
        self.flight.end_ack(now, rtt, ecn_ce_packets=ce_packets, **more)
        self._arrivals_s = {}

    def update(self) -> None:
        """Show aioquic what the controller decided."""
        self._update()

    def _update(self) -> None:
        self.guard.check(self.controller)
        self.bytes_in_flight = self.flight.bytes_in_flight
        self.congestion_window = int(self.controller.window_bytes)


def _record(packet: QuicSentPacket) -> InFlight:
    record: InFlight = packet.in_flight_record  # type: ignore[attr-defined]
    return record


class Pacer(QuicPacketPacer):
    """aioquic's own at the window over the RTT, unless the controller sets a rate."""

    def __init__(self, controller: Controller) -> None:
        super().__init__(max_datagram_size=controller.packet_bytes)
        self._controller = controller
        self._departures = Departures(controller.packet_bytes)

    @property
    def rate_bytes_per_s(self) -> float:
        """Infinite where nothing is held back."""
        rate = self._controller.pacing_rate_bytes_per_s
        if rate is not None:
            return rate
        return self._max_datagram_size / self.packet_time if self.packet_time else math.inf

    @property
    def next_s(self) -> float:
        """When a set rate lets the next packet go."""
        return self._departures.next_s

    def update_rate(self, congestion_window: int, smoothed_rtt: float) -> None:
        """aioquic divides by the window."""
        if congestion_window:
            super().update_rate(congestion_window, smoothed_rtt)

    def next_send_time(self, now: float) -> float | None:  # type: ignore[override]
        """None: at once."""
        rate = self._controller.pacing_rate_bytes_per_s
        if rate is None:
            return super().next_send_time(now)
        if math.isinf(rate) or self.next_s <= now:
            return None
        return self.next_s

    def update_after_send(self, now: float) -> None:
        """One packet goes."""
        rate = self._controller.pacing_rate_bytes_per_s
        if rate is None:
            super().update_after_send(now)
        else:
            self._departures.on_sent(now, rate)
