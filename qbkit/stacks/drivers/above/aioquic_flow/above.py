"""What is above the transport: an application that sends, and one that notes what it reads.

The environment variables are in qbkit/stacks/base.py, the applications in qbkit/spec/app.py.
"""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from typing import IO

from aioquic.quic.connection import QuicConnection

CHUNK_BYTES = 16384
UNSENT_BYTES = 65536
"""So much is unsent at most, as above TCP (tcp/app.c)."""
WANTED_BACK = bytes(8)
"""The perf protocol begins with the number of bytes that the server must send."""
NEVER_NS = 2**62
MASK = 2**64 - 1


def table(name: str) -> IO[str] | None:
    """A table of times and bytes, where there is an application; a row is written at once."""
    folder = os.environ.get("QBKIT_APP_OUT")
    if folder is None:
        return None
    rows = (Path(folder) / name).open("w", buffering=1)
    rows.write("time_ns,bytes\n")
    return rows


class App:
    """When a sender has something to send; it begins with the first question."""

    def __init__(self, text: str) -> None:
        self._kind, *words = text.split()
        self._rows = table("objects.csv")
        self._listed: list[tuple[int, int]] = []
        self._numbers = (0, 0)
        self._seed = 0
        if self._kind == "objects":
            pairs = [word.split(":") for word in words]
            self._listed = [(int(at), int(size)) for at, size in reversed(pairs)]
        else:
            first, second, self._seed = map(int, words)
            self._numbers = (first, second)
        self._start_ns = -1
        self._off_at_ns: int | None = None
        self._left = self._sent_in_on = 0
        self.waits_for_answer = False

    def due(self) -> tuple[int, int]:
        """Bytes to write now, and when it wants to be asked again if there are none."""
        now = time.time_ns()
        if self._start_ns < 0:
            self._start_ns = now
        if self._kind == "onoff":
            return self._due_on(now)
        if self._left:
            return self._left, now
        at, size = self._next(now)
        if not size or now < at:
            return 0, at
        self._released(now if self._kind == "requests" else at, size)
        if self._kind == "objects":
            self._listed.pop()
        self.waits_for_answer = self._kind == "requests"
        self._left = size
        return size, now

    def written(self, size: int) -> None:
        """The stack took so many bytes."""
        if self._kind == "onoff":
            self._sent_in_on += size
        else:
            self._left -= size

    def answered(self) -> None:
        """The receiver has answered a request."""
        self.waits_for_answer = False
        self._start_ns = time.time_ns() + self._drawn(self._numbers[1])

    @property
    def is_written(self) -> bool:
        """Whether the present request is written, and its answer is awaited."""
        return self.waits_for_answer and not self._left

    def _next(self, now: int) -> tuple[int, int]:
        """Time and size of the next object; a size of 0: there is none yet."""
        if self._kind == "requests":
            return (NEVER_NS, 0) if self.waits_for_answer else (self._start_ns, self._numbers[0])
        if not self._listed:
            return NEVER_NS, 0
        at, size = self._listed[-1]
        return self._start_ns + at, size

    def _due_on(self, now: int) -> tuple[int, int]:
        on_ns, off_ns = self._numbers
        if self._off_at_ns is not None and now >= self._off_at_ns:
            self._released(self._start_ns, self._sent_in_on)
            self._start_ns = self._off_at_ns + self._drawn(off_ns)
            self._off_at_ns, self._sent_in_on = None, 0
        if self._off_at_ns is None and now < self._start_ns:
            return 0, self._start_ns
        if self._off_at_ns is None:
            self._start_ns, self._off_at_ns = now, now + self._drawn(on_ns)
        return NEVER_NS, now

    def _drawn(self, mean_ns: int) -> int:
        """A time of this mean, exponential if there is a seed: xorshift64*, as in c/above.c."""
        if not self._seed:
            return mean_ns
        self._seed ^= self._seed >> 12
        self._seed ^= self._seed << 25 & MASK
        self._seed ^= self._seed >> 27
        part = (self._seed * 2685821657736338717 & MASK) >> 11
        return int(-math.log(1 - part / 2**53) * mean_ns)

    def _released(self, at_ns: int, size: int) -> None:
        if self._rows:
            self._rows.write(f"{at_ns},{size}\n")


class Feed:
    """An application on a connection, with a stream for each request."""

    def __init__(self, connection: QuicConnection, app: App) -> None:
        self._connection = connection
        self._app = app
        self._open()

    def fill(self) -> float:
        """Write what there is, with little unsent; the time in seconds until there is more."""
        while self._unsent_bytes() < UNSENT_BYTES:
            size, at_ns = self._app.due()
            if not size:
                return math.inf if at_ns == NEVER_NS else max(0.0, (at_ns - time.time_ns()) / 1e9)
            size = min(size, CHUNK_BYTES)
            self._app.written(size)
            ends = self._app.is_written
            self._connection.send_stream_data(self._id, bytes(size), end_stream=ends)
        return math.inf

    def answered(self) -> bool:
        """The receiver has answered: the next request has a stream of its own. Never the end."""
        self._app.answered()
        self._open()
        return False

    def _open(self) -> None:
        self._id = self._connection.get_next_available_stream_id()
        self._connection.send_stream_data(self._id, WANTED_BACK)
        self._sender = self._connection._streams[self._id].sender

    def _unsent_bytes(self) -> int:
        return self._sender._buffer_stop - self._sender.highest_offset
