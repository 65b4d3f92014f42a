"""Classic pcap files to arrays: the walk from record to record is a loop, all else is numpy."""

from __future__ import annotations

import struct
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from qbkit.errors import StoreError

IntArray = npt.NDArray[np.int64]
UintArray = npt.NDArray[np.uint64]
ByteArray = npt.NDArray[np.uint8]

FILE_HEADER, RECORD_HEADER, ETHERNET_HEADER = 24, 16, 14
MAX_CAPTURED = 262_144
"""libpcap's own largest snaplen: a record that claims more is damaged."""
KEY_BYTES = 96
"""How much of a packet, from its IP header on, tells it from others."""
MAGIC = {  # first four bytes → (byte order, nanoseconds per unit of the fraction)
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
LINK_HEADER = {1: 14, 101: 0, 113: 16, 276: 20}
"""Bytes before the IP header: Ethernet, raw IP, Linux cooked captures 1 and 2."""
TCP, UDP = 6, 17


@dataclass(frozen=True)
class Packets:
    """TCP and UDP packets of a capture in the order of their time stamps, one array a field."""

    time_ns: IntArray
    """Time stamp, ns since 1970."""
    frame_bytes: IntArray
    """Length on the link, as an Ethernet frame without FCS."""
    source: UintArray
    """Source address as a number (IPv4; the last 8 bytes of IPv6)."""
    source_port: IntArray
    destination_port: IntArray
    key: UintArray
    """Equal for one packet on both sides of a router: TTL and checksums do not enter."""

    def __len__(self) -> int:
        return len(self.time_ns)

    def take(self, chosen: npt.NDArray[np.bool_] | IntArray) -> Packets:
        """The packets chosen by a mask or by indices."""
        return Packets(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def read_pcap(path: str | Path) -> Packets:
    """All TCP and UDP packets of a classic pcap file (µs or ns; Ethernet, raw IP, Linux cooked).

    A truncated or damaged file gives what can be read before the damage, and a warning that says
    where it is. Raises StoreError for anything else than a classic pcap file.
    """
    data = _read(Path(path))
    order, unit_ns = MAGIC[data[:4]]
    link = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
    if link not in LINK_HEADER:
        raise StoreError(
            f"{path} has link type {link}; Ethernet (1), raw IP (101) and Linux cooked (113, 276) "
            "can be read"
        )
    at, captured = _records(data, order, path)
    octets = np.frombuffer(data, np.uint8)
    header = _gather(octets, at, RECORD_HEADER).view(np.dtype(f"{order}u4")).astype(np.int64)
    time_ns = header[:, 0] * 10**9 + header[:, 1] * unit_ns
    skip = LINK_HEADER[link]
    frame_bytes = header[:, 3] - skip + ETHERNET_HEADER
    packets = _parse(octets, at + RECORD_HEADER + skip, captured - skip, time_ns, frame_bytes)
    return packets.take(np.argsort(packets.time_ns, kind="stable"))


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from None
    if data[:4] == b"\x0a\x0d\x0d\x0a":
        raise StoreError(f"{path} is pcapng; convert it with: editcap -F pcap {path} OUT.pcap")
    if data[:4] not in MAGIC or len(data) < FILE_HEADER:
        raise StoreError(f"{path} is no pcap file")
    return data


def _records(data: bytes, order: str, path: str | Path) -> tuple[IntArray, IntArray]:
    """Where each record begins, and how many of its bytes were captured."""
    unpack, end = struct.Struct(order + "I").unpack_from, len(data)
    starts, lengths = [], []
    at = FILE_HEADER
    while at + RECORD_HEADER <= end:
        (length,) = unpack(data, at + 8)
        if length > MAX_CAPTURED or at + RECORD_HEADER + length > end:
            break
        starts.append(at)
        lengths.append(length)
        at += RECORD_HEADER + length
    if at != end:
        warnings.warn(
            f"{path} is damaged or cut off at byte {at} of {end}, after {len(starts)} packets; "
            "what comes before is used",
            stacklevel=3,
        )
    return np.array(starts, np.int64), np.array(lengths, np.int64)


def _gather(octets: ByteArray, at: IntArray, count: int) -> ByteArray:
    """(len(at), count) bytes from each position; zero behind the end of the file."""
    if len(at) and at[-1] + count > len(octets):
        octets = np.concatenate([octets, np.zeros(count, np.uint8)])
    windows = np.lib.stride_tricks.sliding_window_view(octets, count)
    return windows[at] if len(at) else np.empty((0, count), np.uint8)


def _parse(
    octets: ByteArray, at: IntArray, captured: IntArray, time_ns: IntArray, frame_bytes: IntArray
) -> Packets:
    """Dissect from the IP headers on; what is neither TCP nor UDP is left out."""
    block = _gather(octets, at, KEY_BYTES).copy()
    block[np.arange(KEY_BYTES) >= captured[:, None]] = 0
    version = block[:, 0] >> 4
    four, six = version == 4, version == 6
    header = np.where(four, (block[:, 0] & 15).astype(np.int64) * 4, 40)
    protocol = np.where(four, block[:, 9], block[:, 6])
    known = (four | six) & ((protocol == TCP) | (protocol == UDP)) & (captured >= header + 8)
    block, header, four = block[known], header[known], four[known]
    source = np.where(four, _number(block[:, 12:16]), _number(block[:, 16:24]))
    rows = np.arange(len(block))

    def port(offset: int) -> IntArray:
        high, low = block[rows, header + offset], block[rows, header + offset + 1]
        return high.astype(np.int64) << 8 | low

    source_port, destination_port = port(0), port(2)
    key = _keys(block, header, four, protocol[known] == UDP)
    return Packets(time_ns[known], frame_bytes[known], source, source_port, destination_port, key)


def _number(octets: ByteArray) -> UintArray:
    """Big-endian bytes of each row as one number."""
    total = np.zeros(len(octets), np.uint64)
    for column in range(octets.shape[1]):
        total = total << np.uint64(8) | octets[:, column].astype(np.uint64)
    return total


def _keys(
    block: ByteArray, header: IntArray, four: npt.NDArray[np.bool_], udp: npt.NDArray[np.bool_]
) -> UintArray:
    """64-bit hash of a packet without what a router changes (TTL or hop limit, IP checksum).

    The IP identification counts for TCP alone: UDP's is not unique, and some testbeds rewrite it.
    """
    block[:, 1] = 0  # type of service: a queue may mark it
    block[four, 8] = 0
    block[four, 10] = 0
    block[four, 11] = 0
    block[~four, 7] = 0
    block[four & udp, 4] = 0
    block[four & udp, 5] = 0
    words = block.view(np.uint64)
    key = np.full(len(block), 0x9E3779B97F4A7C15, np.uint64)
    for column in range(words.shape[1]):
        key = (key ^ words[:, column]) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(29)
    return key
