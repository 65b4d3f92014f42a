"""How a connection ended, by what a program that does not know qbkit wrote about it.

Such a program leaves its last line on stderr, and perhaps a qlog or Chromium's net log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qbkit.errors import TraceError
from qbkit.traces.logs.jsonfile import SEPARATOR, JsonFile, open_log
from qbkit.traces.logs.qlog_drafts import modern
from qbkit.traces.logs.qlog_head import EVENT, document_heads

Report = dict[str, Any]
"""As a driver writes it (docs/howto/own-stack.md), without its time."""
PEER = {"sender": "receiver", "receiver": "sender"}
CLOSE = b"connection_close"
"""In the name of the frame and of the event."""
TIMEOUTS = ("idle_timeout", "timeout")
ORDINARY_ENDS = ("", "QUIC_NO_ERROR", "QUIC_PEER_GOING_AWAY", "QUIC_CONNECTION_CANCELLED")
"""In a net log: ends without an error. A browser that is ended cancels its connections."""
GO = re.compile(
    r"(?:Application error (?P<code>0x[0-9a-f]+)|(?P<name>[A-Z][A-Z0-9_]{3,})(?: 0x[0-9a-f]+)?)"
    r" \((?P<end>remote|local)\)(?: \(frame type: \S+\))?(?:: (?P<reason>.+))?"
)
"""An error of quic-go."""
WORDS = (
    ("reset", r"stateless reset|reset by peer|ECONNRESET|ERR_CONNECTION_RESET|NET_RESET"),
    ("reset", r"[Cc]onnection refused|ERR_CONNECTION_REFUSED|CONNECTION_REFUSED"),
    ("timeout", r"[Ii]dle[ _-]?(timeout|close)|IDLE_(TIMEOUT|CLOSE)|no recent network activity"),
    ("timeout", r"connection timed out|ERR_(CONNECTION_)?TIMED_OUT|NET_TIMEOUT"),
    ("timeout", r"handshake did not complete|cannot connect to .* within"),
    ("peer", r"unexpected EOF|GOAWAY|[Ee]mpty reply|ERR_EMPTY_RESPONSE|ERR_CONNECTION_CLOSED"),
    ("peer", r"was not closed cleanly|transfer closed with|closed by (the )?(peer|server|remote)"),
    ("peer", r"ERR_DRAINING|NET_(INTERRUPT|PARTIAL_TRANSFER)|QUIC connection has been shut down"),
    ("peer", r"\bH3_[A-Z_]+"),
    ("unknown", r"broke after \d+ bytes|ERR_(QUIC|HTTP2|SPDY)_\w+|NET_HTTP[23]_\w+"),
    ("unknown", r"ERR_(CONNECTION_ABORTED|CONTENT_LENGTH_MISMATCH|INCOMPLETE_CHUNKED)"),
)
"""Who ended a connection ("peer": the other end) → how libraries and browsers say so."""


def end_by_words(words: str, role: str) -> Report | None:
    """What the last words of a program of this role say; None where they name no such end.

    >>> end_by_words("cannot send: INTERNAL_ERROR (remote): too many gaps", "sender")["by"]
    'receiver'
    """
    if found := GO.search(words):
        by = PEER[role] if found["end"] == "remote" else role
        code = {"code": int(found["code"], 16), "kind": "application"} if found["code"] else {}
        named = {"name": found["name"]} if found["name"] else {}
        return {"by": by, **code, **named, "reason": found["reason"] or ""}
    by = next((by for by, pattern in WORDS if re.search(pattern, words)), "")
    return {"by": PEER[role] if by == "peer" else by, "reason": words} if by else None


def end_by_logs(folder: Path, starts: str) -> Report | None:
    """What the qlogs or the net log in a flow's folder say; None where they name no end.

    ``starts`` is the role of the end that connects, which is the client. The first end that is no
    ordinary one (without an error) counts.
    """
    for path in sorted(folder.iterdir()):
        try:
            if path.suffix in (".qlog", ".sqlog"):
                found = _qlog_end(path, starts)
            elif path.name == "netlog.json":
                found = _netlog_end(path, starts)
            else:
                continue
        except (TraceError, ValueError, KeyError, TypeError, AttributeError):
            continue  # whatever a program left there; the end is then known from elsewhere
        if found:
            return found
    return None


def _qlog_end(path: Path, starts: str) -> Report | None:
    with open_log(path, False) as log:
        vantage, events = _closing_events(log)
        own = PEER[starts] if vantage == "server" else starts
        reports = (_of_event(modern(event, ()), own) for event in events)
        return next((report for report in reports if report and _is_error(report)), None)


def _closing_events(log: JsonFile) -> tuple[str, Iterator[Any]]:
    """The vantage point of a qlog, and its events about the end of the connection."""
    first = log.first_line().strip().lstrip(SEPARATOR)
    try:
        head = json.loads(first or b"{}")
        records = "traces" not in head
    except ValueError:
        records = False
    if not records:
        _, traces = document_heads(log)
        found = (event for _, event in log.items(EVENT))
        closing = (event for event in found if CLOSE.decode() in json.dumps(event, default=str))
        return (traces[0].vantage_point if traces else ""), closing
    vantage = head.get("trace", {}).get("vantage_point", {}).get("type", "")
    texts = (text.strip().lstrip(SEPARATOR) for _, text in log.records())
    lines = (line for text in texts for line in text.splitlines() if CLOSE in line)
    return vantage, (json.loads(line) for line in lines)


def _of_event(event: dict[str, Any], own: str) -> Report | None:
    """The report of an event ``connection_closed``, or of a packet with such a frame."""
    name, data = str(event["name"]), event.get("data") or {}
    if name.endswith("connection_closed"):
        if str(data.get("trigger", data.get("reason", ""))).lower() in TIMEOUTS:
            return {"by": "timeout"}
        owner = str(data.get("owner", data.get("initiator")))
        by = {"local": own, "remote": PEER[own]}.get(owner, "unknown")
        application = data.get("application_code", data.get("application_error"))
        code = data.get("connection_code", data.get("connection_error", data.get("code")))
        kind, code = ("transport", code) if application is None else ("application", application)
        return {"by": by, **_coded(kind, code), "reason": str(data.get("reason", ""))}
    if not name.endswith(("packet_sent", "packet_received")):
        return None
    frame = next(f for f in data["frames"] if f.get("frame_type") == CLOSE.decode())
    by = own if name.endswith("sent") else PEER[own]
    kind = "application" if frame.get("error_space") == "application" else "transport"
    code = frame.get("raw_error_code", frame.get("error_code"))
    return {"by": by, **_coded(kind, code), "reason": str(frame.get("reason", ""))}


def _coded(kind: str, code: object) -> Report:
    """A code as a number, or by its name."""
    if isinstance(code, int):
        return {"kind": kind, "code": code}
    return {"kind": kind, "name": str(code).upper()} if code else {}


def _is_error(report: Report) -> bool:
    """Whether a connection ended otherwise than by one that is done."""
    named = str(report.get("name", "")).endswith("NO_ERROR")
    coded = report.get("code") or (report.get("name") and not named)
    return report["by"] == "timeout" or bool(coded)


def _netlog_end(path: Path, starts: str) -> Report | None:
    """Of Chromium's net log, which has an event a line; its browser is the end that connects."""
    with open_log(path, False) as log:
        names: dict[int, str] = {}
        for _, line in log.lines():
            if not names and b'"constants"' in line:
                constants = json.loads(line.strip().rstrip(b",") + b"}")["constants"]
                names = {number: name for name, number in constants["quicError"].items()}
            elif b'"quic_error"' in line and b'"details"' in line:
                said = json.loads(line.strip().rstrip(b",").removesuffix(b"]}"))["params"]
                name = names.get(said["quic_error"], "")
                if name in ORDINARY_ENDS:
                    continue
                by = PEER[starts] if said.get("from_peer") else starts
                by = "timeout" if name.endswith("TIMEOUT") else by
                known = {"code": said["quic_error"], "name": name}
                return {"by": by, **known, "reason": said["details"]}
    return None
