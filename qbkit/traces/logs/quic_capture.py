"""One QUIC connection of a capture, with what its sender could know."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path

import xarray as xr

from qbkit.errors import TraceError
from qbkit.traces.logs.columns import HIGHEST
from qbkit.traces.logs.events import EventTables, ack_text
from qbkit.traces.logs.http3 import FrameFinder
from qbkit.traces.logs.jsonfile import JsonFile
from qbkit.traces.logs.records import Conversation, End, describe
from qbkit.traces.logs.sender import Sender
from qbkit.traces.logs.tshark import Datagram, Fields, datagrams

LONG_TYPES = {"0": "initial", "2": "handshake"}
"""Long header types with their own space (RFC 9000 §17.2); 0-RTT is application data."""
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
DELAY_EXPONENT = 3
"""ACK delays are in units of 8 µs, unless transport parameters say otherwise (RFC 9000 §18.2)."""
MOST_STREAMS = 1 << 16
SET = {"1", "True", "true"}
"""How versions of tshark write a bit that is set."""

Stream = tuple[int, int, bytes]
"""Number, offset, data."""


def read_quic(
    path: Path,
    log: JsonFile,
    connection: Conversation,
    sender: End,
    keylog: str | Path | None,
    copies: Container[int],
) -> xr.Dataset:
    """The tables of a connection of a capture; ``sent`` is what comes from ``sender``.

    ``copies`` are the numbers of frames to leave out.
    """
    if keylog is not None and not Path(keylog).is_file():
        raise TraceError(f"there is no key log {keylog}")
    reader = _QuicReader(sender[1], describe(sender).rpartition(":")[0].strip("[]"))
    keys = None if keylog is None else Path(keylog).resolve()
    log.bar.reset()
    share = (log.bar.total or 0) // connection.packets
    for datagram in datagrams(path, connection, keys):
        log.bar.update(share)
        if datagram.number in copies:
            continue
        try:
            reader.take(datagram)
        except (ValueError, IndexError, OverflowError) as error:
            raise TraceError(f"{log.name} has an impossible value: {error}") from None
    if reader.hidden:
        log.warnings.append(_hidden(log.name, reader, keylog))
    title = " to ".join(describe(end) for end in connection.ends)
    return reader.tables.dataset(
        source="pcap", vantage_point="network", title=f"quic {title}", warnings=log.warnings
    )


def _hidden(name: str, reader: _QuicReader, keylog: str | Path | None) -> str:
    if reader.hidden == len(reader.tables):
        return (
            f"no packet of {name} can be read: it is no QUIC, or began before the capture; there "
            "are times and sizes only"
        )
    why = "without a key log" if keylog is None else f"with the secrets in {Path(keylog).name}"
    return (
        f"{reader.hidden} packets of {name} cannot be decrypted {why}: their numbers (counted "
        "here), frames, acknowledgements, losses and HTTP frames cannot be seen, only times and "
        "sizes; give the client's or server's SSLKEYLOGFILE of this connection as keylog"
    )


class _QuicReader:
    def __init__(self, port: int, address: str) -> None:
        self.sender_end = (address, port)
        self.tables = EventTables()
        self.sender = Sender(self.tables, finds_losses=True)
        self.zero_ns: int | None = None
        self.hidden = 0
        self.counts = {"sent": 0, "received": 0}
        self.finders: dict[tuple[str, int], FrameFinder] = {}

    def take(self, datagram: Datagram) -> None:
        """Add the packets of one datagram."""
        if self.zero_ns is None:
            self.zero_ns = datagram.time_ns
        time_s = (datagram.time_ns - self.zero_ns) / 1e9
        end = (datagram.address, datagram.port)
        direction = "sent" if end == self.sender_end else "received"
        for place, packet in enumerate(datagram.packets):
            # What follows a packet in its datagram without the fixed bit is padding.
            padding = place and not set(packet["quic.fixed_bit"]) & SET
            if packet["quic.frame_type"] or not padding:
                self._packet(time_s, direction, packet)

    def _packet(self, time_s: float, direction: str, packet: Fields) -> None:
        kinds = packet["quic.long.packet_type"]
        space = LONG_TYPES.get(kinds[0], "application") if kinds else "application"
        size = int(packet["quic.packet_length"][0]) if packet["quic.packet_length"] else 0
        if not packet["quic.packet_number"] or not packet["quic.frame_type"]:
            if not (kinds and kinds[0] == "3"):  # a Retry has no number
                self._unseen(time_s, direction, size)
            return
        number = int(packet["quic.packet_number"][0])
        frames = [int(kind) for kind in packet["quic.frame_type"]]
        acks, streams = list(_acks(frames, packet)), list(_streams(frames, packet))
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


def _acks(frames: list[int], packet: Fields) -> Iterator[tuple[list[tuple[int, int]], float]]:
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
        yield ranges, (int(delays[i]) << DELAY_EXPONENT) / 1e6


def _streams(frames: list[int], packet: Fields) -> Iterator[Stream]:
    """Yield the STREAM frames; their type says whether they have an offset and a length."""
    offsets, lengths = iter(packet["quic.stream.offset"]), iter(packet["quic.stream.length"])
    content = iter(packet["quic.stream_data"])
    kinds = [kind for kind in frames if kind in STREAMS]
    for kind, stream in zip(kinds, packet["quic.stream.stream_id"], strict=False):
        offset = int(next(offsets, "0")) if kind & OFFSET_BIT else 0
        length = int(next(lengths, "0")) if kind & LENGTH_BIT else None
        data = b"" if length == 0 else bytes.fromhex(next(content, ""))
        yield int(stream), offset, data


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
