"""qlog files as tables: what a QUIC connection sent, received, had acknowledged and lost, and when.

Reads drafts 0.3 to the current one (draft-ietf-quic-qlog-main-schema, -quic-events) in all three
serialisations: JSON-SEQ (RFC 7464), newline-delimited JSON, and one JSON document. Records are read
one by one, so memory grows with the numbers that are kept (some 60 bytes a packet), not with the
file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

import ijson
import msgspec
import xarray as xr

from qbkit.errors import TraceError
from qbkit.traces.events import EventTables

LONGEST_RECORD = 16 << 20
EPOCH_MS = 1e11
"""Times beyond three years are wall-clock times: they count from the first event."""
SPACES = {"initial": "initial", "handshake": "handshake"}
"""Packet type → packet number space; all others are application data."""


class _Envelope(msgspec.Struct):
    time: float
    name: str
    data: msgspec.Raw = msgspec.Raw(b"{}")


class _Header(msgspec.Struct):
    packet_type: str = "1RTT"
    packet_number: int | None = None
    length: int | None = None


class _RawInfo(msgspec.Struct):
    length: int | None = None


class _Frame(msgspec.Struct):
    frame_type: str = ""
    acked_ranges: list[list[int]] = []


class _Packet(msgspec.Struct):
    header: _Header = msgspec.field(default_factory=_Header)
    raw: _RawInfo = msgspec.field(default_factory=_RawInfo)
    frames: list[_Frame] = []
    trigger: str = ""
    # aioquic tells a lost packet without a header.
    type: str | None = None
    packet_number: int | None = None


class _Metrics(msgspec.Struct):
    """Units as in the draft: ms, bytes, bit/s."""

    congestion_window: float | None = None
    cwnd: float | None = None
    ssthresh: float | None = None
    bytes_in_flight: float | None = None
    smoothed_rtt: float | None = None
    latest_rtt: float | None = None
    min_rtt: float | None = None
    pacing_rate: float | None = None


class _State(msgspec.Struct):
    new: str = ""


class _Preamble(msgspec.Struct):
    qlog_version: str = ""
    file_schema: str = ""
    qlog_format: str = ""
    serialization_format: str = ""
    title: str = ""
    trace: dict[str, Any] = {}


KINDS: dict[str, type[msgspec.Struct]] = {
    "packet_sent": _Packet,
    "packet_received": _Packet,
    "packet_lost": _Packet,
    "metrics_updated": _Metrics,
    "recovery_metrics_updated": _Metrics,
    "congestion_state_updated": _State,
}
DECODERS = {kind: msgspec.json.Decoder(kind) for kind in set(KINDS.values())}
ENVELOPE = msgspec.json.Decoder(_Envelope)


def read_qlog(path: str | Path, *, progress: bool = False) -> xr.Dataset:
    """The events of one connection's qlog file (`qbkit.traces.events.EventTables.dataset`).

    Attributes: ``vantage_point``, ``title``, ``qlog_version``, ``warnings`` (JSON list). A file
    that is cut off or damaged gives what can be read, and a warning that says where it broke.
    Raises TraceError for what is no qlog, and for what cannot be meant: values of the wrong
    type, packet numbers beyond 2^62, records that nest too deep or are longer than 16 MiB.
    """
    from tqdm.auto import tqdm

    source = Path(path)
    try:
        size = source.stat().st_size
        with (
            source.open("rb") as file,
            tqdm(total=size, unit="B", unit_scale=True, disable=not progress) as bar,
        ):
            return _Reader(file, source.name, bar).read()
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror}") from None


class _Reader:
    def __init__(self, file: BinaryIO, name: str, bar: Any) -> None:
        self.file, self.name, self.bar = file, name, bar
        self.tables = EventTables()
        self.warnings: list[str] = []
        self.preamble = _Preamble()
        self.zero_ms: float | None = None
        self.last_ms = 0.0
        self.delta = False

    def read(self) -> xr.Dataset:
        """All of it, whichever serialisation it has."""
        first = self.file.readline(LONGEST_RECORD)
        self.file.seek(0)
        text = first.strip(b"\x1e \r\n\t")
        whole = not first.startswith(b"\x1e") and not _is_record(text)
        if whole:
            self._read_document()
        else:
            self._read_records()
        if not self.tables and not (self.preamble.qlog_version or self.preamble.file_schema):
            raise TraceError(f"{self.name} is no qlog file: neither its head nor events are there")
        point = self.preamble.trace.get("vantage_point", {})
        ds = self.tables.dataset()
        ds.attrs = {
            "vantage_point": str(point.get("type", "")) if isinstance(point, dict) else "",
            "title": self.preamble.title,
            "qlog_version": self.preamble.qlog_version or self.preamble.file_schema,
            "warnings": msgspec.json.encode(self.warnings).decode(),
        }
        return ds

    def _read_records(self) -> None:
        """JSON-SEQ, or JSON by lines."""
        place = 0
        while line := self.file.readline(LONGEST_RECORD + 1):
            if len(line) > LONGEST_RECORD:
                raise TraceError(f"{self.name} has a record longer than 16 MiB at byte {place}")
            record = line.strip(b"\x1e \r\n\t")
            if record:
                self._take_record(record, place)
            place += len(line)
            self.bar.update(len(line))

    def _take_record(self, record: bytes, place: int) -> None:
        try:
            if place == 0 and self._is_head(record):
                return
            event = ENVELOPE.decode(record)
            kind = KINDS.get(event.name.rpartition(":")[2])
            if kind is not None:
                self._take(event, DECODERS[kind].decode(event.data), place)
        except msgspec.ValidationError as error:
            raise self._hostile(place, str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._broken(f"at byte {place}")
        except RecursionError:
            raise self._hostile(place, "nested too deep") from None

    def _read_document(self) -> None:
        """One JSON document, its events one by one."""
        try:
            for event in ijson.items(self.file, "traces.item.events.item"):
                place = self.file.tell()
                self.bar.update(place - self.bar.n)
                self._take_converted(event, place)
        except ijson.IncompleteJSONError:
            self._broken(f"before byte {self.file.tell()}")
        except (ijson.JSONError, UnicodeDecodeError) as error:
            raise TraceError(f"{self.name} is no qlog file: {str(error).splitlines()[0]}") from None
        except RecursionError:
            raise self._hostile(self.file.tell(), "nested too deep") from None
        self.file.seek(0)
        self._begin(_document_head(self.file))

    def _take_converted(self, event: Any, place: int) -> None:
        try:
            name = event["name"].rpartition(":")[2]
            kind = KINDS.get(name)
            if kind is not None:
                envelope = _Envelope(float(event["time"]), event["name"])
                self._take(
                    envelope, msgspec.convert(event.get("data", {}), kind, strict=False), place
                )
        except (msgspec.ValidationError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._hostile(place, f"{type(error).__name__} {error}") from None

    def _is_head(self, record: bytes) -> bool:
        """Take the head of the file, if the record is one."""
        preamble = msgspec.json.decode(record, type=_Preamble)
        self._begin(preamble)
        return bool(preamble.qlog_version or preamble.file_schema or preamble.trace)

    def _begin(self, preamble: _Preamble) -> None:
        self.preamble = preamble
        common = preamble.trace.get("common_fields")
        self.delta = isinstance(common, dict) and common.get("time_format") == "delta"

    def _take(self, event: _Envelope, data: Any, place: int) -> None:
        """One event into its table."""
        time_s = self._time_s(event.time)
        kind = event.name.rpartition(":")[2]
        try:
            if isinstance(data, _Metrics):
                self._metrics(time_s, data)
            elif isinstance(data, _State):
                self.tables.state(time_s, data.new)
            else:
                self._packet(kind, time_s, data)
        except ValueError as error:
            raise self._hostile(place, str(error)) from None

    def _metrics(self, time_s: float, m: _Metrics) -> None:
        window = m.congestion_window if m.congestion_window is not None else m.cwnd
        rate_mbps = None if m.pacing_rate is None else m.pacing_rate / 1e6
        self.tables.metrics(
            time_s,
            cwnd_bytes=window,
            ssthresh_bytes=m.ssthresh,
            bytes_in_flight=m.bytes_in_flight,
            srtt_ms=m.smoothed_rtt,
            latest_rtt_ms=m.latest_rtt,
            min_rtt_ms=m.min_rtt,
            pacing_rate_mbps=rate_mbps,
        )

    def _packet(self, kind: str, time_s: float, data: _Packet) -> None:
        number = data.header.packet_number
        number = data.packet_number if number is None else number
        if number is None:
            return  # a Retry or a version negotiation has none
        space = SPACES.get((data.type or data.header.packet_type).lower(), "application")
        size = data.raw.length if data.raw.length is not None else data.header.length
        if kind == "packet_sent":
            self.tables.sent(time_s, space, number, size)
        elif kind == "packet_lost":
            self.tables.lost(time_s, space, number, data.trigger)
        else:
            self.tables.received(time_s, space, number, size)
            for frame in data.frames:
                for low, *high in frame.acked_ranges:
                    self.tables.acked(time_s, space, low, high[-1] if high else low)

    def _time_s(self, time_ms: float) -> float:
        """Seconds since the reference, or since the first event where that is a wall clock."""
        if self.delta:
            self.last_ms += time_ms
            return self.last_ms / 1e3
        if self.zero_ms is None:
            self.zero_ms = time_ms if abs(time_ms) > EPOCH_MS else 0.0
        return (time_ms - self.zero_ms) / 1e3

    def _broken(self, where: str) -> None:
        if not self.warnings:
            self.warnings.append(f"{self.name} is damaged or cut off {where}; the rest was read")

    def _hostile(self, place: int, why: str) -> TraceError:
        return TraceError(f"{self.name} has at byte {place} what no qlog holds: {why[:200]}")


def _is_record(text: bytes) -> bool:
    """Whether a first line is the head of a file by lines, not a part of one document."""
    try:
        head = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return isinstance(head, dict) and "traces" not in head


def _document_head(file: BinaryIO) -> _Preamble:
    """Version, title and vantage point of a document, as far as they stand in it."""
    found: dict[str, Any] = {}
    wanted = {
        "qlog_version": "qlog_version",
        "title": "title",
        "traces.item.vantage_point.type": "vantage_point",
        "traces.item.common_fields.time_format": "time_format",
    }
    limit = os.fstat(file.fileno()).st_size
    try:
        for prefix, _, value in ijson.parse(file):
            if prefix in wanted:
                found[wanted[prefix]] = str(value)
            if len(found) == len(wanted) or file.tell() > min(limit, 1 << 20):
                break
    except (ijson.JSONError, UnicodeDecodeError):
        pass  # what is broken was told of already
    trace = {"vantage_point": {"type": found.get("vantage_point", "")}}
    return _Preamble(
        qlog_version=found.get("qlog_version", ""), title=found.get("title", ""), trace=trace
    )
