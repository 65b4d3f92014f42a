"""JSON files of any size, record by record, with bounds on what one record may take."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import ijson
import msgspec
import numpy as np

from qbkit.errors import TraceError

SEPARATOR = b"\x1e"
"""Begins a record of a JSON text sequence (RFC 7464)."""
LONGEST_RECORD = 16 << 20
DEEPEST = 1000
STEPS = np.zeros(256, np.int8)
STEPS[[ord("["), ord("{")]], STEPS[[ord("]"), ord("}")]] = 1, -1
"""What each byte does to the depth of JSON; those in texts cannot matter much."""
LONGEST_NUMBER, BLOCK = 1000, 200
LONG_NUMBER = re.compile(rb"(?:^|[-:,\[\s])[0-9]{1000}")
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for a record."""
BAR_BYTES = 1 << 18
LATEST_MS = 1e17
"""Beyond this, a time in ms is none: three million years."""


class JsonFile:
    """A log that is open, its size shown by a progress bar while it is read."""

    def __init__(self, file: BinaryIO, name: str, bar: Any) -> None:
        self.file, self.name, self.bar = file, name, bar
        self.warnings: list[str] = []
        self._damaged = False
        self._unread = self._depth = 0
        self._tail = b""

    def rewind(self) -> None:
        """To the start, as if nothing had been read."""
        self.file.seek(0)
        self._unread, self._depth, self._tail = 0, 0, b""

    def first_line(self) -> bytes:
        """The first line, or the start of a very long one; the file stands at its start again."""
        first = self.file.readline(LONGEST_RECORD)
        self.file.seek(0)
        return first

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Place and text of each line; TraceError for one longer than 16 MiB."""
        place = shown = 0
        while line := self.file.readline(LONGEST_RECORD + 1):
            if len(line) > LONGEST_RECORD:
                raise self.too_long(place)
            yield place, line
            place += len(line)
            if place - shown > BAR_BYTES:
                self.bar.update(place - shown)
                shown = place
        self.bar.update(place - shown)

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Place and text of each record of a JSON text sequence, which may take several lines.

        TraceError for one longer than 16 MiB.
        """
        start, held = 0, [b""]
        for place, line in self.lines():
            first, *others = line.split(SEPARATOR)
            held.append(first)
            at = place + len(first)
            for text in others:
                yield start, b"".join(held)
                start, held = at, [text]
                at += len(SEPARATOR) + len(text)
            if place + len(line) - start > LONGEST_RECORD:
                raise self.too_long(start)
        yield start, b"".join(held)

    def items(self, prefix: str) -> Iterator[tuple[int, Any]]:
        """Place and value of each item of one JSON document; what is broken ends it with a warning.

        Raises TraceError for what is no JSON from the start, nests too deep, or is an item longer
        than 16 MiB.
        """
        found = False
        try:
            for item in ijson.items(self, prefix):
                found = True
                self.next_record()
                place = self.file.tell()
                self.bar.update(place - self.bar.n)
                yield place, item
        except ijson.IncompleteJSONError:
            self.broken(f"before byte {self.file.tell()}")
        except (ijson.JSONError, ValueError, ArithmeticError) as error:
            if isinstance(error, TraceError):
                raise
            if not found:
                raise TraceError(f"{self.name} is no JSON: {first_words(error)}") from None
            self.broken(f"before byte {self.file.tell()}")
        except RecursionError:
            raise self.hostile(self.file.tell(), "nested too deep") from None

    def next_record(self) -> None:
        """What is read from here on belongs to another record."""
        self._unread = self._depth = 0

    def read(self, size: int = -1) -> bytes:
        """For ijson: the next bytes, as long as they do not all belong to one item, nor nest."""
        part = self.file.read(size)
        self._unread += len(part)
        if part:
            self._guard(part)
        if self._unread > LONGEST_RECORD:
            raise self.too_long(self.file.tell())
        return part

    def _guard(self, part: bytes) -> None:
        """Raise TraceError for what ijson cannot take.

        Its time and memory grow with the square of the depth; and on a whole number of more digits
        than Python converts (4300), its C part crashes.
        """
        octets = np.frombuffer(part, np.uint8)
        depth = self._depth + np.cumsum(STEPS[octets], dtype=np.int64)
        if depth.max() > DEEPEST:
            raise self.hostile(self.file.tell(), "nested too deep")
        self._depth = max(int(depth[-1]), 0)
        digits = (octets - ord("0")) < 10  # 0 to 9: what is less wraps around
        blocks = digits[: len(digits) // BLOCK * BLOCK].reshape(-1, BLOCK).all(axis=1)
        if (blocks.any() or len(part) < 2 * BLOCK) and LONG_NUMBER.search(self._tail + part):
            raise self.hostile(self.file.tell(), "a number of more than a thousand digits")
        self._tail = (self._tail + part)[-LONGEST_NUMBER:]

    def broken(self, where: str) -> None:
        """Warn, once, that something cannot be read."""
        if not self._damaged:
            self._damaged = True
            self.warnings.append(f"{self.name} is damaged or cut off {where}; the rest was read")

    def warn(self, what: str) -> None:
        """Warn of what can be read, and may not mean what it seems to."""
        self.warnings.append(f"{self.name} {what}")
        warnings.warn(self.warnings[-1], stacklevel=2)

    def unreadable(self, place: int, error: Exception) -> None:
        """A record that msgspec refuses: warn of what is no JSON, raise TraceError for the rest."""
        if isinstance(error, RecursionError):
            raise self.hostile(place, "nested too deep") from None
        if isinstance(error, msgspec.ValidationError):
            raise self.hostile(place, str(error)) from None
        self.broken(f"at byte {place}")

    def hostile(self, place: int, why: str) -> TraceError:
        """The error for what is readable, and cannot be meant."""
        return TraceError(f"{self.name} has at byte {place} what no such log holds: {why[:200]}")

    def too_long(self, place: int) -> TraceError:
        """The error for a record that would fill the memory."""
        return TraceError(f"{self.name} has a record longer than 16 MiB at byte {place}")


@contextlib.contextmanager
def open_log(path: str | Path, progress: bool) -> Iterator[JsonFile]:
    """A log to read, with a progress bar if asked for; TraceError if it cannot be read."""
    from tqdm.auto import tqdm

    source = Path(path)
    try:
        size = source.stat().st_size
        with (
            source.open("rb") as file,
            tqdm(total=size, unit="B", unit_scale=True, disable=not progress) as bar,
        ):
            yield JsonFile(file, source.name, bar)
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror}") from None


def first_words(error: Exception) -> str:
    """The first line of what a library says, on one line and not too long."""
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0][:200]
