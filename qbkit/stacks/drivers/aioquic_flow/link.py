"""A QUIC connection on a UDP socket: the loop that asyncio would run, without its overhead."""

from __future__ import annotations

import math
import select
import socket
import time
from contextlib import suppress

from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import QuicEvent

from .failure import FlowFailed
from .signals import StopSignal

Address = tuple[str, int]

SOCKET_BUFFER_BYTES = 4 << 20
MAX_DATAGRAM_BYTES = 65536
TIMER_RESOLUTION_S = 1e-6
"""A timer this near has fired, because the sum of two floats may miss it by a hair forever."""


def parse_address(text: str) -> Address:
    """Parse ``IP:PORT``; raises FlowFailed for anything else."""
    host, _, port = text.rpartition(":")
    try:
        socket.inet_aton(host)
        return host, int(port)
    except (OSError, ValueError):
        raise FlowFailed(f"{text} is not IP:PORT") from None


def open_socket() -> socket.socket:
    """A UDP socket whose buffers do not limit the flow, if the system permits it."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for plain, force in ((socket.SO_RCVBUF, 33), (socket.SO_SNDBUF, 32)):  # SO_*BUFFORCE
        try:
            sock.setsockopt(socket.SOL_SOCKET, force, SOCKET_BUFFER_BYTES)
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, plain, SOCKET_BUFFER_BYTES)
    return sock


class Link:
    """One connection on one connected socket.

    Timers wait for whole milliseconds, as in aioquic's asyncio server and client on Linux (epoll).
    There too the pacer sends in bursts of a millisecond.
    """

    def __init__(
        self, sock: socket.socket, connection: QuicConnection, peer: Address, stop: StopSignal
    ) -> None:
        self._sock = sock
        self.connection = connection
        self._peer = peer
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._poll.register(stop.fileno(), select.POLLIN)
        self.now_s = time.monotonic()
        """Time of the last turn, in the clock of `time.monotonic`."""

    def transmit(self) -> None:
        """Send the datagrams that the connection has now."""
        for datagram, _ in self.connection.datagrams_to_send(now=self.now_s):
            self._sock.send(datagram)

    def turn(self, until_s: float = math.inf) -> list[QuicEvent]:
        """Send, then wait for something to happen or the time ``until_s``; return the events."""
        self.transmit()
        timer_s = self._timer_s()
        ready = self._poll.poll(_whole_ms(min(timer_s, until_s) - self.now_s))
        self.now_s = time.monotonic()
        if ready:
            self._receive()
        if timer_s <= self.now_s + TIMER_RESOLUTION_S:
            self._fire(self._timer_s() if ready else timer_s)
        return list(iter(self.connection.next_event, None))

    def _timer_s(self) -> float:
        """Latest time to wake; a connection that has ended waits for nothing."""
        timer_s = self.connection.get_timer()
        return self.now_s if timer_s is None else timer_s

    def _receive(self) -> None:
        """Receive everything that is waiting, before anything is sent in answer."""
        receive, handle = self._sock.recv, self.connection.receive_datagram
        with suppress(BlockingIOError):
            while True:
                data = receive(MAX_DATAGRAM_BYTES, socket.MSG_DONTWAIT)
                handle(data, self._peer, now=self.now_s)

    def _fire(self, timer_s: float) -> None:
        """Handle the timer, unless a received datagram moved it."""
        if timer_s <= self.now_s + TIMER_RESOLUTION_S:
            self.now_s = max(self.now_s, timer_s)
            self.connection.handle_timer(now=self.now_s)


def _whole_ms(wait_s: float) -> int:
    """Whole milliseconds, rounded up, except for rounding errors of floats."""
    return max(0, math.ceil(round(wait_s * 1e3, 3)))
