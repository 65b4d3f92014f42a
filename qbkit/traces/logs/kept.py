"""The log that a stack kept of a flow of a run, on the clock of the run."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from qbkit.traces.logs.qlog import read_qlog
from qbkit.traces.logs.run_flow import flow_events

SUFFIXES = {".qlog", ".sqlog"}
OWN = ("metric", "state")
"""Tables that a stack's own log knows better than the samples of a run."""


def own_events(run: xr.Dataset, folder: Path, index: int = 0) -> xr.Dataset:
    """The events of a flow (`flow_events`), with the windows and states of its sender's qlog.

    ``folder`` is what was kept with the run. A table that the log does not have stays that of the
    telemetry; the attribute ``own`` names those of the log. The log's first packet is the first
    that reaches the queue, half of the base RTT later, where the sender's access link holds it; so
    its times are right to about 0.2 ms. Raises TraceError for a log that cannot be read.
    """
    events = flow_events(run, index)
    log = _sender_log(folder / "flows" / str(int(run["flow"].values[index])))
    if log is None or not log.sizes["sent"] or not events.sizes["sent"]:
        return events.assign_attrs(own="")
    first_s = float(events["sent_time_s"].min()) - float(run["base_rtt_ms"].values[index]) / 2e3
    later_s = first_s - float(log["sent_time_s"].min())
    own = [table for table in OWN if _says(log, table)]
    for table in own:
        names = [str(name) for name in log.variables if log[name].dims == (table,)]
        events = events.drop_dims(table).assign({name: log[name] for name in names})
        events[f"{table}_time_s"] = events[f"{table}_time_s"] + later_s
    return events.assign_attrs(own=" ".join(own))


def _says(log: xr.Dataset, table: str) -> bool:
    """Whether a log has a table, and names of states in place of numbers (as picoquic's has)."""
    named = table != "state" or not any(name.isdigit() for name in log["state_name"].values)
    return bool(log.sizes[table]) and named


def _sender_log(folder: Path) -> xr.Dataset | None:
    """The log of the side that sent more bytes, or more packets where sizes are missing."""
    files = sorted(file for file in folder.glob("*") if file.suffix in SUFFIXES)
    logs = [read_qlog(file) for file in files]
    return max(
        logs, key=lambda log: (log["sent_size_bytes"].sum(), log.sizes["sent"]), default=None
    )
