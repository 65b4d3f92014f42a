"""Read a log of any kind: its first bytes say which."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from qbkit.traces.logs.capture import read_capture
from qbkit.traces.logs.jsonfile import open_log
from qbkit.traces.logs.netlog import read_netlog
from qbkit.traces.logs.qlog import read_qlog
from qbkit.traces.run import pcapng
from qbkit.traces.run.pcap import MAGIC

HEAD = 1 << 16


def read_log(path: str | Path, *, progress: bool = False) -> xr.Dataset:
    """The events of a qlog, a net log of Chrome or a capture, with that reader's defaults.

    All readers return the same tables (`qbkit.traces.logs.events.EventTables.dataset`). Raises
    TraceError as `read_qlog`, `read_netlog` or `read_capture` does.
    """
    with open_log(path, progress=False) as log:
        head = log.file.read(HEAD)
    if head[:4] in (pcapng.MAGIC, *MAGIC):
        return read_capture(path, progress=progress)
    if b'"constants"' in head and b'"qlog_version"' not in head:
        return read_netlog(path, progress=progress)
    return read_qlog(path, progress=progress)
