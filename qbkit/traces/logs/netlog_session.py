"""One connection of Chrome's net log: QUIC with HTTP/3, or HTTP/2."""

from __future__ import annotations

import msgspec

from qbkit.traces.logs.events import EventTables, ack_text
from qbkit.traces.logs.sender import Sender

HALF_MS_S = 0.0005
"""The log truncates times to whole milliseconds; half of one is the mean truncation."""
LEVELS = {
    "ENCRYPTION_INITIAL": "initial",
    "ENCRYPTION_HANDSHAKE": "handshake",
    "INITIAL": "initial",
    "HANDSHAKE": "handshake",
}
"""Encryption levels and long header types → packet number space; all others are application."""
FRAMES = {
    "rst_stream": "reset_stream",
    "blocked": "data_blocked",
    "window_update": "max_stream_data",
    "message": "datagram",
}
"""QUICHE's names of frames → RFC 9000's, where they differ."""
SILENT = {"ack", "padding", "connection_close"}
"""Frames that are not ack-eliciting."""


class Params(msgspec.Struct):
    """The parameters of all kinds of events that the tables need."""

    packet_number: int | None = None
    size: int | None = None
    encryption_level: str = ""
    long_header_type: str = ""
    sent_time_us: int | None = None
    detection_time_us: int | None = None
    transmission_type: str = ""
    stream_id: int | None = None
    offset: int = 0
    largest_observed: int | None = None
    smallest_observed: int | None = None
    missing_packets: list[int] = []
    delta_time_largest_observed_us: int = 0
    payload_length: int | None = None
    compressed_headers_length: int | None = None
    host: str = ""
    port: int | None = None
    congestion_control_type: str = ""
    initial_congestion_window: int | None = None


class Session:
    """The tables of one connection, filled event by event; times count from its first one."""

    def __init__(self, source: int) -> None:
        self.source, self.host = source, ""
        self.controller, self.initial_window_packets = "", 0
        self.tables = EventTables()
        self.sender = Sender(self.tables, finds_losses=False, shift_s=HALF_MS_S)
        self.zero_s: float | None = None
        self.control_stream = {"sent": -1, "received": -1}
        self.pending: list[str] = []
        self.pending_data = (-1, -1)
        self.last_sent: list[str] = []
        self.datagram_bytes = 0
        self.header: tuple[str, int] | None = None
        self.space = "application"
        self.frames: list[str] = []

    def __str__(self) -> str:
        return f"{self.source} ({self.host or 'unknown host'}, {len(self.tables)} packets)"

    def take(self, name: str, time_ms: float, params: Params) -> None:
        """Take one event; raises ValueError for impossible numbers."""
        if self.zero_s is None:
            self.zero_s = time_ms / 1e3
        time_s = round(time_ms / 1e3 - self.zero_s, 6)
        if name in ("QUIC_SESSION", "HTTP2_SESSION"):
            if params.host:
                port = f":{params.port}" if params.port is not None else ""
                self.host = f"{params.host}{port}"[:200]
        elif name.startswith("HTTP2_SESSION_"):
            self._http2(name.removeprefix("HTTP2_SESSION_"), time_s, params)
        elif name.startswith("HTTP3_"):
            self._http3(name.removeprefix("HTTP3_"), time_s, params)
        elif name == "QUIC_CONGESTION_CONTROL_CONFIGURED":
            self.controller = params.congestion_control_type[:200]
            self.initial_window_packets = params.initial_congestion_window or 0
        else:
            self._quic(name.removeprefix("QUIC_SESSION_"), time_s, params)

    def _quic(self, name: str, time_s: float, params: Params) -> None:
        if name == "PACKET_SENT":
            self._sent(time_s, params)
        elif name == "COALESCED_PACKET_SENT":
            if not self.last_sent:  # some packets log their frames after they leave
                self.last_sent.extend(self.pending)
            self._clear()  # else these frames are duplicates
        elif name == "PACKET_RECEIVED":
            self.datagram_bytes = params.size or 0
        elif name == "UNAUTHENTICATED_PACKET_HEADER_RECEIVED":
            space = LEVELS.get(params.long_header_type, "application")
            number = params.packet_number
            self.header = None if number is None else (space, number)
        elif name in ("DUPLICATE_PACKET_RECEIVED", "DROPPED_UNDECRYPTABLE_PACKET"):
            self.header = None
        elif name == "PACKET_AUTHENTICATED":
            self._received(time_s)
        elif name == "PACKET_LOST" and params.packet_number is not None:
            self._lost(time_s, params.packet_number, params)
        elif name.endswith("_FRAME_SENT"):
            self._frame_sent(name.removesuffix("_FRAME_SENT").lower(), params)
        elif name.endswith("_FRAME_RECEIVED"):
            self._received(time_s)
            self._frame_received(name.removesuffix("_FRAME_RECEIVED").lower(), time_s, params)

    def _sent(self, time_s: float, params: Params) -> None:
        number, size = params.packet_number, params.size or 0
        if number is not None:
            if params.sent_time_us is not None:
                time_s = self._precise_s(params.sent_time_us)
            space = LEVELS.get(params.encryption_level, "application")
            eliciting = bool(set(self.pending) - SILENT) or not self.pending
            self.sender.sent(
                time_s, space, number, size, eliciting=eliciting, data=self.pending_data
            )
            if self.tables.shows("sent", space):
                self.tables.handshake(time_s, "sent", space, number, size, self.pending)
            self.last_sent = self.pending
        self._clear()

    def _precise_s(self, time_us: int) -> float:
        return round(time_us / 1e6 - (self.zero_s or 0.0), 6)

    def _clear(self) -> None:
        self.pending, self.pending_data = [], (-1, -1)

    def _received(self, time_s: float) -> None:
        """Add the packet whose header came last, once."""
        if self.header is None:
            return
        (self.space, number), self.header = self.header, None
        size, self.datagram_bytes = self.datagram_bytes, 0  # of the first packet in it only
        self.frames = []
        self.tables.received(time_s, self.space, number, size)
        if self.tables.shows("received", self.space):
            self.tables.handshake(time_s, "received", self.space, number, size, self.frames)

    def _lost(self, time_s: float, number: int, params: Params) -> None:
        if params.detection_time_us is not None:
            time_s = self._precise_s(params.detection_time_us)
        space = self.sender.space_of(number) or "application"
        self.sender.lost(time_s, space, number, params.transmission_type.lower())

    def _frame_sent(self, kind: str, params: Params) -> None:
        if kind == "stream" and self.pending_data[0] < 0 and params.stream_id is not None:
            self.pending_data = (params.stream_id, params.offset)
        if len(self.pending) < 100:
            self.pending.append(_frame_text(kind, params))

    def _frame_received(self, kind: str, time_s: float, params: Params) -> None:
        if len(self.frames) < 100:
            self.frames.append(_frame_text(kind, params))
        if kind == "ack":
            delay_s = params.delta_time_largest_observed_us / 1e6
            self.sender.acked(time_s, self.space, _ranges(params), delay_s)

    def _http3(self, name: str, time_s: float, params: Params) -> None:
        """HTTP3_{what}_SENT or _RECEIVED; only frames of the control stream have no stream."""
        what, _, verb = name.rpartition("_")
        if what.endswith("CONTROL_STREAM") and verb == "CREATED":
            side = "sent" if what.startswith("LOCAL") else "received"
            self.control_stream[side] = -1 if params.stream_id is None else params.stream_id
        elif verb in ("SENT", "RECEIVED"):
            stream = params.stream_id
            stream = self.control_stream[verb.lower()] if stream is None else stream
            sizes = (params.payload_length, params.compressed_headers_length)
            size = next((n for n in sizes if n is not None), None)
            frame = what.removesuffix("_FRAME").lower()
            self.tables.http(time_s, verb.lower(), stream, frame, size)

    def _http2(self, name: str, time_s: float, params: Params) -> None:
        """HTTP2_SESSION_SEND_{frame} or _RECV_{frame}."""
        verb, _, frame = name.partition("_")
        direction = {"SEND": "sent", "RECV": "received"}.get(verb)
        if direction and frame not in ("SETTING", "SETTINGS_ACK", "INVALID_HEADER"):
            stream = 0 if params.stream_id is None else params.stream_id
            self.tables.http(time_s, direction, stream, frame.lower(), params.size)


def _ranges(params: Params) -> list[tuple[int, int]]:
    """The ranges that an ACK frame acknowledges, newest first: its span without missing packets."""
    low, high = params.smallest_observed, params.largest_observed
    if low is None or high is None:
        return []
    ranges = []
    for missing in sorted(params.missing_packets, reverse=True):
        if low <= missing <= high:
            if missing < high:
                ranges.append((missing + 1, high))
            high = missing - 1
    return [*ranges, (low, high)] if low <= high else ranges


def _frame_text(kind: str, params: Params) -> str:
    if kind == "ack":
        return ack_text(_ranges(params))
    if kind == "window_update" and (params.stream_id or 0) < 0:
        return "max_data"
    return FRAMES.get(kind, kind)
