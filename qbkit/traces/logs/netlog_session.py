"""One connection of Chrome's net log: QUIC with HTTP/3, or HTTP/2."""

from __future__ import annotations

from qbkit.traces.logs.events import EventTables, ack_text
from qbkit.traces.logs.netlog_acks import Params, ack_ranges
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
SILENT = {"ack", "padding", "connection_close", "stop_waiting"}
"""Frames that are not ack-eliciting."""
OF_NO_REQUEST = (1, 3, 7, 11)
"""Streams that a server uses before any request: for the handshake and to control HTTP."""


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
        self.last_number: dict[str, int] = {}
        self.one_number_space = False
        self.answered = False
        """Whether the server answered a request."""
        self.left_out = {"packets without a number, left out": 0, "ACKs of no packet, left out": 0}

    def __str__(self) -> str:
        failed = "" if self.answered else ", no answer"
        return f"{self.source} ({self.host or 'unknown host'}, {len(self.tables)} packets{failed})"

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
        if number is None:
            self.left_out["packets without a number, left out"] += 1
        else:
            if params.sent_time_us is not None:
                time_s = self._precise_s(params.sent_time_us)
            space = LEVELS.get(str(params.encryption_level), "application")
            self._number(space, number)
            if space == "handshake":  # a client has no more use for its first keys (RFC 9001, 4.9)
                self.sender.discard("initial")
            eliciting = bool(set(self.pending) - SILENT) or not self.pending
            self.sender.sent(
                time_s, space, number, size, eliciting=eliciting, data=self.pending_data
            )
            if self.tables.handshake.has_room("sent", space):
                self.tables.handshake.put(time_s, "sent", space, number, size, self.pending)
            self.last_sent = self.pending
        self._clear()

    def _number(self, space: str, number: int) -> None:
        """Google QUIC, before the IETF's, goes on counting where each space has its own numbers."""
        before = self.last_number.values()
        if before and space not in self.last_number:
            self.one_number_space = number > max(before)
        self.last_number[space] = number

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
        if self.tables.handshake.has_room("received", self.space):
            self.tables.handshake.put(time_s, "received", self.space, number, size, self.frames)

    def _lost(self, time_s: float, number: int, params: Params) -> None:
        if params.detection_time_us is not None:
            time_s = self._precise_s(params.detection_time_us)
        space = self.sender.space_of(number) or "application"
        self.sender.lost(time_s, space, number, str(params.transmission_type).lower())

    def _frame_sent(self, kind: str, params: Params) -> None:
        if kind == "stream" and self.pending_data[0] < 0 and params.stream_id is not None:
            self.pending_data = (params.stream_id, params.offset)
        if len(self.pending) < 100:
            self.pending.append(_frame_text(kind, params))

    def _frame_received(self, kind: str, time_s: float, params: Params) -> None:
        if len(self.frames) < 100:
            self.frames.append(_frame_text(kind, params))
        if kind == "ack":
            self._acked(time_s, params)
        elif kind == "handshake_done":
            self.sender.discard("handshake")
        elif kind == "stream" and params.stream_id not in OF_NO_REQUEST:
            self.answered = True

    def _acked(self, time_s: float, params: Params) -> None:
        if params.largest_observed is None:
            self.left_out["ACKs of no packet, left out"] += 1
            return
        delay_s = params.delta_time_largest_observed_us / 1e6
        sent = [space for space in self.last_number if self.sender.flying[space]]
        for space in (self.one_number_space and sent) or (self.space,):
            ranges = ack_ranges(params, self.sender.flying[space])
            self.sender.acked(time_s, space, ranges, delay_s)

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
            self.answered |= verb == "RECEIVED" and frame in ("headers", "data")
            self.tables.http.put(time_s, verb.lower(), stream, frame, size)

    def _http2(self, name: str, time_s: float, params: Params) -> None:
        """HTTP2_SESSION_SEND_{frame} or _RECV_{frame}."""
        verb, _, frame = name.partition("_")
        direction = {"SEND": "sent", "RECV": "received"}.get(verb)
        if direction and frame not in ("SETTING", "SETTINGS_ACK", "INVALID_HEADER"):
            stream = 0 if params.stream_id is None else params.stream_id
            self.answered |= direction == "received" and frame in ("HEADERS", "DATA")
            self.tables.http.put(time_s, direction, stream, frame.lower(), params.size)


def _frame_text(kind: str, params: Params) -> str:
    if kind == "ack":
        return ack_text(ack_ranges(params))
    if kind == "window_update" and (params.stream_id or 0) < 0:
        return "max_data"
    return FRAMES.get(kind, kind)
