"""Build the dataset of a run from its raw folder, with the checks that every run must pass."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
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
from qbkit.traces.run.ends import (
    arrived_bytes,
    end_warnings,
    ends_of_flows,
    parts_in_time,
    stop_times_s,
)
from qbkit.traces.run.forged import forged_variables, forged_warnings
from qbkit.traces.run.frames import ETHERNET_HEADER, Packets, address_number
from qbkit.traces.run.journey import (
    Captures,
    Fate,
    Route,
    drop_too_big_back,
    flow_between_hosts,
    follow,
)
from qbkit.traces.run.objects import object_variables
from qbkit.traces.run.packets import FlowPackets, of_run
from qbkit.traces.run.pcap import read_packets
from qbkit.traces.run.resumed import STARTED, resumed_variables, resumed_warnings
from qbkit.traces.run.series import Bins
from qbkit.traces.run.telemetry import read_sender, read_table

FORMAT_VERSION = 2
LIMITED_PERCENT = 1.0
"""A flow gets a warning if a window or buffer limits it for a larger part of its time."""
LIMITS = {"rwnd_limited_s": "receive window", "sndbuf_limited_s": "send buffer"}
"""Times in a driver's limits.json → what limited the flow."""


@dataclass(frozen=True)
class _Raw:
    """What an engine left in a run's folder, without the large parts: captures and telemetry."""

    folder: Path
    experiment: Experiment
    result: dict[str, Any]
    ends: list[EarlyEnd | None]

    @property
    def t0_ns(self) -> int:
        """The machine's time at t = 0."""
        return int(self.result["t0_ns"])

    @property
    def end_ns(self) -> int:
        """The machine's time at the experiment's end."""
        return self.t0_ns + round(self.experiment.duration_s * 1e9)

    @property
    def flows(self) -> int:
        """Number of flows."""
        return len(self.experiment.flows)

    @property
    def folders(self) -> list[Path]:
        """The folder of each flow."""
        return [self.folder / f"flows/{i}" for i in range(self.flows)]


@dataclass(frozen=True)
class _Seen:
    """What the captures show."""

    series: dict[str, schema.Variable]
    tables: dict[str, schema.Variable]
    stop_s: FloatArray
    received_bytes: FloatArray
    largest_frame_bytes: int


def build(folder: Path, experiment: Experiment, attrs: dict[str, Any]) -> xr.Dataset:
    """The dataset of a run, from the folder that an engine wrote.

    ``attrs`` describes the run (hash, engine, versions, cost); the dataset adds more. Packets that
    reach the queue outside [0, ``duration_s``) are left out; only the balance counts them. Raises
    RunFailed when a flow sent nothing, or a capture is incomplete (the host's disk was full, or
    failed). It takes about 110 bytes of memory per data packet, and one captured ACK for two.
    """
    result = json.loads((folder / "result.json").read_text())
    raw = _Raw(folder, experiment, result, early_ends(folder, experiment, result))
    bins = Bins(schema.BIN_S, experiment.duration_s)
    receivers = [read_table(flow / "receiver.csv") for flow in raw.folders]
    seen = _seen(raw, receivers, bins)
    throughput_mbps = np.asarray(seen.series["throughput_mbps"][1])
    goodput = schema.goodput_series(receivers, raw.t0_ns, bins, throughput_mbps)
    dataset = schema.assemble(_variables(raw, seen, goodput, bins), _names(raw), bins)
    warnings = [
        *early_end_sentences(dataset),
        *_warnings(raw, seen.largest_frame_bytes),
        *forged_warnings(folder, experiment.attacks),
        *end_warnings(dataset, experiment),
        *balance.violations(dataset),
    ]
    if STARTED in dataset:
        warnings += resumed_warnings(experiment.flows, experiment.labels, dataset[STARTED])
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
        qdisc_counters=json.dumps(balance.own_counters(raw.result)),
        max_frame_bytes=seen.largest_frame_bytes,
        capture_drops=raw.result["capture_drops"],
        warnings=json.dumps(warnings),
    )


def _seen(raw: _Raw, receivers: Sequence[pd.DataFrame], bins: Bins) -> _Seen:
    """Everything that comes from the captures; see `build` for errors.

    The captures need most of the memory, and are gone when this returns.
    """
    t0_ns, flows = raw.t0_ns, raw.flows
    received = schema.received_bytes(receivers)
    late = schema.received_bytes(receivers, raw.end_ns) < received
    cut = late & [flow.total_bytes is not None for flow in raw.experiment.flows]
    packets, counts, in_time = _packets(raw, with_later=bool(cut.any()))
    series = {
        **schema.packet_series(packets, t0_ns, flows, bins),
        "random_loss_packets": schema.loss_series(packets, t0_ns, flows, bins, Fate.RANDOM_LOSS),
    }
    tables = {**schema.packet_variables(packets, t0_ns), **counts}
    received = np.where(cut, np.floor(received * in_time), received)
    arrived = arrived_bytes(packets, received)
    stops = stop_times_s(raw.experiment, packets, t0_ns, arrived, raw.ends)
    return _Seen(series, tables, stops, received, largest_frame(packets))


def _variables(
    raw: _Raw,
    seen: _Seen,
    goodput: dict[str, schema.Variable],
    bins: Bins,
) -> dict[str, schema.Variable]:
    """All variables of the dataset: over time, tables, and one number per flow."""
    senders, experiment = [read_sender(flow) for flow in raw.folders], raw.experiment
    base_ms = [experiment.bottleneck.rtt_ms + flow.extra_rtt_ms for flow in experiment.flows]
    tables = {
        **seen.tables,
        **schema.sample_variables(senders, raw.t0_ns),
        **schema.flow_variables(
            start_s=np.array(experiment.flow_starts_s),
            stop_s=seen.stop_s,
            base_rtt_ms=np.array(base_ms),
            receiver_bytes=seen.received_bytes,
        ),
        **end_variables(ends_of_flows(raw.ends, seen.stop_s)),
        **object_variables(raw.folders, raw.t0_ns, experiment.duration_s),
        **resumed_variables(experiment.flows, raw.folders, raw.t0_ns),
        **forged_variables(raw.folder, experiment, raw.t0_ns),
    }
    series = {**seen.series, **goodput}
    telemetry = {  # a controller in Python may log any name
        f"controller_{name}" if name in series or name in tables else name: values
        for name, values in schema.telemetry_series(senders, raw.t0_ns, bins).items()
    }
    ways = schema.capacity_series(experiment, bins)
    if experiment.has_return_queue:
        ways |= schema.directions_of(len(raw.result["qdiscs"]))
    return {**series, **telemetry, **tables, **ways}


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


class _Queues(Sequence[Packets]):
    """The captures after single queues, if the guest made any; each is read when it is used."""

    def __init__(self, folder: Path, bottlenecks: int) -> None:
        paths = (folder / f"queue-{k}.pcap" for k in range(bottlenecks))
        self._paths = [path for path in paths if path.exists()]

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> Packets:  # type: ignore[override]
        return _capture(self._paths[index])


def _capture(path: Path) -> Packets:
    """All packets of a capture of a run."""
    try:
        return read_packets(path, whole=True, every_ip=True)
    except StoreError as error:
        raise RunFailed(f"the capture is incomplete: {error}; run it again") from None


def _captures(folder: Path, routes: Sequence[Route], bottlenecks: int) -> tuple[Captures, Packets]:
    """The captures of a run, the first of which holds what is on a route, and its other packets."""
    whole = _capture(folder / "before.pcap")
    on_route = flow_between_hosts(whole, routes) >= 0
    before, others = whole.take(on_route), whole.take(~on_route)
    del whole
    after = _capture(folder / "after.pcap")
    return Captures(before, _Queues(folder, bottlenecks), after), others


def _packets(
    raw: _Raw, *, with_later: bool
) -> tuple[FlowPackets, dict[str, schema.Variable], FloatArray]:
    """The packets within the experiment's time, the balance of all packets, and (flow,) the part
    of the bytes that left the queue in that time; all of them unless asked ``with_later``."""
    result, experiment, link = raw.result, raw.experiment, raw.experiment.bottleneck
    counters = balance.counter_variables(result, has_extra=link.adds_packets)
    routes = balance.routes_of(result["flows"])
    captures, others = _captures(raw.folder, routes, len(result["qdiscs"]))
    journey = follow(captures, routes, [not found[0]["qlen"] for found in result["qdiscs"]])
    if link.mtu_bytes < FRAME_BYTES - ETHERNET_HEADER:
        drop_too_big_back(journey, routes, link.mtu_bytes)
    ports = {flow["port"]: i for i, flow in enumerate(result["flows"])}
    addresses = [address_number(flow["sender_ip"]) for flow in result["flows"]]
    until = partial(
        of_run,
        journey,
        None if experiment.has_return_queue or link.touches_acks else others,
        ports,
        addresses,
        path_holds=link.holds_data,
    )
    packets = until(span_ns=(raw.t0_ns, raw.end_ns))
    in_time = np.ones(raw.flows)
    if with_later:
        in_time = parts_in_time(until(span_ns=(raw.t0_ns, sys.maxsize)), raw.flows, raw.end_ns)
    sent = np.bincount(packets.data_flow, minlength=len(ports))
    for i, flow in enumerate(experiment.flows):
        if not sent[i]:
            end = raw.ends[i]
            why = f": {end.how}" if end else ""
            raise RunFailed(f"flow {i + 1} ({flow.name}) sent no packet to the bottleneck{why}")
    counted_ns = result["counted_ns"]
    captured = balance.balance_variables(
        journey,
        captures,
        routes,
        len(ports),
        counted_ns,
        has_extra=link.adds_packets,
    )
    return packets, {**captured, **counters}, in_time


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
    if percent := raw.experiment.bottleneck.corrupt_percent:
        found.append(
            f"one bit is wrong in {percent:g} % of the packets to the receivers, which drop most "
            "of these by their checksum; they arrived, and do not count as lost"
        )
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
        percent = 100 * limits.get(name, 0.0) / (stop_s - experiment.flow_start_s(index))
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
