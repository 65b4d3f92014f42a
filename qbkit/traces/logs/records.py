"""Read captures (pcap, pcapng) packet by packet, with memory for one packet."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from qbkit.errors import TraceError
from qbkit.traces.run import pcapng
from qbkit.traces.run.frames import LINK_HEADER, TCP, TYPED, UDP, VLAN
from qbkit.traces.run.pcap import FILE_HEADER, MAGIC, MAX_CAPTURED, RECORD_HEADER

EXTENSIONS = (0, 43, 60)
"""IPv6 headers that may precede TCP or UDP: hop-by-hop, routing, destination."""
FLAGS, SYN = 13, 2
"""Where a TCP header has its flags, behind its length, and one of them."""
UDP_HEADER, LONG_HEADER = 8, 0x80
"""Bytes before a QUIC packet, and the bit of its first byte that only handshakes set."""

SHOWN = 8
"""How many connections are named."""

End = tuple[bytes, int]
"""Address and port."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One TCP or UDP packet."""

    number: int
    """Number of the record in the file, from 1 on."""
    time_ns: int
    """Since 1970."""
    protocol: int
    source: End
    destination: End
    header: bytes
    """The captured part from the TCP or UDP header on."""
    size_bytes: int
    """Of the IP packet."""
    transport_bytes: int
    """From the TCP or UDP header on, on the wire."""
    identity: int
    """Identification of the IPv4 packet; 0 in IPv6."""


class Conversation:
    """A connection between two ends, and how much each of them sends."""

    def __init__(self, segment: Segment) -> None:
        self.protocol = segment.protocol
        self.ends = (segment.source, segment.destination)
        self.bytes = dict.fromkeys(self.ends, 0)
        self.packets = self.cut = 0
        self.begins = begins(segment)
        """Whether the first packet begins a connection."""
        self.announced: set[End] = set()
        """The ends whose SYN with all its options is there."""

    def take(self, segment: Segment) -> None:
        """Count one more packet."""
        self.packets += 1
        self.bytes[segment.source] += segment.transport_bytes
        raw = segment.header
        self.cut += len(raw) < segment.transport_bytes
        is_syn = self.protocol == TCP and begins(segment)
        if is_syn and len(raw) >= (raw[FLAGS - 1] >> 4) * 4:
            self.announced.add(segment.source)

    def __str__(self) -> str:
        kind = "tcp" if self.protocol == TCP else "udp"
        first, second = (describe(end) for end in self.ends)
        return f"{kind} {first} to {second} ({self.packets} packets)"


def of_others(name: str, chosen: Conversation, found: Collection[Conversation]) -> list[str]:
    """A sentence about the connections of a capture, if there are several."""
    if len(found) < 2:
        return []
    others = sorted(found, key=lambda c: -c.packets)[:SHOWN]
    listed = ", ".join(str(other) for other in others if other is not chosen)
    return [f"{name} has {len(found)} connections; this is {chosen}, others are {listed}"]


def begins(segment: Segment) -> bool:
    """Whether a packet is of the begin of a connection: a SYN, or QUIC with a long header."""
    raw = segment.header
    if segment.protocol == TCP:
        return len(raw) > FLAGS and bool(raw[FLAGS] & SYN)
    return len(raw) > UDP_HEADER and bool(raw[UDP_HEADER] & LONG_HEADER)


def segments(
    file: BinaryIO, name: str, broken: pcapng.Broken, left_out: pcapng.LeftOut
) -> Iterator[Segment]:
    """Yield TCP and UDP packets in file order.

    At damage or truncation, it calls ``broken`` and ends. Packets that cannot be read are
    ``left_out`` (`qbkit.traces.run.pcapng`). Raises TraceError for a file that is no capture, and
    for unsupported link types.
    """
    magic = file.read(4)
    file.seek(0)
    if magic == pcapng.MAGIC:
        records: Iterator[tuple[int, int, int, bytes]] = (
            (r.number, r.time_ns, r.link, r.frame)
            for r in pcapng.records(file, name, broken, left_out)
        )
    elif magic in MAGIC:
        records = _pcap(file, name, broken)
    else:
        raise TraceError(f"{name} is no capture: neither pcap nor pcapng", refused=True)
    for number, time_ns, link, frame in records:
        packet = _ip_packet(frame, link)
        found = packet and _segment(number, time_ns, packet)
        if found:
            yield found


def _pcap(
    file: BinaryIO, name: str, broken: pcapng.Broken
) -> Iterator[tuple[int, int, int, bytes]]:
    header = file.read(FILE_HEADER)
    if len(header) < FILE_HEADER:
        raise TraceError(f"{name} is no capture: its header is cut off")
    order, unit_ns = MAGIC[header[:4]]
    link = pcapng.known_link(struct.unpack_from(f"{order}I", header, 20)[0] & 0xFFFF, name)
    unpack = struct.Struct(f"{order}IIII").unpack
    place, number = FILE_HEADER, 0
    while head := file.read(RECORD_HEADER):
        if len(head) < RECORD_HEADER:
            return broken(f"at byte {place}")
        seconds, fraction, captured, _ = unpack(head)
        frame = file.read(captured) if captured <= MAX_CAPTURED else b""
        if captured > MAX_CAPTURED or len(frame) < captured:
            return broken(f"at byte {place}")
        number += 1
        yield number, seconds * 10**9 + fraction * unit_ns, link, frame
        place += RECORD_HEADER + captured
    return None


def _ip_packet(frame: bytes, link: int) -> bytes | None:
    """The content of a frame, if it may be an IP packet."""
    start = LINK_HEADER[link]
    if link in TYPED:
        kind = int.from_bytes(frame[start - 2 : start])
        while kind in VLAN:
            start += 4
            kind = int.from_bytes(frame[start - 2 : start])
        if kind not in (0x0800, 0x86DD):
            return None
    return frame[start:]


def _segment(number: int, time_ns: int, packet: bytes) -> Segment | None:
    """The TCP or UDP packet in an IP packet; None for others and for fragments after the first."""
    version = packet[0] >> 4 if packet else 0
    identity = int.from_bytes(packet[4:6]) if version == 4 else 0
    if version == 4 and len(packet) >= 20:
        start, protocol = (packet[0] & 15) * 4, packet[9]
        size = int.from_bytes(packet[2:4])
        source, destination = packet[12:16], packet[16:20]
        if int.from_bytes(packet[6:8]) & 0x1FFF:
            return None
    elif version == 6 and len(packet) >= 40:
        start, protocol = 40, packet[6]
        size = int.from_bytes(packet[4:6]) + 40
        source, destination = packet[8:24], packet[24:40]
        while protocol in EXTENSIONS and len(packet) >= start + 2:
            protocol, start = packet[start], start + (packet[start + 1] + 1) * 8
    else:
        return None
    if protocol not in (TCP, UDP) or len(packet) < start + 8 or start < 20:
        return None
    size = size if size > start else len(packet)  # offload leaves the length out
    header = packet[start:size]
    ports = int.from_bytes(header[:2]), int.from_bytes(header[2:4])
    ends = (source, ports[0]), (destination, ports[1])
    return Segment(number, time_ns, protocol, *ends, header, size, size - start, identity)


def describe(end: End) -> str:
    """An address and port in the usual notation."""
    address = ipaddress.ip_address(end[0])
    return f"[{address}]:{end[1]}" if address.version == 6 else f"{address}:{end[1]}"
