"""Build the dataset of a run from its raw folder, with the checks that every run must pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from qbkit.errors import RunFailed, StoreError
from qbkit.spec import FRAME_BYTES, Experiment
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run import balance, schema
from qbkit.traces.run.early_end import EarlyEnd, early_end_sentences, early_ends, end_variables
from qbkit.traces.run.frames import address_number
from qbkit.traces.run.journey import Captures, follow
from qbkit.traces.run.packets import FlowPackets, of_run
from qbkit.traces.run.pcap import read_packets
from qbkit.traces.run.series import Bins
from qbkit.traces.run.telemetry import read_sender, read_table

FORMAT_VERSION = 2
LIMITED_PERCENT = 1.0
"""A flow gets a warning if a window or buffer limits it for a larger part of its time."""
LIMITS = {"rwnd_limited_s": "receive window", "sndbuf_limited_s": "send buffer"}
"""Times in a driver's limits.json → what limited the flow."""
STILL_S, STILL_PART = 5.0, 0.25
"""A flow has stalled if its last packet is both this long and this part of its time before its end:
longer than a sender waits after several timeouts in a row (RFC 9002, 6.2)."""


def build(folder: Path, experiment: Experiment, attrs: dict[str, Any]) -> xr.Dataset:
    """The dataset of a run, from the folder that an engine wrote.

    ``attrs`` describes the run (hash, engine, versions, cost); the dataset adds more. Packets that
    reach the queue outside [0, ``duration_s``) are left out; only the balance counts them. Raises
    RunFailed when a flow sent nothing, or a capture is incomplete (the host's disk was full, or
    failed).
    """
    result = json.loads((folder / "result.json").read_text())
    t0_ns, flows = result["t0_ns"], experiment.flows
    captures = _captures(folder, len(result["qdiscs"]))
    ends = early_ends(folder, experiment, t0_ns)
    packets, counts = _packets(captures, result, experiment, ends)
    bins = Bins(schema.BIN_S, experiment.duration_s)
    senders = [read_sender(folder / f"flows/{i}") for i in range(len(flows))]
    receivers = [read_table(folder / f"flows/{i}/receiver.csv") for i in range(len(flows))]
    goodput, received = schema.goodput_series(receivers, t0_ns, bins)
    seen = {
        **schema.packet_series(packets, t0_ns, len(flows), bins),
        "random_loss_packets": schema.random_loss_series(packets, t0_ns, len(flows), bins),
        **goodput,
    }
    tables = {
        **schema.packet_variables(packets, t0_ns),
        **schema.sample_variables(senders, t0_ns),
        **schema.flow_variables(_flow_columns(experiment, packets, t0_ns, received, ends)),
        **end_variables(ends),
        **counts,
    }
    telemetry = {  # a controller in Python may log any name
        f"controller_{name}" if name in seen or name in tables else name: series
        for name, series in schema.telemetry_series(senders, t0_ns, bins).items()
    }
    variables = {**seen, **telemetry, **tables}
    names = {
        "label": experiment.labels,
        "stack": [flow.stack for flow in flows],
        "controller": [flow.controller for flow in flows],
    }
    if experiment.has_reverse_traffic:
        names["direction"] = [flow.direction for flow in experiment.flows]
        variables |= schema.directions_of(len(result["qdiscs"]))
    largest = largest_frame(packets)
    link = experiment.bottleneck
    dataset = schema.assemble(variables, names, bins)
    warnings = [
        *early_end_sentences(dataset),
        *_warnings(folder, experiment, packets, result, largest),
        *_still_warnings(dataset),
        *balance.violations(dataset),
    ]
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
        capture_drops=result["capture_drops"],
        warnings=json.dumps(warnings),
    )


def _still_warnings(run: xr.Dataset) -> list[str]:
    """A sentence for each flow that stopped sending long before its end."""
    found = []
    for i, label in enumerate(run.label.values):
        start_s, stop_s = float(run.start_s[i]), float(run.stop_s[i])
        last_s = float(run.packet_time_s.values[run.packet_flow.values == i].max())
        if stop_s - last_s > max(STILL_S, STILL_PART * (stop_s - start_s)):
            found.append(
                f"{label} sent nothing after {last_s:.1f} s, though its time lasted until "
                f"{stop_s:g} s"
            )
    return found


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
    counters = balance.counter_variables(result)
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
        acks_followed=experiment.has_reverse_traffic or experiment.bottleneck.loses_acks,
    )
    sent = np.bincount(packets.data_flow, minlength=len(ports))
    for i, flow in enumerate(experiment.flows):
        if not sent[i]:
            end = ends[i]
            why = f": {end.how}" if end else ""
            raise RunFailed(f"flow {i + 1} ({flow.name}) sent no packet to the bottleneck{why}")
    counted_ns = result["counted_ns"]
    captured = balance.balance_variables(journey, captures, routes, len(ports), counted_ns)
    return packets, {**captured, **counters}


def _flow_columns(
    experiment: Experiment,
    packets: FlowPackets,
    t0_ns: int,
    received: FloatArray,
    ends: Sequence[EarlyEnd | None],
) -> dict[str, tuple[FloatArray, str, str]]:
    """Start, actual end, base RTT and bytes received of each flow."""
    stops = []
    for i, flow in enumerate(experiment.flows):
        stop_s = flow.stop_s if flow.stop_s is not None else experiment.duration_s
        if flow.bytes is not None:
            last_ns = int(packets.data.time_ns[packets.data_flow == i][-1])
            stop_s = min(stop_s, (last_ns - t0_ns) / 1e9)
        end = ends[i]
        stops.append(min(stop_s, end.ended_s) if end else stop_s)
    base = [experiment.bottleneck.rtt_ms + flow.extra_rtt_ms for flow in experiment.flows]
    return {
        "start_s": (np.array(experiment.flow_starts_s), "s", "start of the flow"),
        "stop_s": (np.array(stops), "s", "end of the flow"),
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


def _warnings(
    folder: Path,
    experiment: Experiment,
    packets: FlowPackets,
    result: dict[str, Any],
    largest: int,
) -> list[str]:
    """The problems that the checks of every run find, one sentence each."""
    found = offload_warning(largest)
    if result["capture_drops"]:
        found.append(f"the capture lost {result['capture_drops']} packets")
    for i, (flow, label) in enumerate(zip(experiment.flows, experiment.labels, strict=True)):
        held_bytes, window_bytes = experiment.path_bytes(i), result["flows"][i]["window_bytes"]
        if held_bytes > window_bytes:
            found.append(
                f"path and queue of {label} hold {held_bytes / 2**20:.0f} MiB, more than its "
                f"receive window of {window_bytes / 2**20:.0f} MiB, which may have limited it"
            )
        for role in ("sender", "receiver"):
            if count := result["flows"][i].get(f"{role}_overflows", 0):
                found.append(
                    f"the {role} of {label} lost {count} datagrams, because its socket was full"
                )
        stop_s = flow.stop_s if flow.stop_s is not None else experiment.duration_s
        limits = _limits(folder / f"flows/{i}/limits.json")
        for name, what in LIMITS.items():
            percent = 100 * limits.get(name, 0.0) / (stop_s - experiment.flow_starts_s[i])
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
