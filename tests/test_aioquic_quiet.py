"""The driver's aioquic connection sends the same datagrams at the same times as aioquic's own."""

from __future__ import annotations

import heapq
import itertools
import random
import ssl
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import HandshakeCompleted, StreamDataReceived

from qbkit.stacks.aioquic import DRIVER
from qbkit.stacks.toolchains import certificate

CLIENT, SERVER = ("10.1.0.1", 40000), ("10.2.0.1", 4433)
DELAY_S, RATE_BYTES_S, QUEUE_S = 0.015, 1.25e6, 0.03
UPLOAD_BYTES = 2 << 20
TIMER_RESOLUTION_S = 1e-6
"""As in the driver: the sum of two floats may miss a time by a hair for ever."""


@pytest.fixture(scope="module")
def quiet() -> Iterator[type[QuicConnection]]:
    sys.path.insert(0, str(DRIVER.parent))
    from aioquic_flow.connection import QuietConnection

    yield QuietConnection
    sys.path.remove(str(DRIVER.parent))


@dataclass
class Path:
    """A client that uploads to a server over a queue that drops, in a time of its own."""

    kind: type[QuicConnection]
    controller: str
    loss: float
    sent: list[tuple[float, bool, int]] = field(default_factory=list)
    """(time in s, whether the client sent it, bytes) of every datagram."""
    empty: int = 0
    """How often a peer had nothing to send."""

    def upload(self) -> bytes:
        """Until the server has answered; what it received."""
        self.chance, self.order, self.arriving = random.Random(1), itertools.count(), []
        self.clock_s = self.free_s = 0.0
        self.client, self.server = peers(self.kind, self.controller)
        self.client.connect(SERVER, now=0.0)
        received, answered = bytearray(), False
        while not answered and self.clock_s < 30:
            for peer in self.awake():
                self.transmit(peer)
            self.step()
            for peer in self.awake():
                for event in iter(peer.next_event, None):
                    if isinstance(event, HandshakeCompleted) and peer is self.client:
                        peer.send_stream_data(0, random.Random(2).randbytes(UPLOAD_BYTES), True)
                    elif isinstance(event, StreamDataReceived) and peer is self.client:
                        answered = event.end_stream
                    elif isinstance(event, StreamDataReceived):
                        received += event.data
                        if event.end_stream:
                            peer.send_stream_data(0, b"", True)
        return bytes(received)

    def awake(self) -> list[QuicConnection]:
        """The server wakes with the first datagram."""
        return [peer for peer in (self.client, self.server) if peer._network_paths]

    def transmit(self, peer: QuicConnection) -> None:
        datagrams = peer.datagrams_to_send(self.clock_s)
        self.empty += not datagrams
        for data, _ in datagrams:
            up = peer is self.client
            self.sent.append((self.clock_s, up, len(data)))
            leaves_s = max(self.clock_s, self.free_s) if up else self.clock_s
            if leaves_s - self.clock_s > QUEUE_S or self.chance.random() < self.loss:
                continue
            self.free_s = leaves_s + len(data) / RATE_BYTES_S if up else self.free_s
            other = self.server if up else self.client
            heapq.heappush(self.arriving, (leaves_s + DELAY_S, next(self.order), other, data))

    def step(self) -> None:
        """To the next datagram or timer."""
        due = [(timer_s, peer) for peer in self.awake() if (timer_s := peer.get_timer())]
        timer_s, peer = min(due, key=lambda pair: pair[0])
        if self.arriving and self.arriving[0][0] <= timer_s:
            self.clock_s, _, peer, data = heapq.heappop(self.arriving)
            address = SERVER if peer is self.client else CLIENT
            peer.receive_datagram(data, address, now=self.clock_s)
        else:
            self.clock_s = max(self.clock_s, timer_s + TIMER_RESOLUTION_S)
            peer.handle_timer(now=self.clock_s)


def peers(kind: type[QuicConnection], controller: str) -> tuple[QuicConnection, QuicConnection]:
    folder = certificate.folder()
    theirs = QuicConfiguration(is_client=False, alpn_protocols=["perf"])
    theirs.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    ours = QuicConfiguration(
        is_client=True,
        alpn_protocols=["perf"],
        server_name="qbkit",
        verify_mode=ssl.CERT_NONE,
        congestion_control_algorithm=controller,
    )
    client = kind(configuration=ours)
    first = client.original_destination_connection_id
    return client, kind(configuration=theirs, original_destination_connection_id=first)


@pytest.mark.parametrize(("controller", "loss"), [("cubic", 0.0), ("reno", 0.02)])
def test_the_same_datagrams_at_the_same_times(quiet, controller, loss):
    own, ours = Path(QuicConnection, controller, loss), Path(quiet, controller, loss)
    assert own.upload() == ours.upload() == random.Random(2).randbytes(UPLOAD_BYTES)
    assert own.sent == ours.sent
    assert own.empty == ours.empty > 1000


def test_most_attempts_without_data_build_no_packet(quiet, monkeypatch):
    built = 0
    own = QuicConnection.datagrams_to_send

    def counting(self, now):
        nonlocal built
        built += 1
        return own(self, now)

    monkeypatch.setattr(QuicConnection, "datagrams_to_send", counting)
    path = Path(quiet, "cubic", 0.0)
    path.upload()
    times = len({(at, up) for at, up, _ in path.sent})
    assert built < times + path.empty / 4
