"""Events of the drafts before 0.3, in the form of the later ones.

draft-marx-qlog-main-schema-00 and -01: a trace names the fields of its events once, and each event
is a list of their values; time, category and name are fields of their own. -00 writes names in
upper case. -02 has objects, but may keep category and name apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

TIMES = {"relative_time": "relative", "delta_time": "delta", "time": None}
"""Fields of a time → its format; None: that of the trace."""
NAMES = ("event", "event_type", "type")


def modern(event: Any, fields: Sequence[str]) -> dict[str, Any]:
    """An event as an object with ``time``, ``name`` and ``data``.

    ``fields`` are the trace's ``event_fields``. Raises ValueError for what is no event.
    """
    if isinstance(event, list):
        event = _named(event, fields)
    if not isinstance(event, dict):
        raise ValueError("an event is neither an object nor a list of the trace's event_fields")
    if "name" in event:
        return event
    found = {str(key).lower(): value for key, value in event.items()}
    time = next((name for name in TIMES if name in found), None)
    name = next((str(found[name]) for name in NAMES if name in found), None)
    if time is None or name is None:
        raise ValueError(f"an event has no {'time' if time is None else 'name'}")
    return {
        "time": found[time],
        "time_format": TIMES[time] or found.get("time_format"),
        "name": f"{found.get('category', '')}:{name}".lstrip(":").lower(),
        "data": _lower_frames(found.get("data")),
        "group_id": found.get("group_id"),
    }


def _named(values: list[Any], fields: Sequence[str]) -> dict[str, Any]:
    """The values by the names of their fields.

    The data come last even where an event has a trigger that the trace does not name, as of
    picoquic, or lacks one that it names, as of pcap2qlog.
    """
    if not fields:
        raise ValueError("an event is a list, but its trace has no event_fields to name its values")
    if len(values) == len(fields):
        return dict(zip(fields, values, strict=True))
    before = [name for name in fields if name.lower() != "data"]
    return {**dict(zip(before, values[:-1], strict=False)), "data": values[-1] if values else None}


def _lower_frames(data: Any) -> Any:
    """The data of an event, with frame types in lower case."""
    if not isinstance(data, dict):
        return {}
    frames = data.get("frames")
    for frame in [*(frames if isinstance(frames, list) else ()), data.get("frame")]:
        if isinstance(frame, dict) and isinstance(frame.get("frame_type"), str):
            frame["frame_type"] = frame["frame_type"].lower()
    return data
