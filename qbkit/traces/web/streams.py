"""The order in which the data of a page's streams came, from the browser's net log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from qbkit.errors import TraceError
from qbkit.traces.logs.netlog import Head, Source

DEFAULT_URGENCY = 3
"""RFC 9218, section 4.1."""
URGENCY = re.compile(r"\bu=([0-7])")
HEADERS = ("HTTP3_HEADERS_SENT", "HTTP2_SESSION_SEND_HEADERS")
DATA = ("QUIC_SESSION_STREAM_FRAME_RECEIVED", "HTTP2_SESSION_RECV_DATA")


class _Params(msgspec.Struct):
    stream_id: int = -1
    length: int = 0
    """Of a STREAM frame."""
    offset: int = 0
    size: int = 0
    """Of a DATA frame."""
    headers: list[str] = []


class _Event(msgspec.Struct):
    type: int
    source: Source
    time: float
    params: _Params = msgspec.field(default_factory=_Params)


EVENT = msgspec.json.Decoder(_Event, strict=False)


@dataclass(frozen=True)
class Chunk:
    """Data of one stream that the browser received at once."""

    time_s: float
    """On the browser's monotonic clock, in whole milliseconds."""
    connection: int
    """Number of the connection in the log."""
    stream: int
    size_bytes: int
    new_bytes: int
    """Those beyond all earlier data of the stream: what fills a gap was sent before, and lost."""


@dataclass(frozen=True)
class Streams:
    """What a net log says of the streams of a page."""

    chunks: list[Chunk] = field(default_factory=list)
    urls: dict[tuple[int, int], str] = field(default_factory=dict)
    """Connection and stream → the URL requested on it."""
    urgency: dict[tuple[int, int], int] = field(default_factory=dict)
    """Connection and stream → urgency of its request, 0 to 7 (RFC 9218); 0 is the most urgent."""
    sent_s: dict[tuple[int, int], float] = field(default_factory=dict)
    """Connection and stream → when its request was sent, on the clock of the chunks."""
    ends: dict[tuple[int, int], int] = field(default_factory=dict)
    """Connection and stream → how far its data reach."""


def read_streams(path: Path) -> Streams:
    """Data by stream in the order of their arrival, and the requests of the streams.

    A chunk is a STREAM frame of QUIC (with the few bytes of HTTP/3's own headers), or a DATA frame
    of HTTP/2, which the log reports when its header comes. Raises TraceError for a file that is no
    net log.
    """
    found = Streams()
    with path.open("rb") as file:
        names = _names(file.readline(), path)
        for line in file:
            for event in _wanted(line, names):
                _take(found, names[event.type], event)
    return found


def _names(first: bytes, path: Path) -> dict[int, str]:
    try:
        types = msgspec.json.decode(first.rstrip(b", \r\n") + b"}", type=Head)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise TraceError(f"{path.name} is no net log of Chromium") from None
    numbers = types.constants.logEventTypes
    return {numbers[name]: name for name in (*HEADERS, *DATA) if name in numbers}


def _wanted(line: bytes, names: dict[int, str]) -> Iterator[_Event]:
    """The event of a line, if its type (the last member) is one of the wanted."""
    text = line.rstrip(b", \r\n").removesuffix(b"]}").rstrip(b"]")
    if not text.startswith(b'{"'):
        return
    number = text.rpartition(b":")[2].rstrip(b"}")
    if number.isdigit() and int(number) in names:
        yield EVENT.decode(text)


def _take(found: Streams, name: str, event: _Event) -> None:
    params, key = event.params, (event.source.id, event.params.stream_id)
    if name in DATA:
        if _is_request(name, params.stream_id):
            _take_data(found, event.time / 1e3, key, params)
        return
    headers = dict(header.split(": ", 1) for header in params.headers if ": " in header)
    if ":path" in headers:
        found.urls[key] = f"{headers[':scheme']}://{headers[':authority']}{headers[':path']}"
        found.sent_s[key] = event.time / 1e3
        urgency = URGENCY.search(headers.get("priority", ""))
        found.urgency[key] = int(urgency[1]) if urgency else DEFAULT_URGENCY


def _take_data(found: Streams, time_s: float, key: tuple[int, int], params: _Params) -> None:
    size, reached = params.length or params.size, found.ends.get(key, 0)
    end = params.offset + params.length if params.length else reached + params.size
    if size:
        found.chunks.append(Chunk(time_s, *key, size, min(size, max(0, end - reached))))
        found.ends[key] = max(reached, end)


def _is_request(name: str, stream: int) -> bool:
    """Whether a stream carries a response: in QUIC, client-initiated bidirectional ones do."""
    return stream % 4 == 0 if name.startswith("QUIC") else stream > 0
