"""The receiving end: a QUIC server that counts the bytes of one connection."""

from __future__ import annotations

import select
import socket
import time
from pathlib import Path

from aioquic.buffer import Buffer
from aioquic.quic.configuration import SMALLEST_MAX_DATAGRAM_SIZE, QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamDataReceived
from aioquic.quic.packet import QuicPacketType, pull_quic_header

from .connection import Connection
from .ends import end_of, write_end
from .failure import FlowFailed
from .link import MAX_DATAGRAM_BYTES, Address, Link, open_socket, parse_address
from .qlog import StreamingLogger
from .settings import configuration
from .signals import StopSignal

ROW_NS = 100_000_000
BUFFER_BYTES = 1 << 17
HEADER_BYTES = 8
"""The perf protocol's first field, which is not part of the upload."""


class Counter:
    """Writes the upload's bytes as rows of ``receiver.csv``."""

    def __init__(self, out: str) -> None:
        self._file = (Path(out) / "receiver.csv").open("w", buffering=BUFFER_BYTES)
        self._file.write("time_ns,bytes\n")
        self._stream_bytes = 0
        self._next_ns = 0

    def add(self, size_bytes: int) -> None:
        """Count bytes; write a row about every 100 ms."""
        self._stream_bytes += size_bytes
        now_ns = time.time_ns()
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + ROW_NS
            self._write_row(now_ns)

    def close(self) -> None:
        """Write the last row and close."""
        self._write_row(time.time_ns())
        self._file.close()

    def _write_row(self, now_ns: int) -> None:
        self._file.write(f"{now_ns},{max(0, self._stream_bytes - HEADER_BYTES)}\n")


def receive(address: str, cert: str, key: str, out: str, qlog: bool, stop: StopSignal) -> None:
    """Receive one connection; return on the stop signal."""
    settings = configuration(out, qlog, is_client=False)
    settings.load_cert_chain(cert, key)
    counter = Counter(out)
    sock = open_socket()
    try:
        sock.bind(parse_address(address))
    except OSError as error:
        raise FlowFailed(f"cannot listen on {address}: {error.strerror}") from None
    print("ready", flush=True)
    accepted = _accept(sock, settings, stop)
    if accepted:
        _count(sock, *accepted, counter, stop)
        report = end_of(accepted[0], "receiver")
        if report and not stop:
            write_end(report, out, "receiver")
    counter.close()
    if isinstance(settings.quic_logger, StreamingLogger):
        settings.quic_logger.close()
    while not stop:
        select.select([stop.fileno()], [], [])


def _accept(
    sock: socket.socket, settings: QuicConfiguration, stop: StopSignal
) -> tuple[Connection, Address] | None:
    """The connection that the first Initial packet opens; None on the stop signal."""
    while not stop:
        if sock.fileno() not in select.select([sock.fileno(), stop.fileno()], [], [])[0]:
            continue
        data, peer = sock.recvfrom(MAX_DATAGRAM_BYTES)
        try:
            header = pull_quic_header(Buffer(data=data), settings.connection_id_length)
        except ValueError:
            continue
        is_initial = header.packet_type == QuicPacketType.INITIAL
        if not is_initial or len(data) < SMALLEST_MAX_DATAGRAM_SIZE:
            continue
        first = header.destination_cid
        connection = Connection(configuration=settings, original_destination_connection_id=first)
        connection.receive_datagram(data, peer, now=time.monotonic())
        return connection, peer
    return None


def _count(
    sock: socket.socket,
    connection: Connection,
    peer: Address,
    counter: Counter,
    stop: StopSignal,
) -> None:
    """Count until the connection ends, or the stop signal comes."""
    sock.connect(peer)
    link = Link(sock, connection, peer, stop)
    try:
        while not stop:
            for event in link.turn():
                if isinstance(event, ConnectionTerminated):
                    return
                if isinstance(event, StreamDataReceived):
                    counter.add(len(event.data))
                    if event.end_stream:  # answer with our end of stream
                        connection.send_stream_data(event.stream_id, b"", end_stream=True)
        connection.close()
        link.transmit()
    except ConnectionRefusedError:
        return  # the sender is gone
