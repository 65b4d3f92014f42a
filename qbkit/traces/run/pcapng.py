"""Read pcapng files (draft-ietf-opsawg-pcapng) packet by packet, with memory for one packet."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from qbkit.errors import TraceError
from qbkit.traces.run.frames import LINK_HEADER, OTHER_LINK

MAGIC = b"\x0a\x0d\x0d\x0a"
INTERFACE, SIMPLE, ENHANCED = 1, 3, 6
"""Types of blocks (§4)."""
LONGEST_BLOCK = 16 << 20
LATEST_NS = (1 << 63) - 1
TIME_RESOLUTION = 9
"""The option if_tsresol."""

Broken = Callable[[str], None]
"""Called with the place where a file is damaged."""


class Record(NamedTuple):
    """One captured packet."""

    time_ns: int
    """Since 1970."""
    link: int
    """Type of the link layer, as in pcap."""
    frame: bytes
    """The captured part."""
    frame_bytes: int
    """On the wire."""


def records(file: BinaryIO, name: str, broken: Broken) -> Iterator[Record]:
    """Yield the packets in file order.

    At damage or truncation, it calls ``broken`` and ends. Raises TraceError for unsupported link
    types.
    """
    order, place = "<", 0
    interfaces: list[tuple[int, int]] = []
    while head := file.read(8):
        if head[:4] == MAGIC:
            mark = file.read(4)
            order = "<" if mark == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces = []
            file.seek(-4, 1)
        kind, length = struct.unpack(f"{order}II", head) if len(head) == 8 else (0, 0)
        body = file.read(length - 8) if 12 <= length <= LONGEST_BLOCK else b""
        if len(body) < max(length, 12) - 8:
            return broken(f"at byte {place}")
        if kind == INTERFACE and len(body) >= 12:
            link = known_link(struct.unpack_from(f"{order}H", body)[0], name)
            interfaces.append((link, _units(body[8:-4], order)))
        elif kind == ENHANCED and len(body) >= 24:
            number, high, low, captured, on_wire = struct.unpack_from(f"{order}5I", body)
            if number >= len(interfaces) or captured > len(body) - 24:
                return broken(f"at byte {place}")
            link, units = interfaces[number]
            time_ns = (high << 32 | low) * 10**9 // units
            if time_ns > LATEST_NS:
                return broken(f"at byte {place} (a packet of a year after 2261)")
            yield Record(time_ns, link, body[20 : 20 + captured], on_wire)
        elif kind == SIMPLE:
            return broken(f"at byte {place} (a packet without a time)")
        place += length
    return None


def known_link(link: int, name: str) -> int:
    """Return the type of a link layer; raises TraceError if it is unsupported."""
    if link not in LINK_HEADER:
        raise TraceError(OTHER_LINK.format(file=name, link=link))
    return link


def _units(options: bytes, order: str) -> int:
    """Time units per second of an interface."""
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from(f"{order}HH", options, at)
        if code == TIME_RESOLUTION and length == 1 and at + 4 < len(options):
            value = options[at + 4]
            return int(1 << (value & 127) if value & 128 else 10**value)
        at += 4 + (length + 3) // 4 * 4
    return 10**6
