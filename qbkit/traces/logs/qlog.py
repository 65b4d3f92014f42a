"""qlog files as tables: what a QUIC connection sent, received, had acknowledged and lost, and when.

Reads draft-00 (draft-marx-qlog-main-schema, 2019) to the current one
(draft-ietf-quic-qlog-main-schema, -quic-events, -h3-events) in all three serialisations: JSON-SEQ
(RFC 7464), newline-delimited JSON, and one JSON document.
It reads records one by one, so memory grows with the numbers kept (about 65 bytes per packet and 65
per row of metrics), not with the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import xarray as xr

from qbkit.errors import TraceError
from qbkit.json_words import in_words
from qbkit.traces.logs.events import EventTables, ack_text
from qbkit.traces.logs.jsonfile import SEPARATOR, UNREADABLE, JsonFile, open_log
from qbkit.traces.logs.qlog_acks import AckRanges, EndsAreOpenError
from qbkit.traces.logs.qlog_clock import Clock
from qbkit.traces.logs.qlog_drafts import modern
from qbkit.traces.logs.qlog_groups import Groups
from qbkit.traces.logs.qlog_head import (
    EVENT,
    FileHead,
    TraceHead,
    check_version,
    chosen_trace,
    document_heads,
)
from qbkit.traces.logs.qlog_records import (
    KINDS,
    Http,
    Metrics,
    Numbers,
    QlogEnvelope,
    QlogEvent,
    QlogFrame,
    QlogFrames,
    QlogPacket,
    State,
)
from qbkit.traces.logs.qlog_units import LONGEST_RTT_MS, NO_LIMIT, RttUnit, limit

VANTAGE_POINTS = ("client", "server", "network")
SPACES = {"initial": "initial", "handshake": "handshake"}
"""Packet type → packet number space; all others are application data."""
DECODERS = {kind: msgspec.json.Decoder(kind, strict=False) for kind in set(KINDS.values())}
"""Not strict: JSON numbers have 53 bits, so integers may be texts (RFC 7493)."""
ENVELOPE = msgspec.json.Decoder(QlogEnvelope, strict=False)
UNNUMBERED = ("retry", "version_negotiation", "stateless_reset")
"""Types of packets that have no number."""
SHOWN, LONGEST_NAME = 5, 60
"""Names of events in an error."""


def read_qlog(
    path: str | Path,
    *,
    trace: int | str | None = None,
    group: str | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """The events of one connection's qlog file (`qbkit.traces.logs.events.EventTables.dataset`).

    ``trace`` chooses one of several in a file: its number, from 0 on, its vantage point ("client",
    "server", "network"), the name of that, or its title. ``group`` is the ``group_id`` of the
    events to read, in a trace that mixes connections; by default all are read. Times count from the
    log's reference time, or from the first event where that is a wall clock. A window or a rate of
    the largest number of its type, as 2^64 - 1, is infinite.

    Attributes: ``source`` "qlog", ``vantage_point``, ``title``, ``qlog_version``,
    ``event_schemas`` (JSON list), ``reference_time`` (date and time of 0 s, if the log gives it),
    ``warnings`` (JSON list). A truncated or damaged file gives what can be read, and a warning with
    the place of the damage; so do values that are left out, with their number. Python warnings
    report an unknown time format, unit or file schema, several groups read as one, and a trace that
    the file reports as missing. The reader corrects three units: quinn reports RTTs in s, neqo
    pacing rates in B/s, and some logs with times in µs RTTs in ms; and the ranges of acknowledged
    packets in noq's logs, which end before their second number. quiche says how many packets were
    lost, not which: these are the first ones in flight. Raises TraceError for a file
    that is no qlog, for version 0.1, for a file without an event that the tables show, for several
    traces without a choice, for a missing trace or group, and for impossible content: values of the
    wrong type, packet numbers beyond 2^62, records that nest too deep or are longer than 16 MiB.
    """
    try:
        with open_log(path, progress) as log:
            return _QlogReader(log, group, AckRanges()).read(trace)
    except EndsAreOpenError:
        with open_log(path, progress) as log:
            return _QlogReader(log, group, AckRanges(ends_open=True)).read(trace)


class _QlogReader:
    def __init__(self, log: JsonFile, group: str | None, ranges: AckRanges) -> None:
        self.log, self.groups, self.ranges = log, Groups(group), ranges
        self.names_losses = False
        self.tables = EventTables()
        self.head, self.trace = FileHead(), TraceHead()
        self.clock = Clock({}, {}, log.warn)
        self.rtt_unit = RttUnit(1.0, log.warn)
        self.rate_unit_mbps = 1e-6
        self.events = 0
        self.not_shown: list[str] = []

    def read(self, wanted: int | str | None) -> xr.Dataset:
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
        self.groups.check(self.log)
        if not self.tables:
            raise TraceError(f"{self.log.name} has nothing to show: {self._why_empty()}")
        self.log.count_forgotten(self.tables.forgotten())
        point = self.trace.vantage_point
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

    def _why_empty(self) -> str:
        if not self.events:
            return f"it is {self.log.damage}" if self.log.damage else "it has no events"
        listed = f"; it has {', '.join(self.not_shown)}" if self.not_shown else ""
        return (
            f"none of its {self.events} events is a packet with a number, a metric, a state or an "
            f"HTTP frame{listed}"
        )

    def _read_records(self, records: Iterator[tuple[int, bytes]], wanted: int | str | None) -> None:
        """Read a header and then events, one per record, all of one trace."""
        for place, text in records:
            record = text.strip()
            if record:
                self._take_record(record, place)
        self.trace.events = self.events
        chosen_trace(self.log, [self.trace], wanted)  # raises for one that the file does not have

    def _read_document(self, wanted: int | str | None) -> None:
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
            event = QlogEnvelope() if record.startswith(b"[") else ENVELOPE.decode(record)
            if not event.name or event.time != event.time:  # NaN: no time
                return self._take_converted(msgspec.json.decode(record), place)
            time_s = self._time_s(event.time, event.time_format, place)
            kind = self._kind(event.name, event.group_id)
            if kind is not None:
                self._take(time_s, event.name, DECODERS[kind].decode(event.data), place)
        except UNREADABLE as error:
            self.log.unreadable(place, error)

    def _take_converted(self, raw: Any, place: int) -> None:
        """An event of a document, or of a draft before 0.3."""
        try:
            event = msgspec.convert(modern(raw, self.trace.event_fields), QlogEvent, strict=False)
            time_s = self._time_s(event.time, event.time_format, place)
            kind = self._kind(event.name, event.group_id)
            if kind is not None:
                data = msgspec.convert(event.data or {}, kind, strict=False)
                self._take(time_s, event.name, data, place)
        except (msgspec.ValidationError, RecursionError, ArithmeticError) as error:
            raise self.log.hostile(place, in_words(error)) from None
        except ValueError as error:
            if isinstance(error, TraceError):
                raise
            raise self.log.hostile(place, str(error)) from None

    def _kind(self, name: str, group: Any) -> type[msgspec.Struct] | None:
        """The type of an event's data, if it is to be read."""
        self.events += 1
        kind = KINDS.get(name)
        if (
            kind is None
            and len(self.not_shown) < SHOWN
            and name[:LONGEST_NAME] not in self.not_shown
        ):
            self.not_shown.append(name[:LONGEST_NAME])
        return kind if kind is not None and self._is_meant(group) else None

    def _is_head(self, record: bytes) -> bool:
        """Whether the record is the file's header; if so, use it."""
        head = msgspec.json.decode(record, type=FileHead)
        self._begin(head, TraceHead(head.trace))
        return bool(head.version or head.trace)

    def _begin(self, head: FileHead, trace: TraceHead) -> None:
        self.head, self.trace = head, trace
        check_version(self.log, head)
        self.clock = Clock(trace.common_fields, trace.configuration, self.log.warn)
        self.rtt_unit = RttUnit(self.clock.unit_ms, self.log.warn)
        if trace.text("vantage_point", "name").startswith("neqo"):
            self.rate_unit_mbps = 8e-6

    def _time_s(self, time: float, time_format: str | None, place: int) -> float:
        try:
            return self.clock.seconds(time, time_format)
        except ValueError as error:
            raise self.log.hostile(place, str(error)) from None

    def _is_meant(self, own_group: Any) -> bool:
        """Whether an event belongs to the group being read."""
        found = self.trace.common_fields.get("group_id") if own_group is None else own_group
        return self.groups.is_meant(found)

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
            else:
                self.log.count("HTTP frames of no stream, left out")
        except ValueError as error:
            raise self.log.hostile(place, str(error)) from None

    def _metrics(self, time_s: float, m: Metrics) -> None:
        if m.cf_lost_packets is not None and not self.names_losses:
            self.tables.lost_first(time_s, "application", m.cf_lost_packets.delta)
        unit_ms, rate = self.rtt_unit.of(m), limit(m.pacing_rate)
        windows = (m.congestion_window, m.cwnd, m.current_cwnd)
        self.tables.metrics(
            time_s,
            cwnd_bytes=self._known(limit(next((w for w in windows if w is not None), None))),
            ssthresh_bytes=self._known(limit(m.ssthresh)),
            bytes_in_flight=self._known(m.bytes_in_flight, NO_LIMIT),
            srtt_ms=self._known(m.smoothed_rtt, LONGEST_RTT_MS / unit_ms, unit_ms),
            latest_rtt_ms=self._known(m.latest_rtt, LONGEST_RTT_MS / unit_ms, unit_ms),
            min_rtt_ms=self._known(m.min_rtt, LONGEST_RTT_MS / unit_ms, unit_ms),
            pacing_rate_mbps=self._known(rate, math.inf, self.rate_unit_mbps),
        )

    def _known(
        self, value: float | None, most: float = math.inf, unit: float = 1.0
    ) -> float | None:
        """A metric in another unit; NaN for one that cannot be, which a warning counts."""
        if value is None or 0 <= value <= most:
            return None if value is None else value * unit
        self.log.count("impossible values of metrics, left out")
        return math.nan

    def _packet(self, name: str, time_s: float, data: QlogPacket) -> None:
        number = data.header.packet_number
        number = data.packet_number if number is None else number
        if data.largest_lost_packet_num is not None:
            highest = data.largest_lost_packet_num
            return self.tables.lost_up_to(time_s, "application", highest, data.lost_packets)
        if number is None:
            if data.kind not in UNNUMBERED:
                self.log.count("packets without a number, left out")
            return None
        space, size = SPACES.get(data.kind, "application"), data.size_bytes()
        if name.endswith("lost"):
            self.names_losses = True
            return self.tables.lost(time_s, space, number, data.trigger)
        if name.endswith("sent"):
            direction, (stream, offset) = "sent", _first_data(data.frames)
            self.tables.sent(time_s, space, number, size, stream=stream, offset_bytes=offset)
            self.rtt_unit.sent(time_s, space, number)
        else:
            direction = "received"
            self.tables.received(time_s, space, number, size)
            self.rtt_unit.received()
            self._acks(time_s, space, data.frames)
        if self.tables.handshake.has_room(direction, space):
            frames = [self._frame_text(frame) for frame in data.frames]
            self.tables.handshake.put(time_s, direction, space, number, size, frames)
        return None

    def _acks(self, time_s: float, space: str, frames: list[QlogFrame]) -> None:
        for frame in frames:
            for low, high in self.ranges.of(frame):
                self._acked(time_s, space, low, high)

    def _frame_text(self, frame: QlogFrame) -> str:
        is_ack = frame.frame_type == "ack"
        return ack_text(self.ranges.of(frame)) if is_ack else frame.frame_type

    def _acked(self, time_s: float, space: str, low: int, high: int) -> None:
        self.tables.acked(time_s, space, low, high)
        self.rtt_unit.acked(time_s, space, low, high)

    def _numbers(self, name: str, time_s: float, data: Numbers) -> None:
        own_name = data.packet_num_space or data.packet_number_space
        space = SPACES.get(own_name.lower(), "application")
        if data.packet_number is not None:
            self.tables.spurious(space, data.packet_number, data.packet_number)
        if name.endswith("acked"):
            for number in data.packet_numbers:
                self._acked(time_s, space, number, number)
        if data.packet_num is not None:
            self._acked(time_s, space, data.packet_num, data.packet_num)

    def _http(self, name: str, time_s: float, data: Http) -> None:
        direction = "sent" if name.endswith("created") else "received"
        frame = data.frame.frame_type or "unknown"
        self.tables.http.put(time_s, direction, data.stream_id or 0, frame, data.size_bytes())


def _first_data(frames: list[QlogFrame]) -> tuple[int, int]:
    """Stream and offset of the first STREAM frame."""
    for frame in frames:
        if frame.frame_type == "stream" and frame.stream is not None:
            return frame.stream, frame.offset or 0
    return -1, -1


def _is_record(text: bytes) -> bool:
    """Whether a first line is the header of a file of lines, not a part of one document."""
    try:
        head = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return isinstance(head, dict) and not {"traces", "connections"} & head.keys()
