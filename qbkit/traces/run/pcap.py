"""Captures (pcap, pcapng) as arrays; pcap files without a loop over the packets."""

from __future__ import annotations

import io
import os
import struct
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from qbkit.errors import StoreError, TraceError
from qbkit.opening import open_plain
from qbkit.traces.arrays import ByteArray, IntArray
from qbkit.traces.run import pcapng
from qbkit.traces.run.frames import (
    LINK_HEADER,
    LOOK_AHEAD,
    OTHER_LINK,
    Packets,
    dissect,
    gather,
)

FILE_HEADER, RECORD_HEADER = 24, 16
MAX_CAPTURED = 262_144
"""libpcap's largest snaplen: a record that claims more is damaged."""
MAGIC = {  # first four bytes → (byte order, nanoseconds per unit of the fraction)
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
ETHERNET = 1
CHUNK_BYTES = 1 << 20
CHUNK_RECORDS = 1 << 14
"""A number of records that fits in the processor's cache."""
STEPS = 64


@dataclass(frozen=True)
class _File:
    """A capture in memory, with `LOOK_AHEAD` zero bytes after its end."""

    octets: ByteArray
    size: int
    order: str
    unit_ns: int
    link: int


def read_packets(path: str | Path, *, whole: bool = False, every_ip: bool = False) -> Packets:
    """All TCP and UDP packets of a pcap or pcapng file, compressed or not (`LINK_HEADER`).

    ``every_ip`` adds the other IP packets (`qbkit.traces.run.frames.dissect`).

    From a truncated or damaged file it returns the packets before the damage, and warns where the
    damage is. With ``whole`` it raises StoreError instead, as for a file that is no capture.
    """
    damage: list[str] = []
    with _stream(
        Path(path), lambda where: damage.append(f"is damaged or cut off {where}")
    ) as stream:
        read = _read_pcapng if stream.read(4) == pcapng.MAGIC else _read_pcap
        stream.seek(0)
        parts, damage_inside, left_out = read(stream, Path(path), every_ip)
    damage += [damage_inside] if damage_inside else []
    if damage and whole:
        raise StoreError(f"{Path(path).name} {damage[0]}")
    if damage:
        warnings.warn(f"{path} {damage[0]}; what comes before is used", stacklevel=2)
    for what, times in left_out.items():
        warnings.warn(f"{path}: {what}: {times}", stacklevel=2)
    names = Packets.__dataclass_fields__
    packets = Packets(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))
    if (np.diff(packets.time_ns) < 0).any():
        return packets.take(np.argsort(packets.time_ns, kind="stable"))
    return packets


Read = tuple[list[Packets], str, Counter[str]]
"""Packets in parts, a description of damage, and how many packets were left out for what."""


def _read_pcap(stream: BinaryIO, path: Path, every_ip: bool) -> Read:
    """The packets of a classic pcap file (µs or ns)."""
    file = _open(stream, path)
    at, stopped = _walk(file)
    parts = [
        _dissect(file, at[i : i + CHUNK_RECORDS], every_ip)
        for i in range(0, max(len(at), 1), CHUNK_RECORDS)
    ]
    if stopped == file.size:
        return parts, "", Counter()
    where = f"at byte {stopped} of {file.size}, after {len(at)} packets"
    return parts, f"is damaged or cut off {where}", Counter()


def _read_pcapng(stream: BinaryIO, path: Path, every_ip: bool) -> Read:
    """The packets of a pcapng file, one part per link type."""
    damage: list[str] = []
    left_out: Counter[str] = Counter()
    by_link: dict[int, list[pcapng.Record]] = {}
    try:
        for record in pcapng.records(
            stream, str(path), damage.append, lambda what, times: left_out.update({what: times})
        ):
            by_link.setdefault(record.link, []).append(record)
    except TraceError as error:
        raise StoreError(str(error)) from None
    parts = [_dissect_records(link, found, every_ip) for link, found in by_link.items()]
    count = sum(map(len, by_link.values()))
    words = f"is damaged or cut off {damage[0]}, after {count} packets" if damage else ""
    if words and not count:
        raise StoreError(f"{path} {words}; capture again")
    return parts or [_dissect_records(ETHERNET, [], every_ip)], words, left_out


def _dissect_records(link: int, found: Sequence[pcapng.Record], every_ip: bool) -> Packets:
    captured = np.array([len(record.frame) for record in found], np.int64)
    octets = b"".join(record.frame for record in found) + bytes(LOOK_AHEAD)
    frame_bytes = np.array([record.frame_bytes for record in found], np.int64)
    time_ns = np.array([record.time_ns for record in found], np.int64)
    return dissect(
        np.frombuffer(octets, np.uint8),
        np.cumsum(captured) - captured,
        captured,
        np.maximum(frame_bytes, captured),
        time_ns,
        link,
        every_ip,
    )


def _stream(path: Path, broken: pcapng.Broken) -> BinaryIO:
    try:
        return open_plain(path, broken)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from None


def _open(stream: BinaryIO, path: Path) -> _File:
    try:
        octets = np.zeros(os.fstat(stream.fileno()).st_size + LOOK_AHEAD, np.uint8)
        size = cast("io.BufferedReader", stream).readinto(octets.data[:-LOOK_AHEAD])
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from None
    magic = octets[:4].tobytes()
    if magic not in MAGIC or size < FILE_HEADER:
        raise StoreError(f"{path} is no capture: neither pcap nor pcapng")
    order, unit_ns = MAGIC[magic]
    link = struct.unpack_from(order + "I", octets.data, 20)[0] & 0xFFFF
    if link not in LINK_HEADER:
        raise StoreError(OTHER_LINK.format(file=path, link=link))
    return _File(octets, size, order, unit_ns, link)


def _walk(file: _File) -> tuple[IntArray, int]:
    """The start of each record, and the end of the walk (the file's size if nothing is damaged).

    Each record gives the start of the next, which would need a loop. Instead, we find all positions
    that look like a record at once. From a known record on, we accept each candidate that begins
    where its predecessor ends. This is the same walk, verified link by link, so a wrong guess costs
    time but never a packet. Where candidates are missing, a few plain steps fill the gap.
    """
    likely, after = _likely(file)
    breaks = np.flatnonzero(after[:-1] != likely[1:])
    parts: list[IntArray] = []
    at, stopped = FILE_HEADER, False
    while not stopped:
        i = int(np.searchsorted(likely, at))
        if i < len(likely) and likely[i] == at:
            k = int(np.searchsorted(breaks, i))
            last = int(breaks[k]) if k < len(breaks) else len(likely) - 1
            parts.append(likely[i : last + 1])
            at = int(after[last])
        else:
            steps, at, stopped = _step(file, at)
            parts.append(steps)
    return np.concatenate(parts), at


def _likely(file: _File) -> tuple[IntArray, IntArray]:
    """Positions that look like a record, ascending, and the end of each such record.

    A candidate shares the high byte of its time (194 days) with the first record, and has plausible
    lengths of less than 64 KiB.
    """
    high, zeros = (3, (10, 11)) if file.order == "<" else (0, (8, 9))
    octets, first = file.octets, FILE_HEADER
    found = []
    for low in range(first, file.size - RECORD_HEADER + 1, CHUNK_BYTES):
        count = min(CHUNK_BYTES, file.size - RECORD_HEADER + 1 - low)
        looks = octets[low + high : low + high + count] == octets[first + high]
        for offset in zeros:
            looks &= octets[low + offset : low + offset + count] == 0
        found.append(np.flatnonzero(looks) + low)
    at = np.concatenate(found) if found else np.empty(0, np.int64)
    lengths = gather(octets, at + 8, 8).view(f"{file.order}u4").astype(np.int64)
    after = at + RECORD_HEADER + lengths[:, 0]
    sound = (lengths[:, 0] >= 8) & (lengths[:, 0] <= lengths[:, 1]) & (after <= file.size)
    return at[sound], after[sound]


def _step(file: _File, at: int) -> tuple[IntArray, int, bool]:
    """Up to `STEPS` records one by one: their starts, the next start, and whether the file ends."""
    unpack = struct.Struct(file.order + "I").unpack_from
    starts: list[int] = []
    while len(starts) < STEPS:
        if at + RECORD_HEADER > file.size:
            return np.array(starts, np.int64), at, True
        (length,) = unpack(file.octets.data, at + 8)
        if length > MAX_CAPTURED or at + RECORD_HEADER + length > file.size:
            return np.array(starts, np.int64), at, True
        starts.append(at)
        at += RECORD_HEADER + length
    return np.array(starts, np.int64), at, False


def _dissect(file: _File, at: IntArray, every_ip: bool) -> Packets:
    header = gather(file.octets, at, RECORD_HEADER).view(f"{file.order}u4").astype(np.int64)
    time_ns = header[:, 0] * 10**9 + header[:, 1] * file.unit_ns
    captured = header[:, 2]
    # A damaged record may claim a length on the wire below its captured length.
    frame_bytes = np.maximum(header[:, 3], captured)
    at = at + RECORD_HEADER
    return dissect(file.octets, at, captured, frame_bytes, time_ns, file.link, every_ip)
