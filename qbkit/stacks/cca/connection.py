"""aioquic's connection and recovery, as the controllers here need them.

aioquic has no interface for any of this; what it is made of is reached by subclasses.
"""

from __future__ import annotations

from typing import Any, cast

from aioquic.quic import connection
from aioquic.quic.connection import NetworkAddress, QuicConnection
from aioquic.quic.recovery import QuicPacketRecovery
from aioquic.tls import Epoch

from .base import Controller

MAX_ACK_DELAY_S = 0.025
"""What aioquic tells its peer (RFC 9000, section 18.2: the default)."""


class Recovery(QuicPacketRecovery):
    """Tells a controller where an ACK ends, takes its pacer, and opens its window by packets."""

    _cc: Controller

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._packet_bytes = settings["max_datagram_size"]
        self._pacer = self._cc.pacer or self._pacer

    @property
    def congestion_window(self) -> int:
        """So that whole packets fit: aioquic would fill the rest of a window with a short one."""
        free = self._cc.congestion_window - self._cc.bytes_in_flight
        return self._cc.bytes_in_flight + free // self._packet_bytes * self._packet_bytes

    def on_ack_received(self, *, now: float, **ack: Any) -> None:
        """As aioquic does it, and then the ACK's end."""
        super().on_ack_received(now=now, **ack)
        self._cc.on_ack_end(now=now)


class SendingConnection(QuicConnection):
    """Tells its controller when it has nothing to send."""

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, NetworkAddress]]:
        """As aioquic does it; what the pacer or the window did not hold back, was not there."""
        datagrams = super().datagrams_to_send(now)
        controller = cast(Controller, self._loss._cc)
        free = self._loss.congestion_window - controller.bytes_in_flight
        if self._pacing_at is None and free > 0:
            controller.on_app_limited()
        return datagrams


class ReceivingConnection(QuicConnection):
    """Acknowledges every so many packets, gaps at once, and the last within 25 ms.

    RFC 9000, sections 13.2.1 and 13.2.2. aioquic itself answers a millisecond after the first.
    """

    def __init__(self, *, ack_every_packets: int, **settings: Any) -> None:
        super().__init__(**settings)
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
        super().receive_datagram(data, addr, now)
        space = self._spaces.get(Epoch.ONE_RTT)
        if space is None or space.ack_at is None:
            return
        self._waiting_packets += 1
        in_order = space.largest_received_packet == expected
        due = self._waiting_packets >= self._ack_every_packets or not in_order
        space.ack_at = now if due else self._ack_by_s


def install() -> None:
    """Connections that are made from now on recover so."""
    connection.QuicPacketRecovery = Recovery  # type: ignore[misc]
