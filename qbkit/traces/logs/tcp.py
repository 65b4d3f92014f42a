"""One TCP connection of a capture, with what its sender could know.

Every segment with data, retransmissions too, is a packet with its own number; offsets are sequence
numbers relative to the first byte. A packet is acknowledged when an ACK or a SACK block first
covers it, and lost when its data are sent again. The loss was spurious if the data had been
acknowledged before, or if the receiver then reports a duplicate (DSACK, RFC 2883).
"""

from __future__ import annotations

import struct
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass

from qbkit.traces.logs.events import EventTables, ack_text
from qbkit.traces.logs.records import Segment
from qbkit.traces.logs.sender import Rtt

FIN, SYN, ACK = 1, 2, 16
MSS, SCALE, SACK, TIMESTAMPS = 2, 3, 5, 8
"""Kinds of TCP options."""
USUAL = b"\x01\x01\x08\x0a"
"""The start of options that are time stamps, with or without SACK blocks after them."""
HEADER_BYTES = 20
USUAL_MSS = {4: 536, 16: 1220}
"""Bytes of an address → the MSS of a peer that announces none (RFC 9293, 3.7.1)."""
USUAL_PAYLOAD = 1460
"""Most bytes of data in a packet with the usual MTU of 1500."""
HEADER = struct.Struct("!HHIIHH")
TWO = struct.Struct("!II")
REMEMBERED = 4096
"""How many lost and how many acknowledged transmissions may still turn out to be spurious."""
WRAP, HALF = 1 << 32, 1 << 31

Range = tuple[int, int]


@dataclass(slots=True)
class _Sent:
    """One unacknowledged transmission."""

    end: int
    number: int
    time_s: float
    stamp: int | None
    again: bool


@dataclass(slots=True)
class TcpHeader:
    """The fields of a TCP header that the tables need."""

    sequence: int
    acknowledgement: int
    flags: int
    window: int
    payload_bytes: int
    is_whole: bool = True
    """Whether all options were captured."""
    mss: int | None = None
    scale: int | None = None
    stamps: Range | None = None
    blocks: tuple[Range, ...] = ()


def parse(segment: Segment) -> TcpHeader | None:
    """The header of a TCP segment; None if it is cut off or damaged."""
    raw = segment.header
    if len(raw) < 20:
        return None
    _, _, sequence, acknowledgement, bits, window = HEADER.unpack_from(raw)
    length = (bits >> 12) * 4
    if not 20 <= length <= segment.transport_bytes:
        return None
    found = TcpHeader(
        sequence, acknowledgement, bits & 0x1FF, window, segment.transport_bytes - length
    )
    found.is_whole = len(raw) >= length
    options = raw[20:length]
    if options[:4] == USUAL and len(options) >= 12:
        found.stamps = TWO.unpack_from(options, 4)
        options = options[12:]
    for kind, value in _options(options):
        if kind == SACK:
            found.blocks = tuple(TWO.iter_unpack(value[: len(value) // 8 * 8]))
        elif kind == TIMESTAMPS and len(value) == 8:
            found.stamps = TWO.unpack(value)
        elif kind == MSS and len(value) == 2:
            found.mss = int.from_bytes(value)
        elif kind == SCALE and len(value) == 1:
            found.scale = min(value[0], 14)  # RFC 7323 §2.3
    return found


def _options(options: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(options) and options[at]:
        if options[at] == 1:
            at += 1
            continue
        length = options[at + 1] if at + 1 < len(options) else 0
        if length < 2 or at + length > len(options):
            return
        yield options[at], options[at + 2 : at + length]
        at += length


class TcpConnection:
    """The tables of one connection, filled segment by segment; times count from the first."""

    def __init__(self, sender: tuple[bytes, int], peer_mss: int = 0) -> None:
        """``peer_mss`` stands in for one that the peer announces; 0 if nobody knows it."""
        self.sender = sender
        self.tables = EventTables()
        self.rtt = Rtt()
        self.zero_ns: int | None = None
        self.base: int | None = None
        self.highest = self.acked_to = self.bytes_in_flight = 0
        self.numbers = {"sent": 0, "received": 0}
        self.starts: list[int] = []
        self.waiting: dict[int, _Sent] = {}
        self.done_starts: list[int] = []
        self.done: dict[int, Range] = {}
        """Start of an acknowledged transmission → its end and number."""
        self.lost: dict[int, list[int]] = {}
        self.peer_mss = peer_mss
        self.is_closed = False
        """Whether the receiver's window is 0."""
        self.scales: dict[str, int | None] = {}
        self.split_packets = self.unsplit_packets = 0
        self.holes: list[Range] = []
        """Data before the highest that were not seen, in order."""
        self.unseen_bytes = 0
        """Of data that were acknowledged but not seen."""

    def take(self, segment: Segment) -> None:
        """Take one segment of either direction."""
        header = parse(segment)
        if header is None:
            return
        if self.zero_ns is None:
            self.zero_ns = segment.time_ns
        time_s = (segment.time_ns - self.zero_ns) / 1e9
        direction = "sent" if segment.source == self.sender else "received"
        if header.flags & SYN:
            return self._syn(time_s, direction, header, segment.transport_bytes)
        if direction == "sent":
            return self._sent(time_s, header, segment.transport_bytes)
        return self._received(time_s, header, segment.transport_bytes)

    def _syn(self, time_s: float, direction: str, header: TcpHeader, size: int) -> None:
        self.scales[direction] = header.scale
        if direction == "sent":
            self.base = (header.sequence + 1) % WRAP
        else:
            usual = USUAL_MSS[len(self.sender[0])] if header.is_whole else 0
            self.peer_mss = header.mss or usual or self.peer_mss
        frames = ["SYN", "ACK"] if header.flags & ACK else ["SYN"]
        self.tables.handshake.put(time_s, direction, "initial", 0, size, frames)

    def _sent(self, time_s: float, header: TcpHeader, size: int) -> None:
        start = self._relative(header.sequence)
        payload = header.payload_bytes
        # One byte is no transfer where it is acknowledged, a keep-alive, or where the window is
        # closed, a probe of it (RFC 9293, 3.8.6.1).
        if payload == 0 or (payload == 1 and (start < self.acked_to or self.is_closed)):
            return
        if self.tables.handshake.has_room("sent", "application"):
            text = [f"data {start}-{start + payload - 1}", *(["FIN"] if header.flags & FIN else [])]
            self.tables.handshake.put(
                time_s, "sent", "application", self.numbers["sent"], size, text
            )
        head = size - payload
        most = self._most_payload(head)
        self.split_packets += payload > most
        self.unsplit_packets += not self.peer_mss and payload > USUAL_PAYLOAD
        stamp = header.stamps[0] if header.stamps else None
        for first in range(start, start + payload, most):
            end = min(first + most, start + payload)
            self._transmission(time_s, first, end, head, stamp)

    def _most_payload(self, head: int) -> int:
        """Most payload of one packet; larger frames come from segmentation offload.

        The limit is the MSS that the peer announced, less the segment's own options (RFC 6691).
        """
        return max(self.peer_mss - (head - HEADER_BYTES), 1) if self.peer_mss else 1 << 16

    def _transmission(
        self, time_s: float, start: int, end: int, head: int, stamp: int | None
    ) -> None:
        again = start < self.highest
        if again:
            self._resent(time_s, start, end)
            self._fill(start, end)
        elif start > self.highest and len(self.holes) < REMEMBERED:
            self.holes.append((self.highest, start))
        number = self.numbers["sent"]
        self.numbers["sent"] += 1
        size = end - start + head
        self.tables.sent(time_s, "application", number, size, stream=0, offset_bytes=max(start, 0))
        self.highest = max(self.highest, end)
        if start < self.acked_to:
            self._is_done(start, end, number)
        else:
            insort(self.starts, start)
            self.waiting[start] = _Sent(end, number, time_s, stamp, again)
            self.bytes_in_flight += end - start

    def _fill(self, start: int, end: int) -> None:
        """Data from ``start`` to ``end`` are seen after all."""
        if self.holes:
            parts = [p for a, b in self.holes for p in ((a, min(b, start)), (max(a, end), b))]
            self.holes = [(a, b) for a, b in parts if a < b]

    def _resent(self, time_s: float, start: int, end: int) -> None:
        """Data from ``start`` to ``end`` are sent again, so they were lost."""
        at = bisect_left(self.starts, start)
        if at and self.waiting[self.starts[at - 1]].end > start:
            at -= 1
        while at < len(self.starts) and self.starts[at] < end:
            first = self.starts.pop(at)
            sent = self.waiting.pop(first)
            self.bytes_in_flight -= sent.end - first
            self.tables.lost(time_s, "application", sent.number, "retransmitted")
            self.lost.setdefault(first, []).append(sent.number)
        while len(self.lost) > REMEMBERED:
            del self.lost[next(iter(self.lost))]
        for number in self._undo(start, end):
            self.tables.lost(time_s, "application", number, "retransmitted")
            self.tables.spurious("application", number, number)

    def _is_done(self, start: int, end: int, number: int) -> None:
        """Remember a transmission whose data are acknowledged."""
        if start not in self.done:
            insort(self.done_starts, start)
        self.done[start] = (end, number)
        if len(self.done_starts) > REMEMBERED:
            del self.done[self.done_starts.pop(0)]

    def _undo(self, start: int, end: int) -> list[int]:
        """Numbers of the acknowledged transmissions that overlap a range, which are forgotten."""
        at = bisect_left(self.done_starts, start)
        if at and self.done[self.done_starts[at - 1]][0] > start:
            at -= 1
        until = bisect_left(self.done_starts, end)
        found = [self.done.pop(first)[1] for first in self.done_starts[at:until]]
        del self.done_starts[at:until]
        return found

    def _received(self, time_s: float, header: TcpHeader, size: int) -> None:
        number = self.numbers["received"]
        self.numbers["received"] += 1
        self.tables.received(time_s, "application", number, size)
        if not header.flags & ACK:
            return
        self.is_closed = header.window == 0
        upto = self._relative(header.acknowledgement)
        blocks = [(self._relative(a), self._relative(b)) for a, b in header.blocks]
        if self.tables.handshake.has_room("received", "application"):
            text = [ack_text([(0, upto - 1)])] if upto > 0 else ["ACK"]
            self.tables.handshake.put(time_s, "received", "application", number, size, text)
        blocks = self._without_duplicate(blocks, upto)
        advanced = upto > self.acked_to
        while self.holes and self.holes[0][1] <= upto:
            first, last = self.holes.pop(0)
            self.unseen_bytes += last - first
        new = self._covered(time_s, 0, upto) if advanced else []
        self.acked_to = max(self.acked_to, min(upto, self.highest))
        for left, right in blocks:
            new += self._covered(time_s, left, right)
        self._sample(time_s, new, header, advanced)
        self._report(time_s, header)

    def _without_duplicate(self, blocks: list[Range], upto: int) -> list[Range]:
        """The blocks without a first one that reports a duplicate (RFC 2883 §4)."""
        if not blocks:
            return blocks
        (left, right), *others = blocks
        inside = bool(others) and others[0][0] <= left and right <= others[0][1]
        if right > upto and not inside:
            return blocks
        for start in [s for s in self.lost if left <= s < right]:
            number = self.lost[start].pop()
            self.tables.spurious("application", number, number)
            if not self.lost[start]:
                del self.lost[start]
        return others

    def _covered(self, time_s: float, left: int, right: int) -> list[_Sent]:
        """Acknowledge the transmissions within a range, and return them."""
        begin = at = bisect_left(self.starts, left)
        found = []
        while at < len(self.starts) and self.waiting[self.starts[at]].end <= right:
            start = self.starts[at]
            sent = self.waiting.pop(start)
            self.bytes_in_flight -= sent.end - start
            self.tables.acked(time_s, "application", sent.number, sent.number)
            self._is_done(start, sent.end, sent.number)
            found.append(sent)
            at += 1
        del self.starts[begin:at]
        return found

    def _sample(self, time_s: float, new: list[_Sent], header: TcpHeader, advanced: bool) -> None:
        """Take an RTT sample from the segment whose time stamp comes back (RFC 7323 §4), or without
        time stamps from the last segment if it was sent only once."""
        if not new:
            return
        if header.stamps is not None and advanced:
            echo = header.stamps[1]
            of_echo = [s.time_s for s in new if s.stamp == echo]
            if of_echo:
                self.rtt.sample(time_s - min(of_echo))
        elif header.stamps is None and not new[-1].again:
            self.rtt.sample(time_s - new[-1].time_s)

    def _report(self, time_s: float, header: TcpHeader) -> None:
        values = self.rtt.metrics() if self.rtt.smoothed_s else {}
        scale = self.scales.get("received")
        if len(self.scales) == 2:
            both = scale is not None and self.scales["sent"] is not None
            values["receive_window_bytes"] = header.window << (scale or 0 if both else 0)
        self.tables.metrics(time_s, bytes_in_flight=self.bytes_in_flight, **values)

    def _relative(self, sequence: int) -> int:
        """A sequence number as bytes since the first, beyond 4 GiB too."""
        if self.base is None:
            self.base = sequence
        near = (sequence - self.base - self.highest + HALF) % WRAP
        return self.highest + near - HALF
