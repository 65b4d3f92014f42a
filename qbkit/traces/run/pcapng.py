"""Read pcapng files (draft-ietf-opsawg-pcapng) packet by packet, with memory for one packet."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from qbkit.errors import TraceError
from qbkit.traces.run.frames import LINK_HEADER, OTHER_LINK

MAGIC = b"\x0a\x0d\x0d\x0a"
INTERFACE, OBSOLETE, SIMPLE, ENHANCED, SECRETS = 1, 2, 3, 6, 10
"""Types of blocks (§4, appendix A)."""
KEY_LOG = 0x544C534B
"""The kind of secrets that SSLKEYLOGFILE holds."""
LONGEST_BLOCK = 16 << 20
LATEST_NS = (1 << 63) - 1
TIME_RESOLUTION, TIME_OFFSET = 9, 14
"""The options if_tsresol and if_tsoffset."""

Broken = Callable[[str], None]
"""Called with the place where a file is damaged."""
LeftOut = Callable[[str, int], None]
"""Called with a kind of packet that cannot be read, for each one: what it is, and how many."""
WITHOUT_TIME = "packets without a time (simple packet blocks), which are left out"


class Record(NamedTuple):
    """One captured packet."""

    number: int
    """Of the packets in the file, from 1 on; those left out count too."""
    time_ns: int
    """Since 1970."""
    link: int
    """Type of the link layer, as in pcap."""
    frame: bytes
    """The captured part."""
    frame_bytes: int
    """On the wire."""


class Interface(NamedTuple):
    """Where packets were captured."""

    number: int
    link: int
    units: int
    """Time units per second."""
    offset_s: int
    """What its times count from, since 1970."""

    def time_ns(self, units: int) -> int:
        """A time of a packet, since 1970."""
        return units * 10**9 // self.units + self.offset_s * 10**9

    @property
    def is_known(self) -> bool:
        """Whether its link layer can be read."""
        return self.link in LINK_HEADER


def records(file: BinaryIO, name: str, broken: Broken, left_out: LeftOut) -> Iterator[Record]:
    """Yield the packets in file order.

    At damage or truncation, it calls ``broken`` and ends. Packets without a time, and those of an
    interface whose link type cannot be read, are ``left_out``. Raises TraceError where no interface
    can be read.
    """
    interfaces: list[Interface] = []
    known, unknown, packets = 0, None, 0
    for place, kind, body, order in _blocks(file, broken):
        if kind == INTERFACE and len(body) >= 12:
            link = struct.unpack_from(f"{order}H", body)[0]
            interface = Interface(len(interfaces), link, *_clock(body[8:-4], order))
            interfaces.append(interface)
            known, unknown = known + interface.is_known, unknown or interface
            if not interface.is_known:
                left_out(_of_interface(interface), 0)  # name it even if it has no packet
        elif kind == 0:  # a new section, with interfaces of its own
            interfaces = []
        elif kind == SIMPLE:
            packets += 1
            left_out(WITHOUT_TIME, 1)
        elif kind in (ENHANCED, OBSOLETE) and len(body) >= 24:
            number, captured, time, on_wire = _packet_head(kind, body, order)
            if number >= len(interfaces) or captured > len(body) - 24:
                return broken(f"at byte {place}")
            interface = interfaces[number]
            packets += 1
            if interface.is_known:
                time_ns = interface.time_ns(time)
                if not 0 <= time_ns <= LATEST_NS:
                    return broken(f"at byte {place} (a packet of before 1970 or after 2261)")
                frame = body[20 : 20 + captured]
                yield Record(packets, time_ns, interface.link, frame, on_wire)
            else:
                left_out(_of_interface(interface), 1)
    if interfaces and not known and unknown is not None:
        raise TraceError(OTHER_LINK.format(file=name, link=unknown.link))
    return None


def secrets(file: BinaryIO) -> Iterator[bytes]:
    """Yield the TLS key logs that a file holds, which may be damaged; none of one in pcap."""
    file.seek(0)
    for _, kind, body, order in _blocks(file, lambda _: None) if _is_pcapng(file) else ():
        if kind == SECRETS and len(body) >= 12:
            what, length = struct.unpack_from(f"{order}II", body)
            if what == KEY_LOG:
                yield body[8 : 8 + length]


def _is_pcapng(file: BinaryIO) -> bool:
    magic = file.read(len(MAGIC))
    file.seek(0)
    return magic == MAGIC


def _blocks(file: BinaryIO, broken: Broken) -> Iterator[tuple[int, int, bytes, str]]:
    """Yield place, type, content and byte order of each block; a section's start has type 0."""
    order, place = "<", 0
    while head := file.read(8):
        if head[:4] == MAGIC:
            mark = file.read(4)
            order = "<" if mark == b"\x4d\x3c\x2b\x1a" else ">"
            file.seek(-4, 1)
        kind, length = struct.unpack(f"{order}II", head) if len(head) == 8 else (0, 0)
        body = file.read(length - 8) if 12 <= length <= LONGEST_BLOCK else b""
        if len(body) < max(length, 12) - 8:
            return broken(f"at byte {place}")
        yield place, 0 if head[:4] == MAGIC else kind, body, order
        place += length
    return None


def _packet_head(kind: int, body: bytes, order: str) -> tuple[int, int, int, int]:
    """Interface, captured bytes, time in units of the interface, and bytes on the wire."""
    number, high, low, captured, on_wire = struct.unpack_from(f"{order}5I", body)
    if kind == OBSOLETE:  # 16 bits of interface, then 16 of a count of drops
        (number,) = struct.unpack_from(f"{order}H", body)
    return number, captured, high << 32 | low, on_wire


def _of_interface(interface: Interface) -> str:
    return (
        f"packets of interface {interface.number}, whose link type {interface.link} cannot be "
        "read, which are left out"
    )


def known_link(link: int, name: str) -> int:
    """Return the type of a link layer; raises TraceError if it is unsupported."""
    if link not in LINK_HEADER:
        raise TraceError(OTHER_LINK.format(file=name, link=link))
    return link


def _clock(options: bytes, order: str) -> tuple[int, int]:
    """Time units per second of an interface, and the s since 1970 at which its times begin."""
    units, offset_s, at = 10**6, 0, 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from(f"{order}HH", options, at)
        value = options[at + 4 : at + 4 + length]
        if code == TIME_RESOLUTION and length == len(value) == 1:
            units = int(1 << (value[0] & 127) if value[0] & 128 else 10 ** value[0])
        elif code == TIME_OFFSET and length == len(value) == 8:
            (offset_s,) = struct.unpack(f"{order}q", value)
        at += 4 + (length + 3) // 4 * 4
    return units, offset_s
