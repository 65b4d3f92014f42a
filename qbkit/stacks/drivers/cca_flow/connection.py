"""aioquic's connection and recovery, as a controller of `qbkit.cca` needs them.

aioquic has no interface for any of this; what it is made of is reached by subclasses.
"""

from __future__ import annotations

from typing import Any, cast

from aioquic.buffer import Buffer
from aioquic.quic import connection, packet_builder
from aioquic.quic.connection import NetworkAddress
from aioquic.quic.rangeset import RangeSet
from aioquic.quic.recovery import QuicPacketRecovery, QuicPacketSpace
from aioquic.tls import Epoch
from aioquic_flow.connection import Connection

from qbkit.cca.flight import RttEstimate

from . import arrivals
from .adapter import Adapter, Pacer
from .ecn import EcnSocket
from .spurious import LostPackets

MAX_ACK_DELAY_S = 0.025
"""What aioquic announces to its peer (RFC 9000, section 18.2: the default)."""


class Recovery(QuicPacketRecovery):
    """Reports whole ACKs, timeouts and spurious losses to the controller; asks its pacer."""

    _cc: Adapter

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._packet_bytes = settings["max_datagram_size"]
        self._pacer: Pacer = Pacer(self._cc.controller)
        self._lost = LostPackets()

    @property
    def congestion_window(self) -> int:
        """So that whole packets fit: aioquic would fill the rest of a window with a short one."""
        free = self._cc.congestion_window - self._cc.bytes_in_flight
        return self._cc.bytes_in_flight + free // self._packet_bytes * self._packet_bytes

    def on_ack_received(
        self, *, ack_rangeset: RangeSet, now: float, space: QuicPacketSpace, **ack: Any
    ) -> None:
        """As aioquic does it; then the controller hears of all that the ACK shows."""
        spurious = self._lost.found_in(ack_rangeset) if space.is_application_data else []
        super().on_ack_received(ack_rangeset=ack_rangeset, now=now, space=space, **ack)
        sample_s, self._cc.rtt_sample_s = self._cc.rtt_sample_s, None
        rtt = RttEstimate(sample_s, self._rtt_smoothed, self._rtt_min)
        self._cc.end_ack(now, rtt, spurious=spurious, next_departure_s=self._pacer.next_s)
        self._decided()

    def on_loss_detection_timeout(self, *, now: float) -> None:
        """As aioquic does it: losses by time, or else a probe timeout."""
        before = self._pto_count
        super().on_loss_detection_timeout(now=now)
        if self._pto_count > before:
            self._cc.flight.on_timeout(now, self._pto_count)
        self._cc.flight.end_losses(now)
        self._decided()

    def _on_packets_lost(self, *, packets: Any, space: QuicPacketSpace, **loss: Any) -> None:
        """Remember those of the application, whose ACK may still come."""
        lost = list(packets)
        if space.is_application_data:
            self._lost.add(lost)
        super()._on_packets_lost(packets=lost, space=space, **loss)

    def _decided(self) -> None:
        self._cc.update()
        if self._rtt_initialized:
            self._pacer.update_rate(self._cc.congestion_window, self._rtt_smoothed)


class SendingConnection(Connection):
    """Reports to its controller when it has nothing to send; requests what the controller uses."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        handler = (self._handle_arrivals, frozenset((Epoch.ONE_RTT,)))
        self._QuicConnection__frame_handlers[arrivals.EXTENSION] = handler

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, NetworkAddress]]:
        """As aioquic does it; what the pacer or the window did not hold back, was not there."""
        datagrams = super().datagrams_to_send(now)
        free = self._loss.congestion_window - self._adapter.bytes_in_flight
        if self._pacing_at is None and free > 0:
            self._adapter.flight.on_app_limited(now)
            self._adapter.update()
        elif not self._adapter.bytes_in_flight and free <= 0 and self._has_data:
            raise self._adapter.guard.never_sends(self._adapter.controller)
        return datagrams

    @property
    def _has_data(self) -> bool:
        streams = self._streams.values()
        return not self._handshake_complete or any(not s.sender.buffer_is_empty for s in streams)

    @property
    def _adapter(self) -> Adapter:
        return cast(Adapter, self._loss._cc)

    def _serialize_transport_parameters(self) -> bytes:
        """With our own, if the controller uses what it asks for."""
        parameters = super()._serialize_transport_parameters()
        return parameters + arrivals.parameter(type(self._adapter.controller))

    def _handle_arrivals(self, context: Any, frame_type: int, buffer: Buffer) -> None:
        """Keep it for the ACK that follows."""
        self._adapter.on_report(arrivals.read(buffer))
        if context.quic_logger_frames is not None:
            context.quic_logger_frames.append(arrivals.QLOG)


class ReceivingConnection(Connection):
    """Acknowledges every ``ack_every_packets``, gaps at once, and the last within 25 ms.

    RFC 9000, sections 13.2.1 and 13.2.2. aioquic itself answers a millisecond after the first.
    """

    def __init__(self, *, ack_every_packets: int, ecn: EcnCounter, **settings: Any) -> None:
        super().__init__(**settings)
        self._ecn = ecn
        self._wants = 0
        self._arrivals: arrivals.ArrivalTimes | None = None
        self._ack_every_packets = ack_every_packets
        self._waiting_packets = 0
        self._ack_by_s = 0.0

    def receive_datagram(self, data: bytes, addr: NetworkAddress, now: float) -> None:
        """As aioquic does it, but for the time of the next ACK."""
        space = self._spaces.get(Epoch.ONE_RTT)
        expected = space.largest_received_packet + 1 if space else 0
        if space is None or space.ack_at is None:
            self._waiting_packets = 0
            self._ack_by_s = now + MAX_ACK_DELAY_S
        if self._arrivals is not None:
            self._arrivals.now_s = now
        super().receive_datagram(data, addr, now)
        space = self._spaces.get(Epoch.ONE_RTT)
        if space is None or space.ack_at is None:
            return
        self._waiting_packets += 1
        in_order = space.largest_received_packet == expected
        due = self._waiting_packets >= self._ack_every_packets or not in_order
        space.ack_at = now if due else self._ack_by_s

    def _parse_transport_parameters(self, data: bytes, **more: Any) -> None:
        """As aioquic does it, and ours."""
        super()._parse_transport_parameters(data, **more)
        self._wants = arrivals.wanted(data)
        if self._wants:
            self._arrivals = arrivals.ArrivalTimes()
            self._spaces[Epoch.ONE_RTT].received_packets = self._arrivals
        if self._wants & arrivals.WANTS_ECN:
            self._ecn.count()

    def _write_ack_frame(
        self, builder: packet_builder.QuicPacketBuilder, space: QuicPacketSpace, now: float
    ) -> None:
        """Write the frame that the sender asked for, then the ACK frame."""
        if self._arrivals is not None and space.is_application_data:
            arrived = self._arrivals.take() if self._wants & arrivals.WANTS_ARRIVALS else ()
            frame = arrivals.write(arrivals.Report(self._ecn.ce_count, arrived))
            builder.start_frame(arrivals.EXTENSION, capacity=len(frame)).push_bytes(frame)
            if self._quic_logger is not None:
                builder.quic_logger_frames.append(arrivals.QLOG)
        super()._write_ack_frame(builder, space, now)


class EcnCounter:
    """Counts CE marks on the socket that the driver opens."""

    def __init__(self) -> None:
        self.socket: EcnSocket | None = None

    def count(self) -> None:
        """From now on."""
        if self.socket:
            self.socket.count()

    @property
    def ce_count(self) -> int:
        """So far."""
        return self.socket.ce_count if self.socket else 0


def install_recovery() -> None:
    """Connections that are made from now on recover so."""
    connection.QuicPacketRecovery = Recovery  # type: ignore[misc]


def install_extension() -> None:
    """Our frame elicits no ACK, and does not count as in flight."""
    for module in (connection, packet_builder):
        module.NON_ACK_ELICITING_FRAME_TYPES |= {arrivals.EXTENSION}
    packet_builder.NON_IN_FLIGHT_FRAME_TYPES |= {arrivals.EXTENSION}
