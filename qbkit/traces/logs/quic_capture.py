"""One QUIC connection of a capture, with what its sender could know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from qbkit.errors import TraceError
from qbkit.traces.logs.columns import HIGHEST, SPACES
from qbkit.traces.logs.events import EventTables, ack_text
from qbkit.traces.logs.http3 import FrameFinder
from qbkit.traces.logs.jsonfile import JsonFile
from qbkit.traces.logs.records import Conversation, End, describe, of_others
from qbkit.traces.logs.sender import Sender
from qbkit.traces.logs.tshark import Datagram, Fields, datagrams

LONG_TYPES = {"0": "initial", "2": "handshake"}
LONG_TYPES_V2 = {"1": "initial", "3": "handshake"}
"""Long header types with their own space (RFC 9000 §17.2, RFC 9369 §3.2); 0-RTT is application
data."""
ACKS, STREAMS = (2, 3), range(8, 16)
OFFSET_BIT, LENGTH_BIT = 4, 2
SILENT = {0, 2, 3, 28, 29}
"""PADDING, ACK, CONNECTION_CLOSE: frames that are not ack-eliciting (RFC 9002 §2)."""
NAMES = {
    **{0: "padding", 1: "ping", 4: "reset_stream", 5: "stop_sending", 6: "crypto"},
    **{7: "new_token", 16: "max_data", 17: "max_stream_data", 18: "max_streams"},
    **{19: "max_streams", 20: "data_blocked", 21: "stream_data_blocked"},
    **{22: "streams_blocked", 23: "streams_blocked", 24: "new_connection_id"},
    **{25: "retire_connection_id", 26: "path_challenge", 27: "path_response"},
    **{28: "connection_close", 29: "connection_close", 30: "handshake_done"},
    **{48: "datagram", 49: "datagram"},
}
HANDSHAKE_DONE = 30
DELAY_EXPONENT, LARGEST_EXPONENT = 3, 20
"""ACK delays are in units of 8 µs, unless transport parameters say otherwise (RFC 9000 §18.2)."""
MOST_STREAMS = 1 << 16
NO_OCTETS = "<MISSING>"
"""How tshark writes a field of no bytes."""
LEAST_MISSING, MISSING_SHARE = 5, 0.01
"""Senders leave out few numbers on purpose (RFC 9000 §21.4)."""
SET = {"1", "True", "true"}
"""How versions of tshark write a bit that is set."""

Stream = tuple[int, int, bytes]
"""Number, offset, data."""


class Keys(NamedTuple):
    """The secrets of a capture."""

    path: Path
    """A file with all of them, perhaps empty."""
    given: str | None
    """Name of the key log that was given."""


def read_quic(
    path: Path,
    log: JsonFile,
    paths: Sequence[Conversation],
    found: Collection[Conversation],
    sender: End,
    keys: Keys,
) -> xr.Dataset:
    """The tables of a connection of a capture; ``sent`` is what comes from ``sender``.

    ``path`` has the datagrams of the chosen conversation, the first of ``paths``, and of others
    that may be of its connection. ``found`` are all conversations of the capture.
    """
    chosen = paths[0]
    connections = _Connections(chosen, sender)
    log.bar.reset()
    share = (log.bar.total or 0) // sum(each.packets for each in paths)
    for datagram in datagrams(path, paths, keys.path):
        log.bar.update(share)
        try:
            connections.take(datagram)
        except (ValueError, IndexError, OverflowError) as error:
            raise TraceError(f"{log.name} has an impossible value: {error}") from None
    reader = connections.largest()
    own = [c for c in found if c is chosen or frozenset(c.ends) not in reader.path_since_s]
    log.warnings += [*of_others(log.name, chosen, own), *connections.warnings(reader)]
    if reader.hidden:
        log.warnings.append(_hidden(log.name, reader, keys.given))
    else:
        log.warnings += _missing(log.name, reader)
    title = " to ".join(describe(end) for end in chosen.ends)
    return reader.tables.dataset(
        source="pcap", vantage_point="network", title=f"quic {title}", warnings=log.warnings
    )


def _missing(name: str, reader: _QuicReader) -> list[str]:
    """A sentence about packets that were sent, as their numbers show, but not captured."""
    numbers = reader.tables.numbers_sent("application")
    if not len(numbers):
        return []
    every = int(numbers.max() - numbers.min()) + 1
    missing = every - len(np.unique(numbers))
    if missing < LEAST_MISSING or missing < MISSING_SHARE * every:
        return []
    return [
        f"{missing} of {every} packet numbers of the sender are not in {name}: the capture dropped "
        "packets, or was made behind the place where they were lost"
    ]


def _hidden(name: str, reader: _QuicReader, keylog: str | None) -> str:
    if reader.hidden == len(reader.tables):
        return (
            f"no packet of {name} can be read: it is no QUIC, or began before the capture; there "
            "are times and sizes only"
        )
    why = "without a key log" if keylog is None else f"with the secrets in {keylog}"
    return (
        f"{reader.hidden} packets of {name} cannot be decrypted {why}: their numbers (counted "
        "here), frames, acknowledgements, losses and HTTP frames cannot be seen, only times and "
        "sizes; give the client's or server's SSLKEYLOGFILE of this connection as keylog"
    )


class _Connections:
    """The connections that the datagrams are of, as tshark numbers them.

    A connection may have several paths (RFC 9000, 9), and a path several connections, one after the
    other.
    """

    def __init__(self, chosen: Conversation, sender: End) -> None:
        self.path = frozenset(chosen.ends)
        self.sender, self.peer = sender, next(end for end in chosen.ends if end != sender)
        self.readers: dict[Hashable, _QuicReader] = {}
        self.last: dict[frozenset[End], Hashable] = {}
        self.same: dict[Hashable, Hashable] = {}
        """A number of tshark's → the connection that it is of all the same."""
        self.path_bytes: Counter[Hashable] = Counter()

    def take(self, datagram: Datagram) -> None:
        """Add the packets of one datagram.

        A new connection of a path begins with a packet whose keys follow from its header. Otherwise
        it is the last one of the path, of which tshark does not know a connection ID. It is that
        one, too, if nothing but a Retry answered it, whose token comes back.
        """
        path = frozenset((datagram.source, datagram.destination))
        number = datagram.connection or self.last.get(path, path)
        if number not in self.readers and path in self.last:
            again = _token(datagram) and not self.readers[self.last[path]].answered
            if again or not _opens(datagram):
                self.same.setdefault(number, self.last[path])
        self.last[path] = number = self.same.get(number, number)
        reader = self.readers.setdefault(number, _QuicReader(self.sender, self.peer))
        reader.take(datagram)
        if path == self.path:
            self.path_bytes[number] += 1 + sum(_size(packet) for packet in datagram.packets)

    def largest(self) -> _QuicReader:
        """The connection with the most bytes on the chosen path."""
        number = max(self.path_bytes, key=lambda n: self.path_bytes[n], default=self.path)
        return self.readers.get(number) or _QuicReader(self.sender, self.peer)

    def warnings(self, chosen: _QuicReader) -> list[str]:
        """Sentences about other paths of the chosen connection, and other ones of its path."""
        found = []
        if len(self.path_bytes) > 1:
            found.append(
                f"{len(self.path_bytes)} connections have these ends, one after the other; this is "
                "the one with the most bytes"
            )
        for path, since_s in list(chosen.path_since_s.items())[1:]:
            ends = " and ".join(sorted(describe(end) for end in path))
            found.append(f"the connection is between {ends} from {since_s:.3f} s on, all read here")
        return found


def _opens(datagram: Datagram) -> bool:
    return any(_space(each) == "initial" and each["quic.frame_type"] for each in datagram.packets)


def _token(datagram: Datagram) -> str:
    """The token of an Initial packet; empty if there is none."""
    return next((t for each in datagram.packets for t in each.get("quic.token", [])), "")


def _size(packet: Fields) -> int:
    """The bytes of a packet, without those of UDP."""
    return int(packet["quic.packet_length"][0]) if packet["quic.packet_length"] else 0


class _QuicReader:
    def __init__(self, sender: End, peer: End) -> None:
        self.ends = sender, peer
        self.tables = EventTables()
        self.sender = Sender(self.tables, finds_losses=True)
        self.path_since_s: dict[frozenset[End], float] = {}
        self.zero_ns: int | None = None
        self.client = ""
        """The direction of the first packet."""
        self.answered = False
        self.token = ""
        self.hidden = 0
        self.counts = {"sent": 0, "received": 0}
        self.exponents = {"sent": DELAY_EXPONENT, "received": DELAY_EXPONENT}
        self.finders: dict[tuple[str, int], FrameFinder] = {}

    def take(self, datagram: Datagram) -> None:
        """Add the packets of one datagram."""
        if self.zero_ns is None:
            self.zero_ns = datagram.time_ns
        time_s = (datagram.time_ns - self.zero_ns) / 1e9
        source, destination = datagram.source, datagram.destination
        self.path_since_s.setdefault(frozenset((source, destination)), time_s)
        # Of a connection that moves, one end stays.
        is_ours = source == self.ends[0] or destination == self.ends[1]
        direction = "sent" if is_ours else "received"
        self.client = self.client or direction
        self.answered |= direction != self.client
        if not self.answered and _token(datagram) != self.token:  # after a Retry (RFC 9002, 6.3)
            self.token = _token(datagram)
            for space in SPACES:
                self.sender.discard(space)
        for place, packet in enumerate(datagram.packets):
            # What follows a packet in its datagram without the fixed bit is padding.
            padding = place and not set(packet["quic.fixed_bit"]) & SET
            if packet["quic.frame_type"] or not padding:
                self._packet(time_s, direction, packet)

    def _packet(self, time_s: float, direction: str, packet: Fields) -> None:
        space = _space(packet)
        size = _size(packet)
        if not packet["quic.packet_number"] or not packet["quic.frame_type"]:
            self._unseen(time_s, direction, size)
            return
        number = int(packet["quic.packet_number"][0])
        frames = [int(kind) for kind in packet["quic.frame_type"]]
        self.exponents[direction] = _exponent(packet, self.exponents[direction])
        exponent = self.exponents[direction] if space == "application" else DELAY_EXPONENT
        acks, streams = list(_acks(frames, packet, exponent)), list(_streams(frames, packet))
        self._discard(direction, space, frames)
        if direction == "sent":
            data = streams[0][:2] if streams else (-1, -1)
            eliciting = not SILENT.issuperset(frames)
            self.sender.sent(time_s, space, number, size, eliciting=eliciting, data=data)
        else:
            self.tables.received(time_s, space, number, size)
            for ranges, delay_s in acks:
                self.sender.acked(time_s, space, ranges, delay_s)
        if self.tables.handshake.has_room(direction, space):
            text = _texts(frames, [ranges for ranges, _ in acks])
            self.tables.handshake.put(time_s, direction, space, number, size, text)
        for stream, offset, content in streams:
            self._http(time_s, direction, stream, offset, content)

    def _discard(self, direction: str, space: str, frames: list[int]) -> None:
        """Both ends discard the keys of a space, and what is in flight there (RFC 9001, 4.9)."""
        if space == "handshake" and direction == self.client:
            self.sender.discard("initial")
        if HANDSHAKE_DONE in frames:
            self.sender.discard("handshake")

    def _unseen(self, time_s: float, direction: str, size: int) -> None:
        """Add a packet that is encrypted; its number counts those before it."""
        self.hidden += 1
        number = self.counts[direction]
        self.counts[direction] += 1
        if direction == "sent":
            self.tables.sent(time_s, "application", number, size)
        else:
            self.tables.received(time_s, "application", number, size)

    def _http(self, time_s: float, direction: str, stream: int, offset: int, data: bytes) -> None:
        key = (direction, stream)
        finder = self.finders.get(key)
        if finder is None:
            if len(self.finders) >= MOST_STREAMS:
                return
            finder = self.finders[key] = FrameFinder(stream)
        for frame, length in finder.take(offset, data):
            self.tables.http.put(time_s, direction, stream, frame, length)


def _space(packet: Fields) -> str:
    """The packet number space of a packet."""
    if kinds := packet["quic.long.packet_type"]:
        return LONG_TYPES.get(kinds[0], "application")
    kinds = packet.get("quic.long.packet_type_v2", [])
    return LONG_TYPES_V2.get(kinds[0], "application") if kinds else "application"


def _exponent(packet: Fields, otherwise: int) -> int:
    """The unit of the sender's ACK delays, as a power of two of 1 µs, if its handshake says one."""
    announced = packet.get("tls.quic.parameter.ack_delay_exponent", [])
    return min(int(announced[0]), LARGEST_EXPONENT) if announced else otherwise


def _acks(
    frames: list[int], packet: Fields, exponent: int
) -> Iterator[tuple[list[tuple[int, int]], float]]:
    """Yield the ranges, newest first, and the delay in s of each ACK frame."""
    largest, firsts = packet["quic.ack.largest_acknowledged"], packet["quic.ack.first_ack_range"]
    delays, counts = packet["quic.ack.ack_delay"], packet["quic.ack.ack_range_count"]
    gaps, lengths = iter(packet["quic.ack.gap"]), iter(packet["quic.ack.ack_range"])
    for i in range(min(sum(kind in ACKS for kind in frames), len(largest), len(firsts))):
        high = int(largest[i])
        low = high - int(firsts[i])
        ranges = [(low, high)]
        for _, gap, length in zip(range(int(counts[i])), gaps, lengths, strict=False):
            high = low - int(gap) - 2  # RFC 9000 §19.3.1
            low = high - int(length)
            ranges.append((low, high))
        if not all(0 <= low <= high <= HIGHEST for low, high in ranges):
            raise ValueError("an ACK frame of negative numbers")
        yield ranges, (int(delays[i]) << exponent) / 1e6


def _streams(frames: list[int], packet: Fields) -> Iterator[Stream]:
    """Yield the STREAM frames; their type says whether they have an offset and a length."""
    offsets, lengths = iter(packet["quic.stream.offset"]), iter(packet["quic.stream.length"])
    kinds = [kind for kind in frames if kind in STREAMS]
    content = iter(packet["quic.stream_data"])
    # A frame without data has an empty field, or in some versions of tshark none.
    has_all = len(packet["quic.stream_data"]) == len(kinds)
    for kind, stream in zip(kinds, packet["quic.stream.stream_id"], strict=False):
        offset = int(next(offsets, "0")) if kind & OFFSET_BIT else 0
        length = int(next(lengths, "0")) if kind & LENGTH_BIT else None
        data = b"" if length == 0 and not has_all else _octets(next(content, ""))
        yield int(stream), offset, data


def _octets(text: str) -> bytes:
    return b"" if text == NO_OCTETS else bytes.fromhex(text)


def _texts(frames: list[int], acks: list[list[tuple[int, int]]]) -> list[str]:
    """Readable names of frames; consecutive equal names once."""
    rest = iter(acks)
    texts: list[str] = []
    for kind in frames:
        if kind in ACKS:
            name = ack_text(next(rest, []))
        else:
            name = "stream" if kind in STREAMS else NAMES.get(kind, f"frame {kind:#x}")
        if not texts or texts[-1] != name:
            texts.append(name)
    return texts
