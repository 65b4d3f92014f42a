"""The datagrams of one QUIC connection as a capture of their own, which tshark can read.

tshark takes a frame of several datagrams, as a host with segmentation offload (GSO) captures them,
for one packet, which it cannot decrypt. After a version negotiation or a Retry it decrypts nothing.
It counts packets that an ICMP message quotes. And it would dissect all other packets of the file.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from qbkit.traces.logs.records import (
    LONG_HEADER,
    UDP_HEADER,
    Conversation,
    End,
    Segment,
    begins,
)
from qbkit.traces.run.frames import UDP
from qbkit.traces.run.pcap import MAX_CAPTURED

MAGIC_NS, RAW_IP = 0xA1B23C4D, 101
FILE, RECORD, PORTS = struct.Struct("=IHHiIII"), struct.Struct("=IIII"), struct.Struct("!HHHH")
FOUR, SIX = struct.Struct("!BBHHHBBH4s4s"), struct.Struct("!IHBB16s16s")
VERSION_BYTES, CID_AT = slice(9, 13), 13
"""Of a long header, in a UDP packet: the version, and the length of the destination's ID."""
LEAST_SEGMENT, LARGEST_SEGMENT = 1000, 1472
"""Datagrams of a full packet; one with the usual MTU of 1500 has at most 1472 bytes."""
LEAST_ID = 4
"""A connection ID of so many bytes is found again only where a packet begins."""
FIRST_BITS, SHORT = 0xC0, 0x40
"""The bits of a first byte that are the same in all packets with a short header."""
LONG_TYPE, INITIAL_V2, VERSION_2 = 0x30, 0x10, b"\x6b\x33\x43\xcf"
"""The bits of a long header's type, which is 0 in an Initial packet but in version 2 (RFC 9369)."""
RETRY, RETRY_V2 = 0x30, 0
"""The bits of the type of a Retry."""
SURE, SURE_OF_ANY = 5, 9
"""So many bytes all have these bits by chance in one of 1,024 large packets; so many in one of 550,
whatever the size of a datagram."""
MOST_PATHS = 64
"""tshark reads no more conversations than these beside the chosen one."""
MOST_HELD = 64
"""A client sends fewer packets before the answer to its first one comes."""


class QuicFile:
    """Writes the datagrams, and counts what tshark does not see as it was captured."""

    def __init__(self) -> None:
        self.frames = self.parts = self.abandoned = self.unsplit = 0
        """Frames of several datagrams, the datagrams in them, those from before a version
        negotiation, and frames that seem to have several datagrams of unknown size."""
        self.retried = False
        self._id_bytes: dict[End, int] = {}
        self._sizes: dict[End, Counter[int]] = {}
        """How often each size of a large datagram was seen, by source."""
        self._split: dict[End, set[int]] = {}
        """The sizes into which frames were split."""

    def write(self, path: Path, segments: Iterable[Segment]) -> None:
        """Write a capture; ``segments`` come in the order of their time."""
        with path.open("wb") as out:
            out.write(FILE.pack(MAGIC_NS, 2, 4, 0, 0, MAX_CAPTURED, RAW_IP))
            for segment in self._after_negotiation(segments):
                if _is_retry(segment):
                    self.retried = True
                    continue
                for part in self._datagrams(segment):
                    captured, on_wire = _packet(part)
                    seconds, nanoseconds = divmod(part.time_ns, 10**9)
                    size = len(captured)
                    out.write(RECORD.pack(seconds & 0xFFFFFFFF, nanoseconds, size, on_wire))
                    out.write(captured)

    def warnings(self, name: str) -> list[str]:
        """Sentences about what the file shows otherwise than the capture."""
        found = []
        if self.frames:
            found.append(
                f"{self.frames} frames of {name} hold several datagrams, from a host with "
                f"segmentation offload, and were split into {self.parts}"
            )
        if self.unsplit:
            found.append(
                f"{self.unsplit} datagrams have more than {LARGEST_SEGMENT} B, perhaps from "
                "segmentation offload, and were not split: their packets have no connection ID, "
                "and no other packet shows their size"
            )
        if self.abandoned:
            found.append(
                f"{self.abandoned} packets from before the end of the version negotiation are left "
                "out: they are of the attempt that it ended"
            )
        if self.retried:
            found.append(
                f"{name} holds a Retry, after which the client began again: what it had sent "
                "before counts as neither acknowledged nor lost"
            )
        return found

    def _after_negotiation(self, segments: Iterable[Segment]) -> Iterator[Segment]:
        """The packets of the attempt that was answered by no version negotiation (RFC 9000, 6)."""
        held: list[Segment] = []
        rest = iter(segments)
        for segment in rest:
            if held and segment.source != held[0].source:
                if not _negotiates(segment):
                    held.append(segment)
                    break
                self.abandoned += len(held) + 1
                held = []
                continue
            held.append(segment)
            if not begins(segment) or len(held) == MOST_HELD:
                break
        yield from held
        yield from rest

    def _datagrams(self, segment: Segment) -> Iterator[Segment]:
        """The datagrams of a frame: one, or with offload several of one size and a rest."""
        content = segment.header[UDP_HEADER:]
        if begins(segment):
            self._learn(segment)
        whole = len(segment.header) >= segment.transport_bytes
        at = _after_long_headers(content) if whole else len(content)
        size = self._size(segment, content, at) if _is_short(content[at : at + 1]) else 0
        if not size:
            if LEAST_SEGMENT <= len(content) <= LARGEST_SEGMENT:
                self._sizes.setdefault(segment.source, Counter())[len(content)] += 1
            yield segment
            return
        self.frames += 1
        ports = segment.header[:4]
        for at in range(0, len(content), size):
            self.parts += 1
            data = content[at : at + size]
            length = UDP_HEADER + len(data)
            header = ports + struct.pack("!HH", length, 0) + data
            yield replace(segment, header=header, transport_bytes=length)

    def _learn(self, segment: Segment) -> None:
        """Remember how long the connection IDs are of the end that sends a long header."""
        raw = segment.header
        if len(raw) > CID_AT:
            at = CID_AT + 1 + raw[CID_AT]
            if len(raw) > at:
                self._id_bytes[segment.source] = raw[at]

    def _size(self, segment: Segment, content: bytes, first: int) -> int:
        """The size of the datagrams in a frame of several; 0 if it is one, or nobody knows.

        The first short header is at ``first``.
        """
        count = self._id_bytes.get(segment.destination, 0)
        if count >= LEAST_ID:
            head = content[first + 1 : first + 1 + count]
            size = content.find(head, first + 1 + count) - 1
            starts = range(size, len(content), size) if size > 0 else range(0)
            return size if starts and all(content.startswith(head, at + 1) for at in starts) else 0
        if len(content) <= LARGEST_SEGMENT:
            return 0
        known = [size for size, _ in self._sizes.get(segment.source, Counter()).most_common()]
        split = self._split.setdefault(segment.source, set())
        found = next((s for s in known if _are_packets(content, s, 1 if s in split else SURE)), 0)
        found = found or _only_size(content)
        if found:
            split.add(found)
            self._sizes.setdefault(segment.source, Counter())[found] += 1
        self.unsplit += not found
        return found


def _are_packets(content: bytes, size: int, sure: int) -> bool:
    """Whether packets with a short header begin after every ``size`` bytes, and not by chance:
    they end there too, or there are ``sure`` of them."""
    firsts = content[size::size]
    return _is_short(firsts) and (len(content) % size == 0 or len(firsts) >= sure)


def _only_size(content: bytes) -> int:
    """The only size that the datagrams of a frame can have; 0 if there are several, or none."""
    possible = range(LEAST_SEGMENT, LARGEST_SEGMENT + 1)
    found = [size for size in possible if _are_packets(content, size, SURE_OF_ANY)]
    return found[0] if len(found) == 1 else 0


def _is_short(firsts: bytes) -> bool:
    """Whether there are bytes, all of which may begin a short header."""
    return bool(firsts) and all(byte & FIRST_BITS == SHORT for byte in firsts)


def _after_long_headers(content: bytes) -> int:
    """Where a packet follows those with long headers that share its datagram (RFC 9000, 17.2)."""
    at = 0
    try:
        while content[at] & LONG_HEADER:
            initial = INITIAL_V2 if content[at + 1 : at + 5] == VERSION_2 else 0
            is_initial = content[at] & LONG_TYPE == initial
            at += 5
            at += 1 + content[at]
            at += 1 + content[at]
            if is_initial:
                token, at = _varint(content, at)
                at += token
            length, at = _varint(content, at)
            at += length
    except IndexError:
        return len(content)
    return at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number of variable length (RFC 9000, 16), and where it ends."""
    end = at + (1 << (content[at] >> 6))
    return int.from_bytes(content[at:end]) & (1 << ((end - at) * 8 - 2)) - 1, end


def _negotiates(segment: Segment) -> bool:
    """Whether a packet is a version negotiation: a long header of version 0."""
    return begins(segment) and not any(segment.header[VERSION_BYTES])


def _is_retry(segment: Segment) -> bool:
    """Whether a packet is a Retry, after which a client begins again with a token."""
    raw = segment.header
    if not begins(segment) or _negotiates(segment):
        return False
    return raw[UDP_HEADER] & LONG_TYPE == (RETRY_V2 if raw[VERSION_BYTES] == VERSION_2 else RETRY)


def _packet(segment: Segment) -> tuple[bytes, int]:
    """A datagram as a bare IP packet, as far as it was captured, and its size on the wire."""
    (source, source_port), (destination, port) = segment.source, segment.destination
    size = segment.transport_bytes
    udp = PORTS.pack(source_port, port, size & 0xFFFF, 0) + segment.header[UDP_HEADER:]
    if len(source) == 4:
        head = FOUR.pack(0x45, 0, (size + 20) & 0xFFFF, 0, 0, 64, UDP, 0, source, destination)
    else:
        head = SIX.pack(6 << 28, size & 0xFFFF, UDP, 64, source, destination)
    return head + udp, len(head) + size


def paths_of(chosen: Conversation, found: Iterable[Conversation]) -> list[Conversation]:
    """The conversations that may be other paths of the chosen one's connection (RFC 9000, 9).

    A client that moves keeps one end, and goes on with short headers. Of the many clients of a
    server, only the first ones of the file are looked at.
    """
    others = [
        other
        for other in found
        if other is not chosen
        and other.protocol == chosen.protocol
        and len({*other.ends} & {*chosen.ends}) == 1
    ]
    if chosen.begins:
        return [chosen, *[other for other in others if not other.begins][:MOST_PATHS]]
    return [chosen, *others[:MOST_PATHS]] if any(o.begins for o in others) else [chosen]
