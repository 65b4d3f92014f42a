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

from qbkit.errors import MISNAMED, StoreError, TraceError
from qbkit.opening import open_plain
from qbkit.traces.arrays import ByteArray, IntArray
from qbkit.traces.run import pcapng
from qbkit.traces.run.collector import Collector
from qbkit.traces.run.frames import LINK_HEADER, LOOK_AHEAD, OTHER_LINK, Packets, dissect, gather

FILE_HEADER, RECORD_HEADER = 24, 16
MAX_CAPTURED = 262_144
"""libpcap's largest snaplen: a record that claims more is damaged."""
MAGIC = {  # first four bytes → (byte order, nanoseconds per unit of the fraction)
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
WINDOW_BYTES = 1 << 21
"""How much of a file is in memory: records that, dissected, fit in the processor's cache."""
MOST_RECORDS = 1 << 14
"""The same of pcapng, whose records are read one by one."""
LEAST_BYTES = 36
"""A record of an IPv4 packet without payload or link header; shorter ones are left out."""
STEPS = 64


@dataclass(frozen=True)
class _Form:
    """How the records of a pcap file are written."""

    order: str
    unit_ns: int
    link: int


@dataclass(frozen=True)
class _Reading:
    """A capture that is being read."""

    stream: BinaryIO
    path: Path
    every_ip: bool
    found: Collector


def is_capture(head: bytes) -> bool:
    """Whether a file that begins so is a pcap or pcapng file."""
    return head[:4] in (pcapng.MAGIC, *MAGIC)


def read_packets(path: str | Path, *, whole: bool = False, every_ip: bool = False) -> Packets:
    """All TCP and UDP packets of a pcap or pcapng file, compressed or not (`LINK_HEADER`).

    ``every_ip`` adds the other IP packets (`qbkit.traces.run.frames.dissect`).

    From a truncated or damaged file it returns the packets before the damage, and warns where the
    damage is. With ``whole`` it raises StoreError instead, as for a file that is no capture. It
    reads the file window by window, so that only the result grows with it.
    """
    damage: list[str] = []
    with _stream(
        Path(path), lambda where: damage.append(f"is damaged or cut off {where}")
    ) as stream:
        read = _read_pcapng if stream.read(4) == pcapng.MAGIC else _read_pcap
        stream.seek(0)
        found = Collector(_size(stream) // LEAST_BYTES + 1)
        damage_inside, left_out = read(_Reading(stream, Path(path), every_ip, found))
    damage += [damage_inside] if damage_inside else []
    if damage and whole:
        raise StoreError(f"{Path(path).name} {damage[0]}")
    if damage:
        warnings.warn(f"{path} {damage[0]}; what comes before is used", stacklevel=2)
    for what, times in left_out.items():
        warnings.warn(f"{path}: {what}: {times}", stacklevel=2)
    return found.packets()


Read = tuple[str, Counter[str]]
"""A description of damage, and how many packets were left out for what."""


def _read_pcap(reading: _Reading) -> Read:
    """The packets of a classic pcap file (µs or ns).

    Each window of the file begins with a record, and is larger than any record.
    """
    form = _form(reading)
    window = np.zeros(WINDOW_BYTES + LOOK_AHEAD, np.uint8)
    held, begins, count = 0, FILE_HEADER, 0
    while True:
        size = held + _fill(reading, window.data[held:WINDOW_BYTES])
        window[size : size + LOOK_AHEAD] = 0
        at, stopped = _walk(window, size, form)
        reading.found.add(_dissect(window, at, form, reading.every_ip))
        count, held = count + len(at), size - stopped
        if size < WINDOW_BYTES or held >= RECORD_HEADER + MAX_CAPTURED:
            break
        window[:held] = window[stopped:size].copy()
        begins += stopped
    if not held:
        return "", Counter()
    where = f"at byte {begins + stopped} of {_size(reading.stream)}, after {count} packets"
    return f"is damaged or cut off {where}", Counter()


def _read_pcapng(reading: _Reading) -> Read:
    """The packets of a pcapng file; those of one link type stay together."""
    damage: list[str] = []
    left_out: Counter[str] = Counter()
    by_link: dict[int, list[pcapng.Record]] = {}
    count = 0
    try:
        for record in pcapng.records(
            reading.stream,
            str(reading.path),
            damage.append,
            lambda what, times: left_out.update({what: times}),
        ):
            records, count = by_link.setdefault(record.link, []), count + 1
            records.append(record)
            if len(records) == MOST_RECORDS and len(by_link) == 1:
                reading.found.add(_dissect_records(record.link, records, reading.every_ip))
                records.clear()
    except TraceError as error:
        raise StoreError(str(error)) from None
    for link, records in by_link.items():
        reading.found.add(_dissect_records(link, records, reading.every_ip))
    words = f"is damaged or cut off {damage[0]}, after {count} packets" if damage else ""
    if words and not count:
        raise StoreError(f"{reading.path} {words}; capture again")
    return words, left_out


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
        raise StoreError(
            f"cannot read {path}: {error.strerror}", refused=isinstance(error, MISNAMED)
        ) from None


def _size(stream: BinaryIO) -> int:
    return os.fstat(stream.fileno()).st_size


def _form(reading: _Reading) -> _Form:
    """The form of a pcap file by its header; raises StoreError for what is no capture."""
    header = bytearray(FILE_HEADER)
    size, magic = _fill(reading, memoryview(header)), bytes(header[:4])
    if magic not in MAGIC or size < FILE_HEADER:
        raise StoreError(
            f"{reading.path} is no capture: neither pcap nor pcapng", refused=magic not in MAGIC
        )
    order, unit_ns = MAGIC[magic]
    link = struct.unpack_from(order + "I", header, 20)[0] & 0xFFFF
    if link not in LINK_HEADER:
        raise StoreError(OTHER_LINK.format(file=reading.path, link=link))
    return _Form(order, unit_ns, link)


def _fill(reading: _Reading, buffer: memoryview) -> int:
    """Read on until the buffer is full or the file ends; returns the number of bytes."""
    try:
        return cast("io.BufferedReader", reading.stream).readinto(buffer)
    except OSError as error:
        raise StoreError(f"cannot read {reading.path}: {error.strerror}") from None


def _walk(window: ByteArray, size: int, form: _Form) -> tuple[IntArray, int]:
    """The start of each record that a window holds whole, and where the next one begins.

    Each record gives the start of the next, which would need a loop. Instead, we find all positions
    that look like a record at once. From a known record on, we accept each candidate that begins
    where its predecessor ends. This is the same walk, verified link by link, so a wrong guess costs
    time but never a packet. Where candidates are missing, a few plain steps fill the gap.
    """
    likely, after = _likely(window, size, form)
    breaks = np.flatnonzero(after[:-1] != likely[1:])
    parts: list[IntArray] = []
    at, stopped = 0, False
    while not stopped:
        i = int(np.searchsorted(likely, at))
        if i < len(likely) and likely[i] == at:
            k = int(np.searchsorted(breaks, i))
            last = int(breaks[k]) if k < len(breaks) else len(likely) - 1
            parts.append(likely[i : last + 1])
            at = int(after[last])
        else:
            steps, at, stopped = _step(window, size, form, at)
            parts.append(steps)
    return np.concatenate(parts), at


def _likely(window: ByteArray, size: int, form: _Form) -> tuple[IntArray, IntArray]:
    """Positions that look like a record, ascending, and the end of each such record.

    A candidate shares the high byte of its time (194 days) with the first record, and has plausible
    lengths of less than 64 KiB.
    """
    high, zeros = (3, (10, 11)) if form.order == "<" else (0, (8, 9))
    count = max(0, size - RECORD_HEADER + 1)
    looks = window[high : high + count] == window[high]
    for offset in zeros:
        looks &= window[offset : offset + count] == 0
    at = np.flatnonzero(looks)
    lengths = gather(window, at + 8, 8).view(f"{form.order}u4").astype(np.int64)
    after = at + RECORD_HEADER + lengths[:, 0]
    sound = (lengths[:, 0] >= 8) & (lengths[:, 0] <= lengths[:, 1]) & (after <= size)
    return at[sound], after[sound]


def _step(window: ByteArray, size: int, form: _Form, at: int) -> tuple[IntArray, int, bool]:
    """Up to `STEPS` records one by one: their starts, the next start, and whether the walk ends."""
    unpack = struct.Struct(form.order + "I").unpack_from
    starts: list[int] = []
    while len(starts) < STEPS:
        if at + RECORD_HEADER > size:
            return np.array(starts, np.int64), at, True
        (length,) = unpack(window.data, at + 8)
        if length > MAX_CAPTURED or at + RECORD_HEADER + length > size:
            return np.array(starts, np.int64), at, True
        starts.append(at)
        at += RECORD_HEADER + length
    return np.array(starts, np.int64), at, False


def _dissect(window: ByteArray, at: IntArray, form: _Form, every_ip: bool) -> Packets:
    header = gather(window, at, RECORD_HEADER).view(f"{form.order}u4").astype(np.int64)
    time_ns = header[:, 0] * 10**9 + header[:, 1] * form.unit_ns
    captured = header[:, 2]
    # A damaged record may claim a length on the wire below its captured length.
    frame_bytes = np.maximum(header[:, 3], captured)
    at = at + RECORD_HEADER
    return dissect(window, at, captured, frame_bytes, time_ns, form.link, every_ip)
