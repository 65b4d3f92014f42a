"""One flow of a run as event tables, comparable with those of its own log."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from qbkit.arguments import whole
from qbkit.errors import TraceError
from qbkit.traces.arrays import IntArray
from qbkit.traces.logs.events import FURTHER_METRICS, METRICS, EventTables
from qbkit.traces.run.attributes import (
    delay_changes_ms,
    require_run,
    require_whole,
    run_warnings,
    state_values,
)
from qbkit.traces.run.ends import arrived_in_time
from qbkit.traces.run.journey import NO_PACKETS, Fate
from qbkit.traces.run.schema import named

APPLICATION = 2


def flow_events(run: xr.Dataset, flow: str | int = 0) -> xr.Dataset:
    """The events of one flow of a run, by index or label, from its captures and telemetry.

    The dataset has the form of a log's (`qbkit.traces.logs.events.EventTables.dataset`), for any
    stack. Sent packets are those that arrive at the queue, numbered from 0; sizes are those of
    whole frames, with Ethernet's, IP's and the transport's headers. Lost packets are those
    that it drops (trigger "queue") or that are lost at random after it ("random"). All others are
    acknowledged, unless their fate is unknown, at the time when an immediate ACK would be back at
    the queue (departure + base RTT at that time). Received packets are those that come back.
    Metrics and states are the telemetry's samples (for kernel TCP its tcp_info). t = 0 is the start
    of the run. Raises TraceError if there is no such flow, or no packets, and for a run whose time
    or packets were cut.
    """
    index = _index(run, flow)
    require_whole(run)
    if "packet_flow" not in run or "base_rtt_ms" not in run:
        raise TraceError(NO_PACKETS)
    ds = EventTables().dataset(
        source="run",
        vantage_point="network",
        title=str(run.label.values[index]),
        warnings=run_warnings(run),
    )
    columns = {**_packets(run, index), **_received(run, index), **_samples(run, index)}
    fresh = {name: (dim, values, ds[name].attrs if name in ds else {}) for name, (dim, values)
             in columns.items()}  # fmt: skip
    stale = {dim for dim, _ in columns.values()}
    kept = ds.drop_vars([v for v in ds.variables if stale & set(ds[v].dims)])
    found = kept.assign(fresh)
    for name, (unit, meaning) in FURTHER_METRICS.items():
        if name in found:
            found[name].attrs = named(unit, meaning)
    return found[list(ds.variables) + [v for v in found.variables if v not in ds]]


def _index(run: xr.Dataset, flow: int | str) -> int:
    require_run(run)
    labels = [str(label) for label in run.label.values]
    if isinstance(flow, str):
        if flow not in labels:
            raise TraceError(f"the run has no flow {flow!r}; it has {', '.join(labels)}")
        return labels.index(flow)
    if not 0 <= (flow := whole(flow, "flow")) < len(labels):
        raise TraceError(f"the run has no flow {flow}; it has {len(labels)}, from 0 on")
    return flow


def _packets(run: xr.Dataset, index: int) -> dict[str, tuple[str, Any]]:
    """Tables of packets sent, acknowledged and lost."""
    mine = run.packet_flow.values == index
    time_s, departure_s = run.packet_time_s.values[mine], run.packet_departure_s.values[mine]
    size = run.packet_size_bytes.values[mine].astype(np.int64)
    number = np.arange(len(time_s))
    arrived = arrived_in_time(run)[mine]
    fate = _fates(run)[mine]
    lost = np.isnan(departure_s) & (fate != Fate.UNKNOWN)
    rtt_ms = float(run.base_rtt_ms.values[index]) + delay_changes_ms(run, departure_s)
    back_s = departure_s + rtt_ms / 1e3
    acked = np.argsort(np.where(arrived, back_s, np.inf), kind="stable")[: int(arrived.sum())]
    rows = {"sent": number, "acked": acked, "lost": np.flatnonzero(lost)}
    times = {"sent": time_s, "acked": back_s, "lost": time_s}
    found: dict[str, tuple[str, Any]] = {}
    for name, chosen in rows.items():
        found[f"{name}_time_s"] = (name, times[name][chosen])
        found[f"{name}_space"] = (name, np.full(len(chosen), APPLICATION, np.int8))
        found[f"{name}_number"] = (name, number[chosen])
        found[f"{name}_size_bytes"] = (name, size[chosen])
    unknown = np.full(len(number), -1)
    found["sent_offset_bytes"] = found["sent_stream"] = ("sent", unknown)
    at_random = fate[lost] == Fate.RANDOM_LOSS
    found["lost_trigger"] = ("lost", np.where(at_random, "random", "queue"))
    found["lost_spurious"] = ("lost", np.zeros(int(lost.sum()), bool))
    return found


def _fates(run: xr.Dataset) -> IntArray:
    """Fate of each packet; in runs of format 1, without fates, every loss is a queue drop."""
    if "packet_fate" in run:
        return run.packet_fate.values.astype(np.int64)
    return np.where(np.isnan(run.packet_departure_s.values), Fate.QUEUE_DROP, Fate.ARRIVED)


def _received(run: xr.Dataset, index: int) -> dict[str, tuple[str, Any]]:
    """The packets that came back to the bottleneck."""
    mine = run.ack_flow.values == index
    count = int(mine.sum())
    return {
        "received_time_s": ("received", run.ack_time_s.values[mine]),
        "received_space": ("received", np.full(count, APPLICATION, np.int8)),
        "received_number": ("received", np.arange(count)),
        "received_size_bytes": ("received", run.ack_size_bytes.values[mine].astype(np.int64)),
    }


def _samples(run: xr.Dataset, index: int) -> dict[str, tuple[str, Any]]:
    """Telemetry: metrics at each sample, states where they change."""
    known = "sample_flow" in run  # imported captures have no telemetry
    mine = run.sample_flow.values == index if known else np.zeros(0, bool)
    time_s = run.sample_time_s.values[mine] if known else np.zeros(0)
    found: dict[str, tuple[str, Any]] = {"metric_time_s": ("metric", time_s)}
    for name in (*METRICS, *FURTHER_METRICS):
        if f"sample_{name}" in run:
            found[name] = ("metric", run[f"sample_{name}"].values[mine])
        elif name in METRICS:
            found[name] = ("metric", np.full(len(time_s), np.nan))
    if "sample_state" in run:
        state = run.sample_state.values[mine]
        change = np.flatnonzero((np.diff(state, prepend=-1) != 0) & (state >= 0))
        found["state_time_s"] = ("state", time_s[change])
        names = {value: name for name, value in state_values(run).items()}
        found["state_name"] = ("state", np.array([names[i] for i in state[change]], dtype=str))
    return found
