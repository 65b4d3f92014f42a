"""qlog files as tables: what a QUIC connection sent, received, had acknowledged and lost, and when.

Reads drafts 0.3 to the current one (draft-ietf-quic-qlog-main-schema, -quic-events, -h3-events) in
all three serialisations: JSON-SEQ (RFC 7464), newline-delimited JSON, and one JSON document.
Records are read one by one, so memory grows with the numbers that are kept (some 65 bytes a packet
and 65 a row of metrics), not with the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ijson
import msgspec
import xarray as xr

from qbkit.errors import TraceError
from qbkit.traces.events import EventTables, ack_text
from qbkit.traces.jsonfile import LATEST_MS, UNREADABLE, JsonFile, open_log
from qbkit.traces.qlog_records import (
    KINDS,
    Envelope,
    Frame,
    Http,
    Metrics,
    Numbers,
    Packet,
    Preamble,
    State,
)

VANTAGE_POINTS = ("client", "server", "network")
HEAD_BYTES = 1 << 20
EPOCH_MS = 1e11
"""Times beyond three years are wall-clock times: they count from the first event."""
SPACES = {"initial": "initial", "handshake": "handshake"}
"""Packet type → packet number space; all others are application data."""
DECODERS = {kind: msgspec.json.Decoder(kind) for kind in set(KINDS.values())}
ENVELOPE = msgspec.json.Decoder(Envelope)


def read_qlog(path: str | Path, *, progress: bool = False) -> xr.Dataset:
    """The events of one connection's qlog file (`qbkit.traces.events.EventTables.dataset`).

    Attributes: ``source`` "qlog", ``vantage_point``, ``title``, ``qlog_version``, ``warnings``
    (JSON list). A file that is cut off or damaged gives what can be read, and a warning that says
    where it broke. Two habits are put right: quinn tells RTTs in s, neqo pacing rates in B/s.
    Raises TraceError for what is no qlog, and for what cannot be meant: values of the wrong
    type, packet numbers beyond 2^62, records that nest too deep or are longer than 16 MiB.
    """
    with open_log(path, progress) as log:
        return _Reader(log).read()


class _Reader:
    def __init__(self, log: JsonFile) -> None:
        self.log = log
        self.tables = EventTables()
        self.preamble = Preamble()
        self.zero_ms: float | None = None
        self.last_ms = 0.0
        self.delta = False
        self.rtt_seconds: bool | None = None
        self.rate_unit_mbps = 1e-6

    def read(self) -> xr.Dataset:
        """All of it, whichever serialisation it has."""
        first = self.log.first_line()
        if first.startswith(b"\x1e") or _is_record(first.strip(b" \r\n\t")):
            for place, line in self.log.lines():
                record = line.strip(b"\x1e \r\n\t")
                if record:
                    self._take_record(record, place)
        else:
            self._begin(_document_head(self.log))
            for place, event in self.log.items("traces.item.events.item"):
                self._take_converted(event, place)
        version = self.preamble.qlog_version or self.preamble.file_schema
        if not self.tables and not version:
            raise TraceError(
                f"{self.log.name} is no qlog file: neither its head nor events are there"
            )
        point = _text(self.preamble.trace, "vantage_point", "type")
        ds = self.tables.dataset(
            source="qlog",
            vantage_point=point if point in VANTAGE_POINTS else "",
            title=self.preamble.title[:200],
            warnings=self.log.warnings,
        )
        return ds.assign_attrs(qlog_version=version[:200])

    def _take_record(self, record: bytes, place: int) -> None:
        try:
            if place == 0 and self._is_head(record):
                return
            event = ENVELOPE.decode(record)
            kind = KINDS.get(event.name)
            if kind is not None:
                self._take(event.time, event.name, DECODERS[kind].decode(event.data), place)
        except UNREADABLE as error:
            self.log.unreadable(place, error)

    def _take_converted(self, event: Any, place: int) -> None:
        """An event of a document."""
        try:
            kind = KINDS.get(event["name"])
            if kind is not None:
                data = msgspec.convert(event.get("data", {}), kind, strict=False)
                self._take(float(event["time"]), event["name"], data, place)
        except TraceError:
            raise
        except (
            *(msgspec.ValidationError, KeyError, TypeError, ValueError, AttributeError),
            *(ArithmeticError, RecursionError),
        ) as error:
            raise self.log.hostile(place, f"{type(error).__name__} {error}") from None

    def _is_head(self, record: bytes) -> bool:
        """Take the head of the file, if the record is one."""
        preamble = msgspec.json.decode(record, type=Preamble)
        self._begin(preamble)
        return bool(preamble.qlog_version or preamble.file_schema or preamble.trace)

    def _begin(self, preamble: Preamble) -> None:
        self.preamble = preamble
        self.delta = _text(preamble.trace, "common_fields", "time_format") == "delta"
        if _text(preamble.trace, "vantage_point", "name").startswith("neqo"):
            self.rate_unit_mbps = 8e-6

    def _take(self, time_ms: float, name: str, data: Any, place: int) -> None:
        """One event into its table."""
        try:
            time_s = self._time_s(time_ms)
            if isinstance(data, Metrics):
                self._metrics(time_s, data)
            elif isinstance(data, Packet):
                self._packet(name, time_s, data)
            elif isinstance(data, State):
                self.tables.state(time_s, data.new)
            elif isinstance(data, Numbers):
                self._numbers(name, time_s, data)
            elif data.stream_id is not None:
                self._http(name, time_s, data)
        except ValueError as error:
            raise self.log.hostile(place, str(error)) from None

    def _metrics(self, time_s: float, m: Metrics) -> None:
        if self.rtt_seconds is None and m.smoothed_rtt is not None:
            self.rtt_seconds = self._tells_seconds(m)
        if self.rtt_seconds:
            m.smoothed_rtt, m.latest_rtt, m.min_rtt = map(
                _in_ms, (m.smoothed_rtt, m.latest_rtt, m.min_rtt)
            )
        rate = m.pacing_rate
        window = m.congestion_window if m.congestion_window is not None else m.cwnd
        self.tables.metrics(
            time_s,
            cwnd_bytes=window,
            ssthresh_bytes=m.ssthresh,
            bytes_in_flight=m.bytes_in_flight,
            srtt_ms=m.smoothed_rtt,
            latest_rtt_ms=m.latest_rtt,
            min_rtt_ms=m.min_rtt,
            pacing_rate_mbps=None if rate is None else rate * self.rate_unit_mbps,
        )

    def _tells_seconds(self, m: Metrics) -> bool:
        """Whether RTTs are in s: before the first sample, no stack assumes one of less than 1 ms.

        An assumed RTT is one whose variation is its half (RFC 9002 §5.3), before anything came; or
        the RFC's own 333 ms, as a server has it when it begins to tell.
        """
        srtt = m.smoothed_rtt or 0.0
        assumed = m.rtt_variance is not None and srtt == 2 * m.rtt_variance
        return assumed and 0 < srtt < 1 and (srtt == 0.333 or not self.tables.any_received())

    def _packet(self, name: str, time_s: float, data: Packet) -> None:
        number = data.header.packet_number
        number = data.packet_number if number is None else number
        if number is None:
            return  # a Retry or a version negotiation has none
        space = SPACES.get((data.type or data.header.packet_type).lower(), "application")
        size = data.raw.length if data.raw.length is not None else data.header.length
        if name.endswith("lost"):
            return self.tables.lost(time_s, space, number, data.trigger)
        if name.endswith("sent"):
            direction, (stream, offset) = "sent", _first_data(data.frames)
            self.tables.sent(time_s, space, number, size, stream=stream, offset_bytes=offset)
        else:
            direction = "received"
            self.tables.received(time_s, space, number, size)
            for frame in data.frames:
                for low, high in _ranges(frame):
                    self.tables.acked(time_s, space, low, high)
        if self.tables.shows(direction, space):
            frames = [_frame_text(frame) for frame in data.frames]
            self.tables.handshake(time_s, direction, space, number, size, frames)
        return None

    def _numbers(self, name: str, time_s: float, data: Numbers) -> None:
        space = SPACES.get(data.packet_number_space, "application")
        if data.packet_number is not None:
            self.tables.spurious(space, data.packet_number, data.packet_number)
        if name.endswith("acked"):
            for number in data.packet_numbers:
                self.tables.acked(time_s, space, number, number)

    def _http(self, name: str, time_s: float, data: Http) -> None:
        direction = "sent" if name.endswith("created") else "received"
        frame = data.frame.frame_type or "unknown"
        self.tables.http(time_s, direction, data.stream_id or 0, frame, data.size_bytes())

    def _time_s(self, time_ms: float) -> float:
        """Seconds since the reference, or since the first event where that is a wall clock."""
        if not -LATEST_MS < time_ms < LATEST_MS:
            raise ValueError(f"a time of {time_ms} ms")
        if self.delta:
            self.last_ms += time_ms
            return self.last_ms / 1e3
        if self.zero_ms is None:
            self.zero_ms = time_ms if abs(time_ms) > EPOCH_MS else 0.0
        return (time_ms - self.zero_ms) / 1e3


def _first_data(frames: list[Frame]) -> tuple[int, int]:
    """Stream and offset of the first STREAM frame."""
    for frame in frames:
        if frame.frame_type == "stream" and frame.stream_id is not None:
            return frame.stream_id, frame.offset or 0
    return -1, -1


def _ranges(frame: Frame) -> list[tuple[int, int]]:
    """What an ACK frame acknowledges; a range of one packet may be written as one number."""
    return [(low, high[-1] if high else low) for low, *high in frame.acked_ranges]


def _frame_text(frame: Frame) -> str:
    return ack_text(_ranges(frame)) if frame.frame_type == "ack" else frame.frame_type


def _in_ms(time_s: float | None) -> float | None:
    return None if time_s is None else time_s * 1e3


def _text(tree: dict[str, Any], part: str, member: str) -> str:
    """A text in a part of the head; empty where either is absent."""
    found = tree.get(part)
    return str(found.get(member, ""))[:200] if isinstance(found, dict) else ""


def _is_record(text: bytes) -> bool:
    """Whether a first line is the head of a file by lines, not a part of one document."""
    try:
        head = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return isinstance(head, dict) and "traces" not in head


def _document_head(log: JsonFile) -> Preamble:
    """Version, title and vantage point of a document, as far as they stand in its first MiB."""
    found: dict[str, str] = {}
    places = {
        "qlog_version": ("qlog_version",),
        "title": ("title", "traces.item.title"),
        "name": ("traces.item.vantage_point.name",),
        "type": ("traces.item.vantage_point.type",),
        "time_format": ("traces.item.common_fields.time_format",),
    }
    wanted = {place: key for key, all_places in places.items() for place in all_places}
    try:
        for prefix, _, value in ijson.parse(log):
            if prefix in wanted:
                found.setdefault(wanted[prefix], str(value))
            if len(found) == len(places) or log.file.tell() > HEAD_BYTES:
                break
    except (ijson.JSONError, ValueError, ArithmeticError):
        pass  # whoever reads the events tells of it
    log.rewind()
    point = {key: found.get(key, "") for key in ("name", "type")}
    trace = {"vantage_point": point, "common_fields": {"time_format": found.get("time_format")}}
    return Preamble(
        qlog_version=found.get("qlog_version", ""), title=found.get("title", ""), trace=trace
    )
