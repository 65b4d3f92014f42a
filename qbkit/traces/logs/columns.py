"""Columns that grow in compact arrays, and the state of packets in flight."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection
from itertools import islice
from typing import Any

import numpy as np

SPACES = ("initial", "handshake", "application")
HIGHEST = (1 << 62) - 1
"""Packet numbers are at most 2^62 - 1 (RFC 9000 §12.3), as are stream numbers and offsets."""
REMEMBERED_LOSSES = 4096
"""Lost packets of a space whose late acknowledgement is recognised."""
REMEMBERED_IN_FLIGHT = 1 << 19
"""Most packets that wait for acknowledgement; beyond it (a log without ACKs) half are dropped."""
LONGEST_WORD = 48
MOST_WORDS = 1024
APPLICATION_SHOWN = 10
"""Application packets per direction in the handshake table."""
HANDSHAKE_SHOWN = 1000


class PacketColumns:
    """One table of packets: time, space, number, size."""

    def __init__(self) -> None:
        self.time_s, self.space = array("d"), array("b")
        self.number, self.size_bytes = array("q"), array("q")

    def put(self, time_s: float, space: str, number: int, size_bytes: int | None) -> None:
        """Add a row; raises ValueError for numbers that no packet has."""
        if not 0 <= number <= HIGHEST:
            raise ValueError(f"a packet number of {number}")
        if not 0 <= (size_bytes or 0) < 1 << 32:
            raise ValueError(f"a packet of {size_bytes} bytes")
        self.time_s.append(time_s)
        self.space.append(SPACES.index(space))
        self.number.append(number)
        self.size_bytes.append(size_bytes or 0)

    def of_space(self, space: str) -> Any:
        """The numbers of the packets of a space; rows may be added afterwards."""
        mine = np.array(self.space, dtype=np.int8) == SPACES.index(space)
        return np.array(self.number, dtype=np.int64)[mine]

    def columns(self) -> list[tuple[str, Any, str]]:
        """Name, values and unit of each column."""
        return [
            ("time_s", floats(self.time_s), "s"),
            ("space", np.frombuffer(self.space, dtype=np.int8), "1"),
            ("number", integers(self.number), "1"),
            ("size_bytes", integers(self.size_bytes), "B"),
        ]


class Offsets:
    """The data in each sent packet: stream and offset, -1 for none."""

    def __init__(self) -> None:
        self.stream, self.offset_bytes = array("q"), array("q")

    def put(self, stream: int, offset_bytes: int) -> None:
        """Add a row; raises ValueError for numbers beyond 2^62."""
        if not (-1 <= stream <= HIGHEST and -1 <= offset_bytes <= HIGHEST):
            raise ValueError(f"data of stream {stream} at offset {offset_bytes}")
        self.stream.append(stream)
        self.offset_bytes.append(offset_bytes)

    def of_main_stream(self) -> Any:
        """Offsets in the stream that most packets carry; -1 for data of other streams."""
        stream, offset = integers(self.stream), integers(self.offset_bytes)
        found, counts = np.unique(stream[stream >= 0], return_counts=True)
        if len(found) < 2:
            return offset
        return np.where(stream == found[np.argmax(counts)], offset, -1)


class Words:
    """A column of short texts with few distinct values."""

    def __init__(self) -> None:
        self.code = array("H")
        self.known: dict[str, int] = {}

    def put(self, word: str) -> None:
        """Add a row; texts are truncated, and after `MOST_WORDS` distinct ones all are "…"."""
        code = self.known.get(word)
        if code is None:
            word = word[:LONGEST_WORD]
            if len(self.known) >= MOST_WORDS - 1 and word not in self.known:
                word = "…"
            code = self.known.setdefault(word, len(self.known))
        self.code.append(code)

    def values(self) -> Any:
        """The column as an array of str."""
        if not self.known:
            return np.array([], dtype=str)
        return np.array(list(self.known), dtype=str)[np.frombuffer(self.code, dtype=np.uint16)]


class Handshake:
    """Handshake packets and the first application packets: rows for a sequence diagram."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, str, int, int, int, list[str]]] = []
        self.room = {
            (direction, space): APPLICATION_SHOWN if space == "application" else HANDSHAKE_SHOWN
            for direction in ("sent", "received")
            for space in SPACES
        }

    def has_room(self, direction: str, space: str) -> bool:
        """Whether there is room for another packet of this kind."""
        return self.room[direction, space] > 0

    def put(
        self,
        time_s: float,
        direction: str,
        space: str,
        number: int,
        size: int | None,
        frames: list[str],
    ) -> None:
        """Add a packet ``sent`` or ``received`` if there is room; ``frames`` may still grow."""
        if self.has_room(direction, space):
            self.room[direction, space] -= 1
            self.rows.append((time_s, direction, SPACES.index(space), number, size or 0, frames))

    def columns(self) -> list[tuple[str, Any, str | None]]:
        """Name, values and unit of each column; texts have no unit."""
        columns: list[Any] = list(zip(*self.rows, strict=True)) or [[]] * 6
        frames = [", ".join(f[:LONGEST_WORD] for f in found[:20]) for found in columns[5]]
        return [
            ("time_s", np.array(columns[0], dtype=np.float64), "s"),
            ("direction", np.array(columns[1], dtype=str), None),
            ("space", np.array(columns[2], dtype=np.int8), "1"),
            ("number", np.array(columns[3], dtype=np.int64), "1"),
            ("size_bytes", np.array(columns[4], dtype=np.int64), "B"),
            ("frames", np.array(frames, dtype=str), None),
        ]


class HttpColumns:
    """HTTP frames by stream."""

    def __init__(self) -> None:
        self.time_s, self.stream, self.size_bytes = array("d"), array("q"), array("q")
        self.direction, self.frame = Words(), Words()

    def put(self, time_s: float, direction: str, stream: int, frame: str, size: int | None) -> None:
        """Add a frame ``sent`` or ``received``; raises ValueError for numbers that none has."""
        if not (-1 <= stream <= HIGHEST and 0 <= (size or 0) <= HIGHEST):
            raise ValueError(f"an HTTP frame of {size} bytes in stream {stream}")
        self.time_s.append(time_s)
        self.direction.put(direction)
        self.stream.append(stream)
        self.frame.put(frame)
        self.size_bytes.append(size or 0)

    def columns(self) -> list[tuple[str, Any, str | None]]:
        """Name, values and unit of each column; texts have no unit."""
        return [
            ("time_s", floats(self.time_s), "s"),
            ("direction", self.direction.values(), None),
            ("stream", integers(self.stream), "1"),
            ("frame", self.frame.values(), None),
            ("size_bytes", integers(self.size_bytes), "B"),
        ]


def numbers_within(numbers: Collection[int], low: int, high: int) -> list[int]:
    """The numbers in a range; the cost is that of the smaller of the two."""
    if high - low < len(numbers):
        return [number for number in range(low, high + 1) if number in numbers]
    return [number for number in numbers if low <= number <= high]


class UnackedPackets:
    """Packets in flight of one space, neither acknowledged nor lost: number → size."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.forgotten = 0

    def put(self, number: int, size_bytes: int) -> None:
        """Add a sent packet."""
        self.sizes[number] = size_bytes
        if len(self.sizes) > REMEMBERED_IN_FLIGHT:
            self.forgotten += REMEMBERED_IN_FLIGHT // 2
            self.sizes = dict(islice(self.sizes.items(), REMEMBERED_IN_FLIGHT // 2, None))

    def within(self, low: int, high: int) -> list[int]:
        """The packets with numbers in a range."""
        return numbers_within(self.sizes, low, high)


class Losses:
    """Lost packets of one space that may yet be acknowledged: number → row, by number."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.rows: list[int] = []

    def put(self, number: int, row: int) -> None:
        """Add a lost packet."""
        place = bisect_left(self.numbers, number)
        self.numbers.insert(place, number)
        self.rows.insert(place, row)
        if len(self.numbers) > REMEMBERED_LOSSES:
            del self.numbers[0], self.rows[0]

    def acked(self, low: int, high: int) -> list[int]:
        """Remove the packets from ``low`` to ``high``, and return their rows."""
        begin, end = bisect_left(self.numbers, low), bisect_right(self.numbers, high)
        rows = self.rows[begin:end]
        del self.numbers[begin:end], self.rows[begin:end]
        return rows


def floats(column: array[float]) -> Any:
    """A column as float64, without a copy."""
    return np.frombuffer(column, dtype=np.float64)


def integers(column: array[int]) -> Any:
    """A column as int64, without a copy."""
    return np.frombuffer(column, dtype=np.int64)
