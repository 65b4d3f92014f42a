"""Chrome's net log (--log-net-log) as tables: a QUIC or HTTP/2 connection as the browser saw it.

Chrome writes a first line of constants, then one event per line. A reformatted file is read as one
JSON document. In both cases memory grows with the numbers kept, not with the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ijson
import msgspec
import xarray as xr

from qbkit.errors import TraceError
from qbkit.json_words import in_words
from qbkit.traces.logs.jsonfile import LATEST_MS, UNREADABLE, JsonFile, open_log
from qbkit.traces.logs.netlog_acks import Params
from qbkit.traces.logs.netlog_session import Session

PREFIXES = ("QUIC_SESSION_", "HTTP3_", "HTTP2_SESSION_")
OTHERS = ("QUIC_SESSION", "HTTP2_SESSION", "QUIC_CONGESTION_CONTROL_CONFIGURED")
MOST_SESSIONS = 4096
FIRST_LINE, EVENTS = b'{"constants":', b'"events":'


class Source(msgspec.Struct):
    """What an event is of, such as a connection."""

    id: int


class _Event(msgspec.Struct):
    type: int
    source: Source
    time: float
    params: msgspec.Raw = msgspec.Raw(b"{}")


class _Constants(msgspec.Struct):
    logEventTypes: dict[str, int]


class Head(msgspec.Struct):
    """The first line: the numbers of the types of events."""

    constants: _Constants


EVENT = msgspec.json.Decoder(_Event, strict=False)
PARAMS = msgspec.json.Decoder(Params, strict=False)


def read_netlog(
    path: str | Path, *, connection: str | int | None = None, progress: bool = False
) -> xr.Dataset:
    """The events of one connection of a net log (`qbkit.traces.logs.events.EventTables.dataset`).

    ``connection`` is the number of its source in the log, or (a part of) its host; by default the
    one with the most acknowledged and received packets among those whose requests were answered,
    with a warning that lists the others. Times count from its beginning.
    Those of sent packets are exact to 1 µs, all others are rounded down to 1 ms. The log names the
    controller, in attribute ``controller``, but not its window; RTTs and bytes in flight are
    computed from the events. The first packet of a datagram has the size of all its packets.

    Attributes: ``source`` "netlog", ``vantage_point`` "client", ``title`` (the host), ``warnings``
    (JSON list). A damaged log, or a truncated one, as Chrome leaves it when it is killed, gives
    what can be read, and a warning; so does what is left out, with its number. Raises TraceError
    for a file that is no net log, has no such connection, or has impossible content.
    """
    with open_log(path, progress) as log:
        reader = _NetlogReader(log)
        reader.read()
        session = reader.choose(connection)
    log.count_forgotten(session.tables.forgotten())
    for what, times in session.left_out.items():
        if times:
            log.count(what, times)
    ds = session.tables.dataset(
        source="netlog", vantage_point="client", title=session.host, warnings=log.warnings
    )
    return ds.assign_attrs(
        controller=session.controller, initial_window_packets=session.initial_window_packets
    )


class _NetlogReader:
    def __init__(self, log: JsonFile) -> None:
        self.log = log
        self.names: dict[int, str] = {}
        self.sessions: dict[int, Session] = {}
        self.ended = False
        self.single = False
        """Whether each line so far has one event."""

    def read(self) -> None:
        """Read all events of all connections."""
        first = self.log.first_line()
        if first.startswith(FIRST_LINE) and self._line_constants(first):
            self._read_lines()
        else:
            self._document_constants()
            for place, event in self.log.items("events.item"):
                self._take_converted(event, place)

    def choose(self, wanted: str | int | None) -> Session:
        """The wanted connection; the TraceError for an unknown one lists all."""
        found = sorted((s for s in self.sessions.values() if s.tables), key=_weight, reverse=True)
        listed = ", ".join(str(s) for s in found[:10]) + (", …" if len(found) > 10 else "")
        if not found:
            raise TraceError(f"{self.log.name} has no QUIC and no HTTP/2 connection")
        if wanted is not None:
            match = [s for s in found if str(s.source) == str(wanted)]
            match = match or [s for s in found if str(wanted) in s.host]
            if not match:
                raise TraceError(f"{self.log.name} has no connection {wanted}; it has {listed}")
            return match[0]
        if len(found) > 1:
            self.log.warnings.append(
                f"{self.log.name} has {len(found)} connections, {listed}; this is the first"
            )
        return found[0]

    def _line_constants(self, first: bytes) -> bool:
        try:
            head = msgspec.json.decode(first.rstrip(b", \r\n") + b"}", type=Head)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        self._begin(head.constants.logEventTypes)
        return True

    def _document_constants(self) -> None:
        try:
            types = next(ijson.items(self.log, "constants.logEventTypes"), None)
            self._begin(msgspec.convert(types, dict[str, int]))
        except TraceError:
            raise
        except (ijson.JSONError, ValueError, ArithmeticError, RecursionError) as error:
            raise TraceError(f"{self.log.name} is no net log: {in_words(error)}") from None
        self.log.rewind()

    def _begin(self, types: dict[str, int]) -> None:
        wanted = {n: t for n, t in types.items() if n.startswith(PREFIXES) or n in OTHERS}
        self.names = {number: name for name, number in wanted.items()}

    def _read_lines(self) -> None:
        tails = {b"%d}" % number for number in self.names}
        for place, line in self.log.lines():
            text = line.rstrip(b", \r\n")
            # The type is an event's last member; it suffices to skip most lines.
            before, _, tail = text.rpartition(b":")
            unwanted = tail not in tails and before.endswith(b'"type"') and tail[:-1].isdigit()
            if place == 0 or (unwanted and self.single):
                continue
            if text.startswith(EVENTS) and text.endswith(b"}"):
                text = text[text.index(b"[") + 1 :].lstrip()
            if text.startswith(b'{"'):
                self._take_line(text, place)
            self.ended |= text.startswith(b"]")
        if not self.ended:
            self.log.broken(f"before byte {self.log.file.tell()}")

    def _take_line(self, text: bytes, place: int) -> None:
        """Take an event, or all of a line that has several or also ends their list."""
        try:
            self._take_event(text, place)
            self.single = True
        except UNREADABLE as error:
            try:
                events, ends = _events_of(text)
            except (ValueError, RecursionError):
                return self.log.unreadable(place, error)
            if events == [text]:
                return self.log.unreadable(place, error)
            for event in events:
                self._take_line(event, place)
            self.single = False
            self.ended |= ends
        return None

    def _take_event(self, text: bytes, place: int) -> None:
        event = EVENT.decode(text)
        if event.type in self.names:
            self._take(event, PARAMS.decode(event.params), place)

    def _take_converted(self, converted: Any, place: int) -> None:
        """An event of a document."""
        try:
            event = msgspec.convert(
                {**converted, "params": msgspec.Raw(b"{}")}, _Event, strict=False
            )
            if event.type in self.names:
                params = msgspec.convert(converted.get("params") or {}, Params, strict=False)
                self._take(event, params, place)
        except TraceError:
            raise
        except (TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            raise self.log.hostile(place, in_words(error)) from None

    def _take(self, event: _Event, params: Params, place: int) -> None:
        session = self.sessions.get(event.source.id)
        if session is None:
            if len(self.sessions) >= MOST_SESSIONS:
                return self.log.count(
                    f"events of connections after the first {MOST_SESSIONS}, left out"
                )
            session = self.sessions[event.source.id] = Session(event.source.id)
        try:
            if not -LATEST_MS < event.time < LATEST_MS:
                raise ValueError(f"a time of {event.time} ms")
            session.take(self.names[event.type], event.time, params)
        except (ValueError, OverflowError) as error:
            raise self.log.hostile(place, str(error)) from None


def _weight(session: Session) -> tuple[bool, int, int, int]:
    """A connection that failed may have sent more packets than one that worked."""
    tables = session.tables
    return session.answered, tables.delivered(), len(tables), len(tables.http.time_s)


def _events_of(text: bytes) -> tuple[list[bytes], bool]:
    """The events of a line that has other than one, and whether the list of events ends in it.

    Raises ValueError for a line that does not consist of events.
    """
    line = text.decode()
    found, place, decoder = [], line.find("{"), json.JSONDecoder()
    while line.startswith("{", place):
        end = decoder.raw_decode(line, place)[1]
        found.append(line[place:end].encode())
        place = end + len(line[end:]) - len(line[end:].lstrip(", "))
    return found, line.startswith("]", place)
