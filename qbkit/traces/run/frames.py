"""Captured frames as arrays: Ethernet (with VLAN tags) or cooked, IPv4 or IPv6, TCP or UDP."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qbkit.traces.arrays import BoolArray, ByteArray, Chosen, IntArray, UintArray, as_slice

ETHERNET = 1
ETHERNET_HEADER = 14
LINK_HEADER = {
    **{ETHERNET: ETHERNET_HEADER, 113: 16, 276: 20},
    **{0: 4, 108: 4},
    **{12: 0, 101: 0, 228: 0, 229: 0},
}
"""Link type → bytes before the IP header: Ethernet and Linux cooked captures 1 and 2; the loopback
of BSD and of OpenBSD; raw IP, by its number on BSD and in files, and of version 4 or 6 alone."""
OTHER_LINK = (
    "{file} has link type {link}; Ethernet (1), Linux cooked (113, 276), BSD's loopback (0, 108) "
    "and raw IP (12, 101, 228, 229) can be read"
)
COPIES = (
    "{file} holds {count} copies of frames (of a bridge, or of several places), which are left out"
)
TYPED = (ETHERNET, 113)
"""Link types whose header ends with the type of what follows, a VLAN tag or IP."""
VLAN = (0x8100, 0x88A8, 0x9100)
VLAN_TAG, VLAN_TAGS = 4, 2
TCP, UDP = 6, 17
IP_BLOCK = 40
"""The size of an IPv6 header, more than that of an IPv4 header without options."""
ECN_BITS = 3
KEY_BYTES = 40
"""How many bytes from the TCP or UDP header on identify a packet: TCP's header with time stamps, or
32 bytes of UDP payload. A snaplen of 74 (IPv6: 94) covers them, so that captures with different
snaplens agree."""
LOOK_AHEAD = 512
"""Dissection reads at most this far from the start of a record in the file."""
SEED, PRIME = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


class Ecn(IntEnum):
    """The ECN field: what a sender asks for, and the mark of a queue."""

    NOT_ECT = 0
    ECT_1 = 1
    ECT_0 = 2
    CE = 3


class Ways(NamedTuple):
    """The pairs of ends between which the packets of a capture travel, one array per field."""

    source: UintArray
    """Source address, as returned by `address_number`."""
    destination: UintArray
    source_port: UintArray
    """0 where packets are neither TCP nor UDP."""
    destination_port: UintArray

    def number(self) -> UintArray:
        """A 64-bit hash of each way."""
        ports = self.source_port << np.uint64(16) | self.destination_port
        return mixed((self.source, self.destination, ports))


class Columns(NamedTuple):
    """What `Packets` holds of each packet: 25 bytes."""

    time_ns: IntArray
    frame_bytes: UintArray
    way: UintArray
    key: UintArray
    ecn: ByteArray


@dataclass(frozen=True)
class Packets:
    """IP packets of a capture in the order of their time stamps, one array per field."""

    time_ns: IntArray
    """Time stamp, ns since 1970."""
    frame_bytes: UintArray
    """Length on the link, as an untagged Ethernet frame without FCS."""
    way: UintArray
    """Index into `ways`."""
    key: UintArray
    """The same for one packet on both sides of a router: it ignores TTL, ECN and checksums."""
    ecn: ByteArray
    """ECN field of the IP header (RFC 3168), as in `Ecn`."""
    ways: Ways

    def __len__(self) -> int:
        return len(self.time_ns)

    def take(self, chosen: Chosen) -> Packets:
        """The chosen packets; a view where they lie together."""
        index = as_slice(chosen)
        return replace(self, **{name: getattr(self, name)[index] for name in Columns._fields})

    def without_keys(self) -> Packets:
        """The packets once they are matched; they can only be sliced then."""
        return replace(self, key=np.empty(0, np.uint64))


def address_number(address: str) -> int:
    """An IPv4 or IPv6 address as in `Packets.source`; raises ValueError for anything else.

    IPv4 is the number itself; IPv6 is folded to 64 bits.
    """
    found = ipaddress.ip_address(address)
    high, low = divmod(int(found), 2**64)
    return (high * int(SEED) + low) % 2**64


def gather(octets: ByteArray, at: IntArray, count: int) -> ByteArray:
    """(len(at), count) bytes, contiguous, from each position; ``octets`` must reach that far."""
    # One void scalar per row copies whole rows; an index over bytes is five times slower.
    rows = np.ndarray((len(octets) - count + 1,), f"V{count}", octets, strides=(1,))
    return rows[at].view(np.uint8).reshape(len(at), count)


def dissect(
    octets: ByteArray,
    at: IntArray,
    captured: IntArray,
    frame_bytes: IntArray,
    time_ns: IntArray,
    link: int,
    every_ip: bool = False,
) -> Packets:
    """The TCP and UDP packets among frames that start at ``at``, with ``captured`` bytes each.

    It leaves out fragments after the first, IPv6 with extension headers, and other protocols, which
    have no ports. With ``every_ip`` it includes them, with ports 0. Each packet has a way of its
    own here, even if others are the same.
    """
    skip, is_ip = _link_header(octets, at, link)
    block = gather(octets, at + skip, IP_BLOCK)
    version = block[:, 0] >> 4
    four = version == 4
    header = np.where(four, (block[:, 0] & 15).astype(np.int64) * 4, 40)
    protocol = np.where(four, block[:, 9], block[:, 6])
    whole = ~four | ((block[:, 6] & 0x1F) | block[:, 7] == 0)
    named = whole & ((protocol == TCP) | (protocol == UDP))
    # The last fragment of a packet may have less than the 8 bytes that its ports are among.
    least = skip + header + np.where(named, 8, 0)
    known = is_ip & (four | (version == 6)) & (header >= 20) & (captured >= least)
    if not every_ip:
        known &= named
    if not known.all():
        block, header, four, protocol = block[known], header[known], four[known], protocol[known]
        at, skip, captured = at[known], skip[known], captured[known]
        frame_bytes, time_ns, named = frame_bytes[known], time_ns[known], named[known]
    ends = _ip_bytes(block, four)
    present = np.minimum(captured - skip, np.where(ends, ends, captured)) - header
    transport = gather(octets, at + skip + header, KEY_BYTES)
    source, destination = _addresses(block, four)
    ports = (np.where(named, _number(transport, offset, 2), np.uint64(0)) for offset in (0, 2))
    udp = protocol == UDP
    # UDP's identification is not unique, and some testbeds rewrite it.
    identity = np.where(four & ~udp, _number(block, 4, 2), np.uint64(0))
    key = _keys(transport, present, udp, (source, destination, identity))
    length = frame_bytes - skip + ETHERNET_HEADER
    ecn = np.where(four, block[:, 1], block[:, 1] >> 4) & np.uint8(ECN_BITS)
    way = np.arange(len(key), dtype=np.uint64)
    return Packets(
        time_ns, length.astype(np.uint64), way, key, ecn, Ways(source, destination, *ports)
    )


def _link_header(octets: ByteArray, at: IntArray, link: int) -> tuple[IntArray, BoolArray]:
    """Bytes before each IP header, with VLAN tags, and whether the frame's type is IP."""
    skip = np.full(len(at), LINK_HEADER[link], np.int64)
    if link not in TYPED:
        return skip, np.ones(len(at), bool)
    kind = _number(gather(octets, at + skip - 2, 2), 0, 2)
    for _ in range(VLAN_TAGS):
        tagged = np.isin(kind, VLAN)
        if not tagged.any():
            break
        skip[tagged] += VLAN_TAG
        kind[tagged] = _number(gather(octets, at[tagged] + skip[tagged] - 2, 2), 0, 2)
    return skip, (kind == 0x0800) | (kind == 0x86DD)


def _ip_bytes(block: ByteArray, four: BoolArray) -> IntArray:
    """Length of each IP packet from its header; 0 where offload left it out."""
    length = np.where(four, _number(block, 2, 2), _number(block, 4, 2)).astype(np.int64)
    return np.where(four | (length == 0), length, length + 40)


def _addresses(block: ByteArray, four: BoolArray) -> tuple[UintArray, UintArray]:
    """Source and destination, as returned by `address_number`."""
    source, destination = _number(block, 12, 4), _number(block, 16, 4)
    if not four.all():
        six = block[~four]
        source[~four] = _number(six, 8, 8) * SEED + _number(six, 16, 8)
        destination[~four] = _number(six, 24, 8) * SEED + _number(six, 32, 8)
    return source, destination


def _number(block: ByteArray, offset: int, count: int) -> UintArray:
    """``count`` bytes (2, 4 or 8) of each row from ``offset`` on, big-endian, as one number."""
    columns = np.ascontiguousarray(block[:, offset : offset + count])
    return columns.view(f">u{count}")[:, 0].astype(np.uint64)


def _keys(
    transport: ByteArray, present: IntArray, udp: BoolArray, others: tuple[UintArray, ...]
) -> UintArray:
    """64-bit hashes of what no router changes: addresses, ports, the start of TCP or UDP.

    Only the bytes ``present`` of ``transport`` count: padding or the next record follows. The
    checksum does not count, as offload may fill it in between the two captures.
    """
    short = np.flatnonzero(present < KEY_BYTES)
    if len(short):
        beyond = np.arange(KEY_BYTES) >= present[short, None]
        transport[short] = np.where(beyond, np.uint8(0), transport[short])
    words = transport.view("<u8")
    first = words[:, 0] & np.where(udp, np.uint64(2**48 - 1), np.uint64(2**64 - 1))
    third = words[:, 2] & np.where(udp, np.uint64(2**64 - 1), np.uint64(2**64 - 2**16))
    return mixed((first, words[:, 1], third, words[:, 3], words[:, 4], *others))


def mixed(parts: Sequence[npt.NDArray[Any]]) -> UintArray:
    """64-bit hashes of the rows whose columns are ``parts``."""
    found = np.full(len(parts[0]), SEED)
    for part in parts:
        found ^= part
        found *= PRIME
        found ^= found >> np.uint64(29)
    return found
