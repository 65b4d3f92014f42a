"""The sending end: a QUIC client that uploads as fast as its controller allows."""

from __future__ import annotations

import math
import ssl
import time

from aioquic.quic import recovery  # noqa: F401 (fills the registry of controllers)
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.congestion import base
from aioquic.quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    StreamDataReceived,
)

from .connection import Connection
from .ends import ConnectionLost, end_of
from .failure import FlowFailed
from .link import Link, open_socket, parse_address
from .qlog import StreamingLogger
from .settings import SERVER_NAME, configuration
from .signals import StopSignal
from .telemetry import Telemetry

CONNECT_S = 10.0
CHUNK_BYTES = 256 << 10
"""Size of a write, when less is unsent. From 64 KiB to 1 MiB the cost of a byte is the same."""
WANTED_BACK = bytes(8)
"""The perf protocol begins with the number of bytes that the server must send."""


class Upload:
    """A stream that is kept filled."""

    def __init__(self, connection: Connection, size_bytes: int | None) -> None:
        self._connection = connection
        self._chunk = bytes(CHUNK_BYTES)
        self._left: float = math.inf if size_bytes is None else size_bytes
        self._id = connection.get_next_available_stream_id()
        connection.send_stream_data(self._id, WANTED_BACK, end_stream=self._left == 0)
        self._sender = connection._streams[self._id].sender

    def fill(self) -> None:
        """Write until a chunk is unsent."""
        while self._left and self._unsent_bytes() < CHUNK_BYTES:
            size = int(min(self._left, CHUNK_BYTES))
            self._left -= size
            data = self._chunk if size == CHUNK_BYTES else self._chunk[:size]
            self._connection.send_stream_data(self._id, data, end_stream=self._left == 0)

    def _unsent_bytes(self) -> int:
        return self._sender._buffer_stop - self._sender.highest_offset


def send(
    address: str,
    controller: str,
    out: str,
    qlog: bool,
    stop: StopSignal,
    *,
    duration_s: float | None,
    size_bytes: int | None,
) -> None:
    """Connect, send for a duration or a number of bytes, close; raises FlowFailed."""
    start_s = time.monotonic()
    peer = parse_address(address)
    settings = _settings(controller, out, qlog)
    connection = Connection(configuration=settings)
    telemetry = Telemetry(out, connection)
    end_s = math.inf if duration_s is None else start_s + duration_s
    try:
        with open_socket() as sock:
            sock.connect(peer)
            connection.connect(peer, now=time.monotonic())
            link = Link(sock, connection, peer, stop)
            _connect(link, address, start_s + CONNECT_S, stop)
            _upload(link, Upload(connection, size_bytes), telemetry, end_s, stop)
            connection.close()
            link.transmit()
    except ConnectionRefusedError:
        raise FlowFailed(f"nobody listens on {address} any more") from None
    finally:
        telemetry.close()
        if isinstance(settings.quic_logger, StreamingLogger):
            settings.quic_logger.close()


def _settings(controller: str, out: str, qlog: bool) -> QuicConfiguration:
    """A client that trusts any receiver."""
    if controller not in base._factories:
        known = ", ".join(sorted(base._factories))
        raise FlowFailed(f"aioquic has no congestion controller {controller}; it has {known}")
    return configuration(
        out,
        qlog,
        is_client=True,
        congestion_control_algorithm=controller,
        server_name=SERVER_NAME,
        verify_mode=ssl.CERT_NONE,
    )


def _connect(link: Link, address: str, until_s: float, stop: StopSignal) -> None:
    """Wait until the handshake is complete."""
    while not stop:
        try:
            events = link.turn(until_s)
        except ConnectionRefusedError:
            raise FlowFailed(f"cannot connect to {address}: nobody listens there") from None
        for event in events:
            if isinstance(event, HandshakeCompleted):
                return
            if isinstance(event, ConnectionTerminated):
                reason = event.reason_phrase or f"error 0x{event.error_code:x}"
                raise FlowFailed(f"cannot connect to {address}: {reason}")
        if link.now_s >= until_s:
            raise FlowFailed(f"cannot connect to {address} within {CONNECT_S:g} s")


def _upload(
    link: Link, upload: Upload, telemetry: Telemetry, end_s: float, stop: StopSignal
) -> None:
    """Upload until the time is over, or the receiver answers the stream's end with its own."""
    while not stop and link.now_s < end_s:
        upload.fill()
        events = link.turn(end_s)
        telemetry.sample(link.now_s)
        if any(isinstance(event, StreamDataReceived) and event.end_stream for event in events):
            return
        check(link)


def check(link: Link) -> None:
    """Raise ConnectionLost if the connection has ended."""
    report = end_of(link.connection, "sender")
    if report:
        link.transmit()  # the packet that closes it, if this end did
        raise ConnectionLost(report)
