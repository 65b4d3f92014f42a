"""Captures (pcap, pcapng) packet by packet, with memory for one packet."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from qbkit.errors import TraceError
from qbkit.traces.run.frames import LINK_HEADER, OTHER_LINK, TCP, UDP, VLAN
from qbkit.traces.run.pcap import FILE_HEADER, MAGIC, MAX_CAPTURED, PCAPNG, RECORD_HEADER

INTERFACE, SIMPLE, ENHANCED = 1, 3, 6
"""Types of pcapng's blocks (draft-ietf-opsawg-pcapng §4)."""
LONGEST_BLOCK = 16 << 20
TIME_RESOLUTION = 9
"""pcapng's option if_tsresol."""
ETHERNET = 1
EXTENSIONS = (0, 43, 60)
"""IPv6 headers that may stand before TCP or UDP: hop-by-hop, routing, destination."""

Broken = Callable[[str], None]
End = tuple[bytes, int]
"""Address and port."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One TCP or UDP packet."""

    number: int
    """Of the record in the file, from 1 on."""
    time_ns: int
    """Since 1970."""
    protocol: int
    source: End
    destination: End
    header: bytes
    """From the TCP or UDP header on, as far as captured."""
    size_bytes: int
    """Of the IP packet."""
    transport_bytes: int
    """From the TCP or UDP header on, on the wire."""


class Connection:
    """Two ends that talk, and how much each of them says."""

    def __init__(self, segment: Segment) -> None:
        self.protocol = segment.protocol
        self.ends = (segment.source, segment.destination)
        self.bytes = dict.fromkeys(self.ends, 0)
        self.first, self.packets, self.cut = segment.number, 0, 0

    def take(self, segment: Segment) -> None:
        """One more packet of it."""
        self.packets += 1
        self.bytes[segment.source] += segment.transport_bytes
        self.cut += len(segment.header) < segment.transport_bytes

    def __str__(self) -> str:
        kind = "tcp" if self.protocol == TCP else "udp"
        first, second = (describe(end) for end in self.ends)
        return f"{kind} {first} to {second} ({self.packets} packets)"


def segments(file: BinaryIO, name: str, broken: Broken) -> Iterator[Segment]:
    """TCP and UDP packets in the order of the file.

    What is damaged or cut off ends it, with a call of ``broken``. Raises TraceError for what is no
    capture and for link types that cannot be read.
    """
    magic = file.read(4)
    file.seek(0)
    if magic == PCAPNG:
        records = _pcapng(file, name, broken)
    elif magic in MAGIC:
        records = _pcap(file, name, broken)
    else:
        raise TraceError(f"{name} is no capture: neither pcap nor pcapng")
    for number, (time_ns, link, frame) in enumerate(records, 1):
        packet = _ip_packet(frame, link)
        found = packet and _segment(number, time_ns, packet)
        if found:
            yield found


def _pcap(file: BinaryIO, name: str, broken: Broken) -> Iterator[tuple[int, int, bytes]]:
    header = file.read(FILE_HEADER)
    if len(header) < FILE_HEADER:
        raise TraceError(f"{name} is no capture: its header is cut off")
    order, unit_ns = MAGIC[header[:4]]
    link = _known_link(struct.unpack_from(f"{order}I", header, 20)[0] & 0xFFFF, name)
    unpack = struct.Struct(f"{order}IIII").unpack
    place = FILE_HEADER
    while head := file.read(RECORD_HEADER):
        if len(head) < RECORD_HEADER:
            return broken(f"at byte {place}")
        seconds, fraction, captured, _ = unpack(head)
        frame = file.read(captured) if captured <= MAX_CAPTURED else b""
        if captured > MAX_CAPTURED or len(frame) < captured:
            return broken(f"at byte {place}")
        yield seconds * 10**9 + fraction * unit_ns, link, frame
        place += RECORD_HEADER + captured
    return None


def _pcapng(file: BinaryIO, name: str, broken: Broken) -> Iterator[tuple[int, int, bytes]]:
    order, place = "<", 0
    interfaces: list[tuple[int, int]] = []
    while head := file.read(8):
        if head[:4] == PCAPNG:
            mark = file.read(4)
            order = "<" if mark == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces = []
            file.seek(-4, 1)
        kind, length = struct.unpack(f"{order}II", head) if len(head) == 8 else (0, 0)
        body = file.read(length - 8) if 12 <= length <= LONGEST_BLOCK else b""
        if len(body) < max(length, 12) - 8:
            return broken(f"at byte {place}")
        if kind == INTERFACE and len(body) >= 12:
            link = _known_link(struct.unpack_from(f"{order}H", body)[0], name)
            interfaces.append((link, _units(body[8:-4], order)))
        elif kind == ENHANCED and len(body) >= 24:
            number, high, low, captured = struct.unpack_from(f"{order}IIII", body)
            if number >= len(interfaces) or captured > len(body) - 24:
                return broken(f"at byte {place}")
            link, units = interfaces[number]
            time_ns = (high << 32 | low) * 10**9 // units
            yield time_ns, link, body[20 : 20 + captured]
        elif kind == SIMPLE:
            return broken(f"at byte {place} (a packet without a time)")
        place += length
    return None


def _units(options: bytes, order: str) -> int:
    """Units of an interface's times in a second."""
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from(f"{order}HH", options, at)
        if code == TIME_RESOLUTION and length == 1 and at + 4 < len(options):
            value = options[at + 4]
            return int(1 << (value & 127) if value & 128 else 10**value)
        at += 4 + (length + 3) // 4 * 4
    return 10**6


def _known_link(link: int, name: str) -> int:
    if link not in LINK_HEADER:
        raise TraceError(OTHER_LINK.format(file=name, link=link))
    return link


def _ip_packet(frame: bytes, link: int) -> bytes | None:
    """What follows the link layer, if that may be an IP packet."""
    start = LINK_HEADER[link]
    if link == ETHERNET:
        kind = int.from_bytes(frame[12:14])
        while kind in VLAN:
            start += 4
            kind = int.from_bytes(frame[start - 2 : start])
        if kind not in (0x0800, 0x86DD):
            return None
    return frame[start:]


def _segment(number: int, time_ns: int, packet: bytes) -> Segment | None:
    """The TCP or UDP packet in an IP packet; None for others and for fragments behind the first."""
    version = packet[0] >> 4 if packet else 0
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
    return Segment(number, time_ns, protocol, *ends, header, size, size - start)


def describe(end: End) -> str:
    """An address and port as people write it."""
    address = ipaddress.ip_address(end[0])
    return f"[{address}]:{end[1]}" if address.version == 6 else f"{address}:{end[1]}"
