"""Read a log of any kind: its first bytes say which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import xarray as xr

from qbkit.errors import TraceError
from qbkit.traces.logs.capture import read_capture
from qbkit.traces.logs.jsonfile import open_log
from qbkit.traces.logs.netlog import read_netlog
from qbkit.traces.logs.qlog import read_qlog
from qbkit.traces.run.pcap import is_capture

HEAD = 1 << 16
BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"
JSON_STARTS = (b"{", b"[", b"\x1e")
READERS: dict[str, Callable[..., xr.Dataset]] = {
    "qlog": read_qlog,
    "net log": read_netlog,
    "capture": read_capture,
}
CHOICES = {
    "trace": "qlog",
    "group": "qlog",
    "connection": "net log",
    "keylog": "capture",
    "sender": "capture",
    "port": "capture",
}
"""Word with which one log's reader chooses what to read → that kind of log."""


def read_log(
    path: str | Path, *, progress: bool = False, **choice: str | int | Path | None
) -> xr.Dataset:
    """The events of a qlog, a net log of Chrome or a capture.

    ``choice`` is what that reader takes: ``trace`` and ``group`` of a qlog, ``connection`` of a net
    log, ``keylog``, ``sender`` and ``port`` of a capture. All readers return the same tables
    (`qbkit.traces.logs.events.EventTables.dataset`). Raises TraceError as `read_qlog`,
    `read_netlog` or `read_capture` does, and for a choice that this file does not have.
    """
    kind = _kind(path)
    for name in choice:
        if CHOICES.get(name) != kind:
            words = ", ".join(word for word, of_kind in CHOICES.items() if of_kind == kind)
            raise TraceError(
                f"{Path(path).name} is a {kind}, where {name} chooses nothing; {words} can"
            )
    return READERS[kind](path, progress=progress, **choice)


def _kind(path: str | Path) -> str:
    """Which of `READERS` reads a file."""
    with open_log(path, progress=False) as log:
        head = log.file.read(HEAD)
    if not head:
        raise TraceError(f"{Path(path).name} is empty; give a capture or a log")
    if is_capture(head):
        return "capture"
    if head.lstrip(BEFORE_JSON)[:1] not in JSON_STARTS:
        raise TraceError(
            f"{Path(path).name} is neither a capture (pcap, pcapng) nor a log (qlog, net log); "
            "give one of these",
            refused=True,
        )
    return "net log" if b'"constants"' in head and b'"qlog_version"' not in head else "qlog"
