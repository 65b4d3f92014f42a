"""When packets arrived, and how many were marked CE: an extension frame between our endpoints.

The sender asks for it by the transport parameter 0x3162, a variable-length integer with the bits
1 (arrival times, in the manner of draft-smith-quic-receive-ts) and 2 (ECN). The receiver then puts
an ARRIVALS frame before every ACK frame of 1-RTT packets. It elicits no ACK and is not in flight:

    ARRIVALS Frame {
      Type (i) = 0x3162,
      CE Count (i),               packets received with ECN-CE so far
      Packet Count (i),           packets reported by this frame, in the order of arrival
      Packet Number (i),          of the first
      Arrival Time (i),           of the first, in µs of the receiver's clock
      Step (..) ...,              for each further packet
    }
    Step {
      Packet Number Step (i),     2n for +n from the packet before, 2n - 1 for -n
      Arrival Time Step (i),      µs since the packet before
    }

Each packet is reported once: where an ACK is lost, the arrivals beside it are lost too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aioquic.buffer import Buffer, size_uint_var
from aioquic.quic.recovery import QuicPacketNumberWindow

from qbkit.cca.controller import Controller

EXTENSION = 0x3162
"""Number of the frame type and of the transport parameter."""
WANTS_ARRIVALS, WANTS_ECN = 1, 2
MAX_PACKETS = 64
"""Maximum in one frame, which reports those that arrived last."""

QLOG = {"frame_type": "unknown", "raw_frame_type": EXTENSION}

Arrival = tuple[int, int]
"""Packet number, and µs of the receiver's clock."""


@dataclass
class Report:
    """What one frame says."""

    ce_count: int
    arrivals: Sequence[Arrival]


class ArrivalTimes(QuicPacketNumberWindow):
    """Replaces aioquic's record of received packets, and also records when each came."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        """Time of the datagram being read."""
        self._waiting: list[Arrival] = []

    def add(self, packet_number: int) -> None:
        """A packet was received for the first time."""
        super().add(packet_number)
        self._waiting.append((packet_number, round(self.now_s * 1e6)))

    def take(self) -> list[Arrival]:
        """Those not yet taken."""
        taken, self._waiting = self._waiting[-MAX_PACKETS:], []
        return taken


def write(report: Report) -> bytes:
    """The frame without its type."""
    numbers = [report.ce_count, len(report.arrivals)]
    before = (0, 0)
    for number, at_us in report.arrivals:
        step = number - before[0]
        # the first packet number is no step
        numbers.append(number if len(numbers) == 2 else 2 * step if step >= 0 else -2 * step - 1)
        numbers.append(at_us - before[1])
        before = number, at_us
    buffer = Buffer(capacity=sum(map(size_uint_var, numbers)))
    for value in numbers:
        buffer.push_uint_var(value)
    return buffer.data


def read(buffer: Buffer) -> Report:
    """Read the frame after its type; raises BufferReadError if it is cut off."""
    ce_count, count = buffer.pull_uint_var(), buffer.pull_uint_var()
    arrivals: list[Arrival] = []
    for _ in range(count):
        word, at_us = buffer.pull_uint_var(), buffer.pull_uint_var()
        if arrivals:
            word = arrivals[-1][0] + (-(word + 1) // 2 if word % 2 else word // 2)
            at_us += arrivals[-1][1]
        arrivals.append((word, at_us))
    return Report(ce_count, arrivals)


def parameter(controller: type[Controller]) -> bytes:
    """The transport parameter that asks for what a controller uses; empty if that is nothing."""
    wants = WANTS_ARRIVALS * controller.uses_one_way_delay + WANTS_ECN * controller.uses_ecn
    if not wants:
        return b""
    buffer = Buffer(capacity=8)
    for value in (EXTENSION, size_uint_var(wants), wants):
        buffer.push_uint_var(value)
    return buffer.data


def wanted(parameters: bytes) -> int:
    """What the transport parameters of a sender ask for; 0 for nothing."""
    buffer = Buffer(data=parameters)
    while not buffer.eof():
        name, size_bytes = buffer.pull_uint_var(), buffer.pull_uint_var()
        value = buffer.pull_bytes(size_bytes)
        if name == EXTENSION:
            return Buffer(data=value).pull_uint_var()
    return 0
