"""Build the dataset of a run from its raw folder, with the checks that every run must pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from qbkit.errors import RunFailed, StoreError
from qbkit.spec import FRAME_BYTES, Experiment
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run import balance, schema
from qbkit.traces.run.early_end import EarlyEnd, early_end_sentences, early_ends, end_variables
from qbkit.traces.run.ends import arrived_bytes, end_warnings, ends_of_flows, stop_times_s
from qbkit.traces.run.forged import forged_variables, forged_warnings
from qbkit.traces.run.frames import address_number
from qbkit.traces.run.journey import Captures, follow
from qbkit.traces.run.objects import object_variables
from qbkit.traces.run.packets import FlowPackets, of_run
from qbkit.traces.run.pcap import read_packets
from qbkit.traces.run.series import Bins
from qbkit.traces.run.telemetry import read_sender, read_table

FORMAT_VERSION = 2
LIMITED_PERCENT = 1.0
"""A flow gets a warning if a window or buffer limits it for a larger part of its time."""
LIMITS = {"rwnd_limited_s": "receive window", "sndbuf_limited_s": "send buffer"}
"""Times in a driver's limits.json → what limited the flow."""


@dataclass(frozen=True)
class _Raw:
    """What an engine left in a run's folder."""

    folder: Path
    experiment: Experiment
    result: dict[str, Any]
    packets: FlowPackets
    counts: dict[str, schema.Variable]
    senders: list[pd.DataFrame]
    receivers: list[pd.DataFrame]
    ends: list[EarlyEnd | None]

    @property
    def t0_ns(self) -> int:
        """The machine's time at t = 0."""
        return int(self.result["t0_ns"])

    @property
    def flows(self) -> int:
        """Number of flows."""
        return len(self.experiment.flows)


def build(folder: Path, experiment: Experiment, attrs: dict[str, Any]) -> xr.Dataset:
    """The dataset of a run, from the folder that an engine wrote.

    ``attrs`` describes the run (hash, engine, versions, cost); the dataset adds more. Packets that
    reach the queue outside [0, ``duration_s``) are left out; only the balance counts them. Raises
    RunFailed when a flow sent nothing, or a capture is incomplete (the host's disk was full, or
    failed).
    """
    raw = _read(folder, experiment)
    bins = Bins(schema.BIN_S, experiment.duration_s)
    dataset = schema.assemble(_variables(raw, bins), _names(raw), bins)
    largest = largest_frame(raw.packets)
    warnings = [
        *early_end_sentences(dataset),
        *_warnings(raw, largest),
        *forged_warnings(folder, experiment.attacks),
        *end_warnings(dataset, experiment),
        *balance.violations(dataset),
    ]
    link = experiment.bottleneck
    return dataset.assign_attrs(
        **attrs,
        format_version=FORMAT_VERSION,
        spec=experiment.to_json(),
        bin_s=schema.BIN_S,
        duration_s=experiment.duration_s,
        rate_mbps=link.rate_mbps,
        rtt_ms=link.rtt_ms,
        queue_bytes=link.queue_bytes,
        qdisc=link.qdisc,
        max_frame_bytes=largest,
        capture_drops=raw.result["capture_drops"],
        warnings=json.dumps(warnings),
    )


def _read(folder: Path, experiment: Experiment) -> _Raw:
    """Everything that the folder holds; see `build` for errors."""
    result = json.loads((folder / "result.json").read_text())
    ends = early_ends(folder, experiment, result)
    captures = _captures(folder, len(result["qdiscs"]))
    packets, counts = _packets(captures, result, experiment, ends)
    flows = [folder / f"flows/{i}" for i in range(len(experiment.flows))]
    senders = [read_sender(flow) for flow in flows]
    receivers = [read_table(flow / "receiver.csv") for flow in flows]
    return _Raw(folder, experiment, result, packets, counts, senders, receivers, ends)


def _variables(raw: _Raw, bins: Bins) -> dict[str, schema.Variable]:
    """All variables of the dataset: over time, tables, and one number per flow."""
    folders = [raw.folder / f"flows/{i}" for i in range(raw.flows)]
    goodput, received = schema.goodput_series(raw.receivers, raw.t0_ns, bins)
    seen = {
        **schema.packet_series(raw.packets, raw.t0_ns, raw.flows, bins),
        "random_loss_packets": schema.random_loss_series(raw.packets, raw.t0_ns, raw.flows, bins),
        **goodput,
    }
    columns = _flow_columns(raw, received)
    tables = {
        **schema.packet_variables(raw.packets, raw.t0_ns),
        **schema.sample_variables(raw.senders, raw.t0_ns),
        **schema.flow_variables(columns),
        **end_variables(ends_of_flows(raw.ends, columns["stop_s"][0])),
        **object_variables(folders, raw.t0_ns, raw.experiment.duration_s),
        **forged_variables(raw.folder, raw.experiment, raw.t0_ns),
        **raw.counts,
    }
    telemetry = {  # a controller in Python may log any name
        f"controller_{name}" if name in seen or name in tables else name: series
        for name, series in schema.telemetry_series(raw.senders, raw.t0_ns, bins).items()
    }
    ways = schema.capacity_series(raw.experiment, bins)
    if raw.experiment.has_return_queue:
        ways |= schema.directions_of(len(raw.result["qdiscs"]))
    return {**seen, **telemetry, **tables, **ways}


def _names(raw: _Raw) -> dict[str, list[str]]:
    """The words that describe each flow."""
    flows = raw.experiment.flows
    names = {
        "label": raw.experiment.labels,
        "stack": [flow.stack for flow in flows],
        "controller": [flow.controller for flow in flows],
    }
    if raw.experiment.has_return_queue:
        names["direction"] = [flow.direction for flow in flows]
    return names


def _captures(folder: Path, bottlenecks: int) -> Captures:
    """All captures of a run, with those after single queues if the agent made any."""
    names = ["before", "after", *(f"queue-{k}" for k in range(bottlenecks))]
    paths = [path for name in names if (path := folder / f"{name}.pcap").exists()]
    try:
        before, after, *queues = (read_packets(path, whole=True, every_ip=True) for path in paths)
    except StoreError as error:
        raise RunFailed(f"the capture is incomplete: {error}; run it again") from None
    return Captures(before, queues, after)


def _packets(
    captures: Captures,
    result: dict[str, Any],
    experiment: Experiment,
    ends: Sequence[EarlyEnd | None],
) -> tuple[FlowPackets, dict[str, schema.Variable]]:
    """The packets within the experiment's time, and the balance of all packets."""
    has_extra = experiment.bottleneck.adds_packets
    counters = balance.counter_variables(result, has_extra=has_extra)
    routes = balance.routes_of(result["flows"])
    journey = follow(captures, routes, [not found[0]["qlen"] for found in result["qdiscs"]])
    ports = {flow["port"]: i for i, flow in enumerate(result["flows"])}
    addresses = [address_number(flow["sender_ip"]) for flow in result["flows"]]
    end_ns = result["t0_ns"] + round(experiment.duration_s * 1e9)
    packets = of_run(
        journey,
        captures,
        ports,
        addresses,
        (result["t0_ns"], end_ns),
        acks_followed=experiment.has_return_queue or experiment.bottleneck.touches_acks,
        path_holds=experiment.bottleneck.holds_data,
    )
    sent = np.bincount(packets.data_flow, minlength=len(ports))
    for i, flow in enumerate(experiment.flows):
        if not sent[i]:
            end = ends[i]
            why = f": {end.how}" if end else ""
            raise RunFailed(f"flow {i + 1} ({flow.name}) sent no packet to the bottleneck{why}")
    counted_ns = result["counted_ns"]
    captured = balance.balance_variables(
        journey,
        captures,
        routes,
        len(ports),
        counted_ns,
        has_extra=has_extra,
    )
    return packets, {**captured, **counters}


def _flow_columns(raw: _Raw, received: FloatArray) -> dict[str, tuple[FloatArray, str, str]]:
    """Start, actual end, base RTT and bytes received of each flow."""
    experiment = raw.experiment
    arrived = arrived_bytes(raw.packets, received)
    stops = stop_times_s(experiment, raw.packets, raw.t0_ns, arrived, raw.ends)
    base = [experiment.bottleneck.rtt_ms + flow.extra_rtt_ms for flow in experiment.flows]
    return {
        "start_s": (np.array(experiment.flow_starts_s), "s", "start of the flow"),
        "stop_s": (stops, "s", "end of the flow"),
        "base_rtt_ms": (np.array(base), "ms", "RTT without queueing"),
        "receiver_bytes": (received, "B", "application bytes received"),
    }


def largest_frame(packets: FlowPackets) -> int:
    """Bytes of the largest frame of all flows; 0 without frames."""
    sizes = [p.frame_bytes for p in (packets.data, packets.acks) if len(p)]
    return max((int(s.max()) for s in sizes), default=0)


def offload_warning(largest: int) -> list[str]:
    """A sentence if frames are larger than any on a real link."""
    if largest <= FRAME_BYTES:
        return []
    return [
        f"segmentation offload is on: frames of {largest} bytes passed the queue, "
        f"of {FRAME_BYTES} at most on a real link"
    ]


def _warnings(raw: _Raw, largest: int) -> list[str]:
    """The problems that the checks of every run find, one sentence each."""
    found = offload_warning(largest)
    if raw.result["capture_drops"]:
        found.append(f"the capture lost {raw.result['capture_drops']} packets")
    for i, label in enumerate(raw.experiment.labels):
        found += _flow_warnings(raw, i, label)
    return found


def _flow_warnings(raw: _Raw, index: int, label: str) -> list[str]:
    """What limited one flow besides the network, one sentence each."""
    found, experiment, reported = [], raw.experiment, raw.result["flows"][index]
    held_bytes, window_bytes = experiment.path_bytes(index), reported["window_bytes"]
    if held_bytes > window_bytes and experiment.flows[index].receive_window_kb is None:
        found.append(
            f"path and queue of {label} hold {held_bytes / 2**20:.0f} MiB, more than its "
            f"receive window of {window_bytes / 2**20:.0f} MiB, which may have limited it"
        )
    for role in ("sender", "receiver"):
        if count := reported.get(f"{role}_overflows", 0):
            found.append(
                f"the {role} of {label} lost {count} datagrams, because its socket was full"
            )
    flow = experiment.flows[index]
    stop_s = flow.stop_s if flow.stop_s is not None else experiment.duration_s
    limits = _limits(raw.folder / f"flows/{index}/limits.json")
    for name, what in LIMITS.items():
        percent = 100 * limits.get(name, 0.0) / (stop_s - experiment.flow_starts_s[index])
        if percent > LIMITED_PERCENT:
            found.append(f"{label} was limited by its {what} for {percent:.0f} % of its time")
    return found


def _limits(path: Path) -> dict[str, float]:
    """How long each limit held a flow back; empty where its driver reports none."""
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text()))
    except ValueError:  # the driver was ended while it wrote
        return {}
