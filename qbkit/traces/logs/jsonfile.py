"""Read JSON files of any size record by record, with limits on the memory of a record."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import ijson
import msgspec
import numpy as np

from qbkit.arguments import as_path
from qbkit.errors import MISNAMED, TraceError
from qbkit.json_words import in_words
from qbkit.opening import open_plain

SEPARATOR = b"\x1e"
"""Begins a record of a JSON text sequence (RFC 7464)."""
LONGEST_RECORD = 16 << 20
DEEPEST = 1000
STEPS = np.zeros(256, np.int8)
STEPS[[ord("["), ord("{")]], STEPS[[ord("]"), ord("}")]] = 1, -1
"""Change of the JSON nesting depth by each byte; brackets in texts hardly matter."""
LONGEST_NUMBER, BLOCK = 1000, 200
LONG_NUMBER = re.compile(rb"(?:^|[-:,\[\s])[0-9]{1000}")
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions that msgspec raises for a record."""
BAR_BYTES = 1 << 18
LATEST_MS = 1e17
"""A time in ms beyond this, three million years, is invalid."""


class JsonFile:
    """An open log, with a progress bar."""

    def __init__(self, file: BinaryIO, name: str, bar: Any) -> None:
        self.file, self.name, self.bar = file, name, bar
        self.warnings: list[str] = []
        self._counts: dict[str, tuple[int, int]] = {}
        self._broken = self._broken_at = 0
        self.damage = ""
        """Where it is damaged; empty for a whole file."""
        self._unread = self._depth = 0
        self._tail = b""

    def rewind(self) -> None:
        """Go back to the start, as if nothing had been read."""
        self.file.seek(0)
        self._unread, self._depth, self._tail = 0, 0, b""

    def first_line(self) -> bytes:
        """The first line, or the start of a very long one; then the file is at its start again."""
        first = self.file.readline(LONGEST_RECORD)
        self.file.seek(0)
        return first

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield place and text of each line; raises TraceError for one longer than 16 MiB."""
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
        """Yield place and text of each record of a JSON text sequence, which may have many lines.

        Raises TraceError for one longer than 16 MiB.
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
        """Yield place and value of each item of one JSON document; damage ends it with a warning.

        Raises TraceError for a file that does not begin as JSON, nests too deep, or has an item
        longer than 16 MiB.
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
                raise TraceError(f"{self.name} is no JSON: {in_words(error)}") from None
            self.broken(f"before byte {self.file.tell()}")
        except RecursionError:
            raise self.hostile(self.file.tell(), "nested too deep") from None

    def next_record(self) -> None:
        """A new record begins here."""
        self._unread = self._depth = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes to ijson, within the limits on an item's size and depth."""
        part = self.file.read(size)
        self._unread += len(part)
        if part:
            self._guard(part)
        if self._unread > LONGEST_RECORD:
            raise self.too_long(self.file.tell())
        return part

    def _guard(self, part: bytes) -> None:
        """Raise TraceError for input that breaks ijson.

        Its time and memory grow with the square of the depth, and its C code crashes on an integer
        with more digits than Python converts (4300).
        """
        octets = np.frombuffer(part, np.uint8)
        depth = self._depth + np.cumsum(STEPS[octets], dtype=np.int64)
        if depth.max() > DEEPEST:
            raise self.hostile(self.file.tell(), "nested too deep")
        self._depth = max(int(depth[-1]), 0)
        digits = (octets - ord("0")) < 10  # 0 to 9: smaller values wrap around
        blocks = digits[: len(digits) // BLOCK * BLOCK].reshape(-1, BLOCK).all(axis=1)
        if (blocks.any() or len(part) < 2 * BLOCK) and LONG_NUMBER.search(self._tail + part):
            raise self.hostile(self.file.tell(), "a number of more than a thousand digits")
        self._tail = (self._tail + part)[-LONGEST_NUMBER:]

    def broken(self, where: str) -> None:
        """A part cannot be read: one warning has the place of the first, and how many there are."""
        self._broken += 1
        if self._broken == 1:
            self.damage, self._broken_at = f"damaged or cut off {where}", len(self.warnings)
            self.warnings.append("")
        more = f" ({self._broken} places in all)" if self._broken > 1 else ""
        self.warnings[self._broken_at] = f"{self.name} is {self.damage}{more}; the rest was read"

    def count(self, what: str, times: int = 1) -> None:
        """Something was left out or repaired: one warning has the number of all that are alike."""
        at, before = self._counts.get(what, (len(self.warnings), 0))
        if what not in self._counts:
            self.warnings.append("")
        self._counts[what] = at, before + times
        self.warnings[at] = f"{self.name}: {what}: {before + times}"

    def count_forgotten(self, times: int) -> None:
        """Packets that are neither acknowledged nor lost, in a log with few ACKs or none."""
        if times:
            self.count("packets in flight for too long, whose ACK would be left out", times)

    def warn(self, what: str) -> None:
        """Warn about data that can be read but may be misleading."""
        self.warnings.append(f"{self.name} {what}")
        warnings.warn(self.warnings[-1], stacklevel=2)

    def unreadable(self, place: int, error: Exception) -> None:
        """Handle a record that msgspec rejects: warn if it is no JSON, else raise TraceError."""
        if isinstance(error, RecursionError | msgspec.ValidationError):
            raise self.hostile(place, in_words(error)) from None
        self.broken(f"at byte {place}")

    def hostile(self, place: int, why: str) -> TraceError:
        """The error for readable but impossible content."""
        return TraceError(f"{self.name} has impossible content at byte {place}: {why[:200]}")

    def too_long(self, place: int) -> TraceError:
        """The error for a record that is too long."""
        return TraceError(f"{self.name} has a record longer than 16 MiB at byte {place}")


@contextlib.contextmanager
def open_log(path: str | Path, progress: bool) -> Iterator[JsonFile]:
    """Open a log, with a progress bar if wanted; raises TraceError if it cannot be read."""
    from qbkit.progress import bar as progress_bar

    source = as_path(path)
    damage: list[str] = []
    try:
        with (
            open_plain(source, damage.append) as file,
            progress_bar(
                total=os.fstat(file.fileno()).st_size,
                unit="B",
                unit_scale=True,
                disable=not progress,
            ) as bar,
        ):
            log = JsonFile(file, source.name, bar)
            for where in damage:
                log.broken(where)
            yield log
    except OSError as error:
        raise TraceError(
            f"cannot read {path}: {error.strerror}", refused=isinstance(error, MISNAMED)
        ) from None
