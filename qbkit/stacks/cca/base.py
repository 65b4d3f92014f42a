"""What all controllers here share, and what connections ask them beyond aioquic's interface."""

from __future__ import annotations

from collections.abc import Iterable

from aioquic.quic.congestion.base import QuicCongestionControl
from aioquic.quic.packet_builder import QuicSentPacket
from aioquic.quic.recovery import QuicPacketPacer

from .knobs import Knobs


class Controller(QuicCongestionControl):
    """Counts what is in flight and lost; windows are in bytes."""

    pacer: QuicPacketPacer | None = None
    """In place of aioquic's."""
    state = ""
    """For telemetry; "" where slow start threshold and recovery tell it."""

    def __init__(self, knobs: Knobs, *, max_datagram_size: int) -> None:
        super().__init__(max_datagram_size=max_datagram_size)
        self._packet_bytes = max_datagram_size
        self.congestion_window = knobs.initial_window_packets * max_datagram_size
        self.lost_packets = 0

    def on_packet_sent(self, *, packet: QuicSentPacket) -> None:
        """It is in flight now."""
        self.bytes_in_flight += packet.sent_bytes

    def on_packet_acked(self, *, now: float, packet: QuicSentPacket) -> None:
        """It is in flight no more."""
        self.bytes_in_flight -= packet.sent_bytes

    def on_packets_lost(self, *, now: float, packets: Iterable[QuicSentPacket]) -> None:
        """Neither are these."""
        for packet in packets:
            self.bytes_in_flight -= packet.sent_bytes
            self.lost_packets += 1

    def on_packets_expired(self, *, packets: Iterable[QuicSentPacket]) -> None:
        """Of a space that is discarded, or sent again by a probe: not known to be lost."""
        for packet in packets:
            self.bytes_in_flight -= packet.sent_bytes

    def on_ack_end(self, *, now: float) -> None:
        """All packets that one ACK acknowledges, and those that it shows lost, were reported."""

    def on_app_limited(self) -> None:
        """There was nothing to send though window and pacer allowed it."""


def sent_s(packet: QuicSentPacket) -> float:
    """When it was sent: what controllers see has been."""
    assert packet.sent_time is not None
    return packet.sent_time
