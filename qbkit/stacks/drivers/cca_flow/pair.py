"""Two connections of one sender beside each other: the start-up of fair-queuing detection.

Takes the place of the driver's ``sender.send`` for the controller ``fq-detect``. The second
connection, the companion, has a socket of its own, so that a fair queue takes it for another flow;
the receiver expects it (`companion`).
"""

from __future__ import annotations

import ctypes
import math
import select
import time
from collections.abc import Sequence
from typing import cast

from aioquic.quic.events import HandshakeCompleted
from aioquic_flow import sender
from aioquic_flow.failure import FlowFailed
from aioquic_flow.link import Link, parse_address
from aioquic_flow.qlog import StreamingLogger
from aioquic_flow.signals import StopSignal

from qbkit.cca.builtin.fq_detect import FqDetect
from qbkit.cca.controller import Controller

from .connection import Recovery

PR_SET_TIMERSLACK = 29
LEAST_SLACK_NS = 1
"""Linux lets a timer be 50 µs late, in which packets of both flows become due. Sent together, those
of the first would always find room in a full queue before those of the second."""


class Side:
    """One connection, its socket and its stream."""

    def __init__(self, address: str, controller: str, out: str, qlog: bool, stop: StopSignal):
        peer = parse_address(address)
        self.settings = sender._settings(controller, out, qlog)
        self.connection = sender.Connection(configuration=self.settings)
        self.socket = sender.open_socket()
        self.socket.connect(peer)
        self.connection.connect(peer, now=time.monotonic())
        self.link = Link(self.socket, self.connection, peer, stop)
        self.upload: sender.Upload | None = None
        self.is_connected = False

    @property
    def controller(self) -> Controller:
        """It can be replaced while the connection lasts."""
        return cast(Recovery, self.connection._loss)._cc.controller

    @controller.setter
    def controller(self, controller: Controller) -> None:
        recovery = cast(Recovery, self.connection._loss)
        adapter = recovery._cc
        adapter.controller = adapter.flight.controller = controller
        recovery._pacer._controller = controller
        adapter.update()

    def begin(self, size_bytes: int | None) -> None:
        """Upload so much, or without end."""
        self.upload = sender.Upload(self.connection, size_bytes)

    def fill(self) -> None:
        """Keep the stream filled."""
        if self.upload:
            self.upload.fill()

    def close(self) -> None:
        """Close the connection, of which the receiver hears, and the socket."""
        self.connection.close()
        self.link.transmit()
        self.socket.close()


class Pair:
    """The flow and, until the verdict, its companion."""

    def __init__(self, address: str, controller: str, out: str, qlog: bool, stop: StopSignal):
        self._stop = stop
        self._open = lambda with_qlog: Side(address, controller, out, with_qlog, stop)
        self._address = address
        self.main = self._open(qlog)
        self.companion: Side | None = None
        assert isinstance(self.main.controller, FqDetect)
        self.detector = self.main.controller

    @property
    def sides(self) -> list[Side]:
        """Those that are open."""
        return [self.main, *([self.companion] if self.companion else [])]

    def connect(self, until_s: float) -> None:
        """The companion comes second: by then the receiver's first socket is taken."""
        self._handshake(self.main, until_s)
        self.companion = self._open(False)
        self.companion.controller = self.detector.companion()
        self._handshake(self.companion, until_s)

    def start(self, size_bytes: int | None) -> None:
        """Begin to probe."""
        assert self.companion
        self.detector.start(self.main.link.now_s)
        self.main.begin(size_bytes)
        self.companion.begin(None)

    def end_probing(self) -> None:
        """The verdict is there: go on alone."""
        assert self.companion
        companion, self.companion = self.companion, None
        self.detector.log_verdict(self.main.link.now_s)
        self.main.controller = self.detector.successor(companion.controller)
        companion.close()

    def turn(self, until_s: float) -> bool:
        """Send, wait for something to happen or that time; whether the upload was answered."""
        for side in self.sides:
            side.fill()
        for side in wait(self.sides, self._stop, until_s):
            for event in iter(side.connection.next_event, None):
                if isinstance(event, HandshakeCompleted):
                    side.is_connected = True
                if isinstance(event, sender.StreamDataReceived) and event.end_stream:
                    return True
            sender.check(side.link)
        return False

    def _handshake(self, side: Side, until_s: float) -> None:
        while not self._stop and not side.is_connected:
            self.turn(until_s)
            if self.main.link.now_s >= until_s:
                raise FlowFailed(f"cannot connect to {self._address} within {sender.CONNECT_S:g} s")


def wait(sides: Sequence[Side], stop: StopSignal, until_s: float) -> Sequence[Side]:
    """`Link.turn` for several connections, with timers that are exact.

    Whole milliseconds would send the packets of both flows in bursts, one flow's after the other's.
    """
    links = [side.link for side in sides]
    for link in links:
        link.transmit()
    wake_s = min(until_s, *(link._timer_s() for link in links))
    files = [stop.fileno(), *(side.socket.fileno() for side in sides)]
    select.select(files, [], [], max(0.0, wake_s - time.monotonic()))
    now_s = time.monotonic()
    for link in links:
        link.now_s = now_s
        link._receive()
        link._fire(link._timer_s())
    return sides


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
    """As ``sender.send``; FlowFailed with one sentence."""
    start_s = time.monotonic()
    end_s = math.inf if duration_s is None else start_s + duration_s
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, LEAST_SLACK_NS)
    pair = Pair(address, controller, out, qlog, stop)
    telemetry = sender.Telemetry(out, pair.main.connection)
    try:
        pair.connect(start_s + sender.CONNECT_S)
        pair.start(size_bytes)
        while not stop and pair.main.link.now_s < end_s:
            is_answered = pair.turn(end_s)
            if pair.companion and pair.detector.probe.verdict:
                pair.end_probing()
                is_answered = is_answered or pair.detector.option["only_detect"]
            telemetry.sample(pair.main.link.now_s)
            if is_answered:
                break
        for side in pair.sides:
            side.close()
    except ConnectionRefusedError:
        raise FlowFailed(f"nobody listens on {address} any more") from None
    finally:
        telemetry.close()
        logger = pair.main.settings.quic_logger
        if isinstance(logger, StreamingLogger):
            logger.close()
