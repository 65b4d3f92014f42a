"""Connections that end before their flow does (docs/howto/own-stack.md)."""

from __future__ import annotations

import json
import time
from pathlib import Path

from aioquic.quic.connection import QuicConnection, QuicConnectionState

from .failure import FlowFailed

LOST_CONNECTION = 3
"""Exit status of a driver whose connection ended before its flow."""
IDLE = "Idle timeout"
"""The reason that aioquic gives for it."""
OTHER = {"sender": "receiver", "receiver": "sender"}
CLOSED_BY_PEER = (QuicConnectionState.DRAINING, QuicConnectionState.TERMINATED)


class ConnectionLost(FlowFailed):
    """The connection ended; ``report`` is who ended it, and why."""

    def __init__(self, report: dict[str, object]) -> None:
        super().__init__(f"the connection ended: {report}")
        self.report = report


def end_of(connection: QuicConnection, role: str) -> dict[str, object] | None:
    """How the connection ended, as this end sees it; None while it lives.

    aioquic's event comes when the connection is forgotten, three timeouts after it was closed.
    """
    event = connection._close_event
    if event is None:
        return None
    if event.reason_phrase == IDLE:
        return {"by": "timeout"}
    by = OTHER[role] if connection._state in CLOSED_BY_PEER else role
    kind = "application" if event.frame_type is None else "transport"
    code = int(event.error_code)
    return {"by": by, "kind": kind, "code": code, "reason": event.reason_phrase}


def write_end(report: dict[str, object], out: str, role: str) -> None:
    """Write the report of one end of the flow. A receiver whose sender is done has none."""
    if role == "receiver" and report.get("by") == "sender" and not report.get("code"):
        return
    report = {"time_ns": time.time_ns(), **report}
    (Path(out) / f"{role}-end.json").write_text(json.dumps(report))
