"""The headers of a qlog: that of the file, and that of each of its traces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ijson
import msgspec

from qbkit.errors import TraceError
from qbkit.traces.logs.jsonfile import JsonFile

FILE_SCHEMAS = ("urn:ietf:params:qlog:file:contained", "urn:ietf:params:qlog:file:sequential")
"""Drafts append their number."""
TRACE = "traces.item"
EVENTS = f"{TRACE}.events"
EVENT = f"{EVENTS}.item"
ENDS = frozenset({"end_map", "end_array", "string", "number", "boolean", "null"})
"""Tokens that end an event."""
LONGEST_TEXT = 200


class FileHead(msgspec.Struct):
    """The header of a file, in all drafts."""

    qlog_version: str = ""
    file_schema: str = ""
    title: str = ""
    trace: dict[str, Any] = {}
    """Only in a file of records."""

    @property
    def version(self) -> str:
        """The draft it follows, if given; empty for a file that is no qlog."""
        return (self.qlog_version or self.file_schema)[:LONGEST_TEXT]


@dataclass
class TraceHead:
    """A trace without its events."""

    members: dict[str, Any] = field(default_factory=dict)
    events: int = 0
    """How many events it holds; 0 in a file of records, which are all of one trace."""

    def text(self, part: str, member: str = "") -> str:
        """A text in the header, or in a part of it; empty if missing."""
        found = self.members.get(part, "")
        if member:
            found = found.get(member, "") if isinstance(found, dict) else ""
        return str(found)[:LONGEST_TEXT]

    @property
    def common_fields(self) -> dict[str, Any]:
        """The fields that all events share."""
        found = self.members.get("common_fields")
        return found if isinstance(found, dict) else {}

    @property
    def configuration(self) -> dict[str, Any]:
        """The unit and the offset of times, in drafts before 0.3."""
        found = self.members.get("configuration")
        return found if isinstance(found, dict) else {}

    @property
    def event_fields(self) -> list[str]:
        """The names of an event's values, in drafts before 0.3, where it is a list."""
        found = self.members.get("event_fields")
        return [str(name) for name in found] if isinstance(found, list) else []

    @property
    def vantage_point(self) -> str:
        """Where the log was written: "client", "server" or "network"."""
        return self.text("vantage_point", "type").lower()

    @property
    def names(self) -> list[str]:
        """What a user may call it: its vantage point, the name of that, and its title."""
        found = (self.vantage_point, self.text("vantage_point", "name"), self.text("title"))
        return [name for name in found if name]

    @property
    def event_schemas(self) -> list[str]:
        """URIs of the schemas of its events."""
        found = self.members.get("event_schemas")
        return [str(uri)[:LONGEST_TEXT] for uri in found[:20]] if isinstance(found, list) else []

    def __str__(self) -> str:
        return ", ".join((*self.names, f"{self.events} events"))


def document_heads(log: JsonFile) -> tuple[FileHead, list[TraceHead]]:
    """The headers of a document and of its traces. They can be anywhere, so it reads to the end.

    From a damaged document it returns what comes before; reading the events reports the damage.
    """
    members: dict[str, Any] = {}
    traces: list[TraceHead] = []
    builder = ijson.ObjectBuilder()
    try:
        for prefix, token, value in ijson.parse(log):
            if prefix.startswith(EVENTS):
                if prefix == EVENT and token in ENDS:
                    traces[-1].events += 1
                    log.next_record()
            elif prefix.startswith(TRACE):
                if prefix == TRACE and token == "start_map":
                    builder = ijson.ObjectBuilder()
                    traces.append(TraceHead())
                if traces and (prefix, token, value) != (TRACE, "map_key", "events"):
                    builder.event(token, value)
                    if isinstance(builder.value, dict):  # a damaged trace may be a text
                        traces[-1].members = builder.value
            elif isinstance(value, str) and prefix in FileHead.__struct_fields__:
                members[prefix] = value
    except (ijson.JSONError, ValueError, ArithmeticError, AttributeError, LookupError):
        pass  # the last two: a trace that is no object
    log.rewind()
    return FileHead(**members), traces


def chosen_trace(log: JsonFile, traces: list[TraceHead], wanted: int | str | None) -> int:
    """Index of the trace to read; raises TraceError if it is missing or the choice is open.

    A warning gives the reason for each trace that could not be put into the file.
    """
    whole = [i for i, head in enumerate(traces) if not head.text("error_description")]
    for i, head in enumerate(traces):
        if i not in whole:
            log.warn(f"lacks trace {i}: {head.text('error_description')}")
    listed = "; ".join(f"{i}: {traces[i]}" for i in whole[:10]) or "none"
    match = [i for i in whole if wanted is None or wanted == i or wanted in traces[i].names]
    if wanted is not None and not match:
        raise TraceError(f"{log.name} has no trace {wanted}; it has {listed}")
    if len(match) > 1:
        points = [traces[i].vantage_point for i in match]
        once = [point for point in points if point and points.count(point) == 1]
        by = f", or its vantage point, as trace={once[0]!r}" if once else ""
        raise TraceError(
            f"{log.name} holds {len(match)} traces{'' if wanted is None else f' of {wanted}'}; "
            f"choose one by its number, as trace={match[0]}{by} ({listed})"
        )
    return (match or [0])[0]


def check_version(log: JsonFile, head: FileHead) -> None:
    """Warn of a file schema that is in no draft; raises TraceError for a version before them."""
    if head.qlog_version == "0.1":
        raise TraceError(
            f"{log.name} is qlog 0.1, which no draft describes; qbkit reads draft-00 (2019) to the "
            "current one, so log again with a later release of the stack"
        )
    if head.file_schema and not head.file_schema.startswith(FILE_SCHEMAS):
        log.warn(f"has the unknown file schema {head.file_schema[:LONGEST_TEXT]!r}, read as qlog's")
