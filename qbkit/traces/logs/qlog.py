"""qlog files as tables: what a QUIC connection sent, received, had acknowledged and lost, and when.

Reads drafts 0.3 to the current one (draft-ietf-quic-qlog-main-schema, -quic-events, -h3-events) in
all three serialisations: JSON-SEQ (RFC 7464), newline-delimited JSON, and one JSON document.
It reads records one by one, so memory grows with the numbers kept (about 65 bytes per packet and 65
per row of metrics), not with the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import xarray as xr

from qbkit.errors import TraceError
from qbkit.traces.logs.events import EventTables, ack_text
from qbkit.traces.logs.jsonfile import SEPARATOR, UNREADABLE, JsonFile, open_log
from qbkit.traces.logs.qlog_clock import Clock
from qbkit.traces.logs.qlog_head import (
    EVENT,
    FileHead,
    TraceHead,
    check_schema,
    chosen_trace,
    document_heads,
)
from qbkit.traces.logs.qlog_records import (
    KINDS,
    Http,
    Metrics,
    Numbers,
    QlogEnvelope,
    QlogFrame,
    QlogFrames,
    QlogPacket,
    State,
)

VANTAGE_POINTS = ("client", "server", "network")
SPACES = {"initial": "initial", "handshake": "handshake"}
"""Packet type → packet number space; all others are application data."""
DECODERS = {kind: msgspec.json.Decoder(kind, strict=False) for kind in set(KINDS.values())}
"""Not strict: JSON numbers have 53 bits, so integers may be texts (RFC 7493)."""
ENVELOPE = msgspec.json.Decoder(QlogEnvelope)
MOST_GROUPS = 100


def read_qlog(
    path: str | Path,
    *,
    trace: int | None = None,
    group: str | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """The events of one connection's qlog file (`qbkit.traces.logs.events.EventTables.dataset`).

    ``trace`` is the number of a trace, from 0 on, in a file that holds several. ``group`` is the
    ``group_id`` of the events to read, in a trace that mixes connections; by default all are read.
    Times count from the log's reference time, or from the first event where that is a wall clock.

    Attributes: ``source`` "qlog", ``vantage_point``, ``title``, ``qlog_version``,
    ``event_schemas`` (JSON list), ``reference_time`` (date and time of 0 s, if the log gives it),
    ``warnings`` (JSON list). A truncated or damaged file gives what can be read, and a warning with
    the place of the damage. Python warnings report an unknown time format or file schema, several
    groups read as one, and a trace that the file reports as missing. The reader corrects two units:
    quinn reports RTTs in s, neqo pacing rates in B/s. Raises TraceError for a file that is no qlog,
    for several traces without a choice, for a missing trace or group, and for impossible content:
    values of the wrong type, packet numbers beyond 2^62, records that nest too deep or are longer
    than 16 MiB.
    """
    with open_log(path, progress) as log:
        return _QlogReader(log, group).read(trace)


class _QlogReader:
    def __init__(self, log: JsonFile, group: str | None) -> None:
        self.log, self.group = log, group
        self.tables = EventTables()
        self.head, self.trace = FileHead(), TraceHead()
        self.clock = Clock({}, log.warn)
        self.groups: list[str] = []
        self.mixed = False
        self.rtt_seconds: bool | None = None
        self.rate_unit_mbps = 1e-6

    def read(self, wanted: int | None) -> xr.Dataset:
        """Read one trace, in any serialisation."""
        first = self.log.first_line()
        if first.startswith(SEPARATOR):
            self._read_records(self.log.records(), wanted)
        elif _is_record(first.strip()):
            self._read_records(self.log.lines(), wanted)
        else:
            self._read_document(wanted)
        if not self.tables and not self.head.version:
            raise TraceError(f"{self.log.name} is no qlog file: it has neither a header nor events")
        self._check_groups()
        point = self.trace.text("vantage_point", "type")
        ds = self.tables.dataset(
            source="qlog",
            vantage_point=point if point in VANTAGE_POINTS else "",
            title=self.head.title[:200] or self.trace.text("title"),
            warnings=self.log.warnings,
        )
        return ds.assign_attrs(
            qlog_version=self.head.version,
            event_schemas=json.dumps(self.trace.event_schemas),
            reference_time=self.clock.reference_time(),
        )

    def _read_records(self, records: Iterator[tuple[int, bytes]], wanted: int | None) -> None:
        """Read a header and then events, one per record, all of one trace."""
        if wanted:
            raise TraceError(f"{self.log.name} has no trace {wanted}; a file of records has one, 0")
        for place, text in records:
            record = text.strip()
            if record:
                self._take_record(record, place)

    def _read_document(self, wanted: int | None) -> None:
        head, traces = document_heads(self.log)
        chosen = chosen_trace(self.log, traces, wanted)
        self._begin(head, traces[chosen] if traces else TraceHead())
        first = sum(t.events for t in traces[:chosen])
        last = None if chosen >= len(traces) - 1 else first + self.trace.events
        for place, event in islice(self.log.items(EVENT), first, last):
            self._take_converted(event, place)

    def _take_record(self, record: bytes, place: int) -> None:
        try:
            if place == 0 and self._is_head(record):
                return
            event = ENVELOPE.decode(record)
            time_s = self._time_s(event.time, event.time_format, place)
            kind = KINDS.get(event.name)
            if kind is not None and self._is_meant(event.group_id):
                self._take(time_s, event.name, DECODERS[kind].decode(event.data), place)
        except UNREADABLE as error:
            self.log.unreadable(place, error)

    def _take_converted(self, event: Any, place: int) -> None:
        """An event of a document."""
        try:
            time_s = self._time_s(float(event["time"]), event.get("time_format"), place)
            kind = KINDS.get(event["name"])
            if kind is not None and self._is_meant(event.get("group_id")):
                data = msgspec.convert(event.get("data", {}), kind, strict=False)
                self._take(time_s, event["name"], data, place)
        except TraceError:
            raise
        except (
            *(msgspec.ValidationError, KeyError, TypeError, ValueError, AttributeError),
            *(ArithmeticError, RecursionError),
        ) as error:
            raise self.log.hostile(place, f"{type(error).__name__} {error}") from None

    def _is_head(self, record: bytes) -> bool:
        """Whether the record is the file's header; if so, use it."""
        head = msgspec.json.decode(record, type=FileHead)
        self._begin(head, TraceHead(head.trace))
        return bool(head.version or head.trace)

    def _begin(self, head: FileHead, trace: TraceHead) -> None:
        self.head, self.trace = head, trace
        check_schema(self.log, head)
        self.clock = Clock(trace.common_fields, self.log.warn)
        if trace.text("vantage_point", "name").startswith("neqo"):
            self.rate_unit_mbps = 8e-6

    def _time_s(self, time_ms: float, time_format: str | None, place: int) -> float:
        try:
            return self.clock.seconds(time_ms, time_format)
        except ValueError as error:
            raise self.log.hostile(place, str(error)) from None

    def _is_meant(self, own_group: Any) -> bool:
        """Whether an event belongs to the group being read."""
        found = self.trace.common_fields.get("group_id") if own_group is None else own_group
        if found is None:
            return self.group is None
        name = str(found)[:200]
        if not self.groups or name != self.groups[-1]:
            self._turn_to(name)
        return self.group is None or name == self.group

    def _turn_to(self, group: str) -> None:
        """Note a change of group.

        One connection may change its name, as quinn's does after its first answer, but it does not
        return to an old one: then events of several connections are mixed.
        """
        if group in self.groups:
            self.mixed = True
            self.groups.remove(group)
        self.groups = [*self.groups[-MOST_GROUPS:], group]

    def _check_groups(self) -> None:
        """Raise TraceError for a missing group; warn if several were read as one."""
        listed = ", ".join(repr(name) for name in sorted(self.groups)[:10]) or "none"
        if self.group is not None and self.group not in self.groups:
            raise TraceError(
                f"{self.log.name} has no events of group {self.group!r}; it has {listed}"
            )
        if self.group is None and self.mixed:
            self.log.warn(
                f"has events of {len(self.groups)} groups, read as one connection; choose one by "
                f"group=… ({listed})"
            )

    def _take(self, time_s: float, name: str, data: Any, place: int) -> None:
        """Add one event to its table."""
        try:
            if isinstance(data, Metrics):
                self._metrics(time_s, data)
            elif isinstance(data, QlogPacket):
                self._packet(name, time_s, data)
            elif isinstance(data, State):
                self.tables.state(time_s, data.new)
            elif isinstance(data, Numbers):
                self._numbers(name, time_s, data)
            elif isinstance(data, QlogFrames):
                self._acks(time_s, "application", data.frames)
            elif data.stream_id is not None:
                self._http(name, time_s, data)
        except ValueError as error:
            raise self.log.hostile(place, str(error)) from None

    def _metrics(self, time_s: float, m: Metrics) -> None:
        if self.rtt_seconds is None and m.smoothed_rtt is not None:
            self.rtt_seconds = self._reports_seconds(m)
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

    def _reports_seconds(self, m: Metrics) -> bool:
        """Whether RTTs are in s: before the first sample, no stack assumes an RTT below 1 ms.

        An assumed RTT has half its value as variation (RFC 9002 §5.3), before any packet was
        received; or it is the RFC's 333 ms, as on a server whose log begins later.
        """
        srtt = m.smoothed_rtt or 0.0
        assumed = m.rtt_variance is not None and srtt == 2 * m.rtt_variance
        return assumed and 0 < srtt < 1 and (srtt == 0.333 or not self.tables.any_received())

    def _packet(self, name: str, time_s: float, data: QlogPacket) -> None:
        number = data.header.packet_number
        number = data.packet_number if number is None else number
        if data.largest_lost_packet_num is not None:
            highest = data.largest_lost_packet_num
            return self.tables.lost_up_to(time_s, "application", highest, data.lost_packets)
        if number is None:
            return None  # a Retry or a version negotiation has none
        space = SPACES.get((data.type or data.header.packet_type).lower(), "application")
        size = data.raw.size_bytes()
        size = data.header.length if size is None else size
        if name.endswith("lost"):
            return self.tables.lost(time_s, space, number, data.trigger)
        if name.endswith("sent"):
            direction, (stream, offset) = "sent", _first_data(data.frames)
            self.tables.sent(time_s, space, number, size, stream=stream, offset_bytes=offset)
        else:
            direction = "received"
            self.tables.received(time_s, space, number, size)
            self._acks(time_s, space, data.frames)
        if self.tables.shows(direction, space):
            frames = [_frame_text(frame) for frame in data.frames]
            self.tables.handshake(time_s, direction, space, number, size, frames)
        return None

    def _acks(self, time_s: float, space: str, frames: list[QlogFrame]) -> None:
        for frame in frames:
            for low, high in _ranges(frame):
                self.tables.acked(time_s, space, low, high)

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


def _first_data(frames: list[QlogFrame]) -> tuple[int, int]:
    """Stream and offset of the first STREAM frame."""
    for frame in frames:
        if frame.frame_type == "stream" and frame.stream_id is not None:
            return frame.stream_id, frame.offset or 0
    return -1, -1


def _ranges(frame: QlogFrame) -> list[tuple[int, int]]:
    """The ranges of an ACK frame; a range of one packet may be a single number."""
    return [(low, high[-1] if high else low) for low, *high in frame.acked_ranges]


def _frame_text(frame: QlogFrame) -> str:
    return ack_text(_ranges(frame)) if frame.frame_type == "ack" else frame.frame_type


def _in_ms(time_s: float | None) -> float | None:
    return None if time_s is None else time_s * 1e3


def _is_record(text: bytes) -> bool:
    """Whether a first line is the header of a file of lines, not a part of one document."""
    try:
        head = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return isinstance(head, dict) and "traces" not in head
