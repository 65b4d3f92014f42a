"""Find HTTP/3 frames in the bytes of a stream; reads only the frames' headers."""

from __future__ import annotations

from collections.abc import Iterator

from aioquic.buffer import Buffer, BufferReadError

TYPES = {
    0: "data",
    1: "headers",
    3: "cancel_push",
    4: "settings",
    5: "push_promise",
    7: "goaway",
    13: "max_push_id",
    0xF0700: "priority_update",
    0xF0701: "priority_update",
}
"""RFC 9114 §7.2, RFC 9218 §7.2."""
CONTROL = 0
"""The type of the unidirectional streams that hold frames (RFC 9114 §6.2)."""
MOST_PENDING = 4096


class FrameFinder:
    """Finds the frames of one direction of one stream, whose data may come in any order."""

    def __init__(self, stream: int) -> None:
        self.next = 0
        """Offset of the next frame's header."""
        self.head = b""
        """The bytes of that header so far."""
        self.pending: dict[int, bytes] = {}
        self.typed = not stream & 2
        """Unidirectional streams begin with their type (RFC 9000 §2.1)."""
        self.frames = True

    def take(self, offset: int, data: bytes) -> Iterator[tuple[str, int]]:
        """Yield type and payload bytes of each frame whose header these data complete."""
        if not self.frames or offset + len(data) <= self.next + len(self.head):
            return
        if offset > self.next + len(self.head):
            if len(self.pending) < MOST_PENDING:
                self.pending.setdefault(offset, data)
            return
        yield from self._walk(offset, data)
        for start in sorted(self.pending):
            if start > self.next + len(self.head):
                break
            yield from self._walk(start, self.pending.pop(start))
        if self.pending:
            # Drop pending payload that ends before the next header.
            here = self.next + len(self.head)
            self.pending = {s: d for s, d in self.pending.items() if s + len(d) > here}

    def _walk(self, offset: int, data: bytes) -> Iterator[tuple[str, int]]:
        while self.frames:
            place = self.next + len(self.head) - offset
            if not 0 <= place < len(data):
                return
            self.head += data[place : place + 16]
            if not self.typed:
                if numbers := _numbers(self.head, 1):
                    (kind,), used = numbers
                    self.typed, self.frames = True, kind == CONTROL
                    self.next += used
                    self.head = b""
                continue
            if numbers := _numbers(self.head, 2):
                (kind, length), used = numbers
                self.next += used + length
                self.head = b""
                yield (
                    TYPES.get(kind, "reserved" if kind % 31 == 2 else f"unknown {kind:#x}"),
                    length,
                )


def _numbers(data: bytes, count: int) -> tuple[list[int], int] | None:
    """Variable-length integers (RFC 9000 §16) and their end; None if they are cut off."""
    buffer = Buffer(data=data)
    try:
        return [buffer.pull_uint_var() for _ in range(count)], buffer.tell()
    except BufferReadError:
        return None
