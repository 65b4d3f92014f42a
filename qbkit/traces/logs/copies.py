"""Frames that a capture holds several times: one of a bridge, or of several places of a path."""

from __future__ import annotations

from collections import OrderedDict

from qbkit.traces.logs.records import Segment
from qbkit.traces.run.frames import COPIES, TCP

LONGEST_PATH_NS = 10**9
"""A copy follows within this time."""
CLOSE_NS = 10**6
"""The same where nothing distinguishes a copy from a packet that was sent again."""
CHECKSUM, LONGEST_HEADER, UDP_HEADER = slice(16, 18), 60, 8
TIMESTAMPS = b"\x08\x0a"
FIXED_BIT, SYN = 0x40, 2


class Copies:
    """Recognises a frame that was captured before, by what no router changes.

    A TCP segment that is sent again has another IP identification, where the host numbers its
    packets, or another time stamp. QUIC never repeats the bytes of a packet.
    """

    def __init__(self) -> None:
        self.count = 0
        self._seen: OrderedDict[tuple[object, ...], int] = OrderedDict()
        self._identities: dict[bytes, int] = {}
        self._numbered: set[bytes] = set()

    def is_copy(self, segment: Segment) -> bool:
        """Whether this frame was there before; frames come in the order of their time."""
        while self._seen and next(iter(self._seen.values())) < segment.time_ns - LONGEST_PATH_NS:
            self._seen.popitem(last=False)
        content, is_unique, may_repeat = self._content(segment)
        key = (segment.source, segment.destination, segment.identity, content)
        before_ns = self._seen.get(key)
        longest_ns = LONGEST_PATH_NS if is_unique else CLOSE_NS
        is_soon = before_ns is not None and segment.time_ns - before_ns <= longest_ns
        if is_soon and not may_repeat:
            self.count += 1
            return True
        self._seen[key] = segment.time_ns
        self._seen.move_to_end(key)
        return False

    def warning(self, name: str) -> list[str]:
        """A sentence with the number of copies, if there were any."""
        return [COPIES.format(file=name, count=self.count)] if self.count else []

    def _content(self, segment: Segment) -> tuple[bytes, bool, bool]:
        """What identifies a packet, whether no other one has the same, and whether many do."""
        raw = segment.header
        if segment.protocol != TCP:
            is_quic = len(raw) > UDP_HEADER and bool(raw[UDP_HEADER] & FIXED_BIT)
            return raw, is_quic, not is_quic
        header_bytes = (raw[12] >> 4) * 4 if len(raw) > 13 else 0
        has_stamps = TIMESTAMPS in raw[20:header_bytes]
        is_numbered = self._is_numbered(segment)
        is_bare_ack = (
            header_bytes > 0 and segment.transport_bytes <= header_bytes and not raw[13] & SYN
        )
        # Duplicate ACKs of the same ms are equal; a copy of one follows other copies.
        may_repeat = is_bare_ack and not is_numbered and not (has_stamps and self.count)
        content = raw[: CHECKSUM.start] + raw[CHECKSUM.stop : LONGEST_HEADER]
        return content, has_stamps or is_numbered, may_repeat

    def _is_numbered(self, segment: Segment) -> bool:
        """Whether the source gives its packets different IP identifications."""
        source = segment.source[0]
        if self._identities.setdefault(source, segment.identity) != segment.identity:
            self._numbered.add(source)
        return source in self._numbered and segment.identity != 0
