"""The run dataset: names, dimensions, units. Format 2."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import pandas as pd
import xarray as xr

from qbkit.spec import Experiment, schedule
from qbkit.traces.arrays import ByteArray, FloatArray, IntArray
from qbkit.traces.run.frames import Ecn
from qbkit.traces.run.journey import Fate
from qbkit.traces.run.match import NEVER
from qbkit.traces.run.packets import FlowPackets
from qbkit.traces.run.series import Bins
from qbkit.traces.run.telemetry import columns_of, meaning, states_of

Variable = tuple[Sequence[str], object, dict[str, object]]

LOSSES = {
    Fate.QUEUE_DROP: "packets dropped by the queue",
    Fate.RANDOM_LOSS: "packets lost at random behind the queue",
}
FATE = "what became of the packet"
BIN_S = 0.1
"""Width of the regular bins of all time series."""


def seconds(time_ns: IntArray, t0_ns: int) -> FloatArray:
    """Time since t = 0, s."""
    return (time_ns - t0_ns) / 1e9


def packet_variables(packets: FlowPackets, t0_ns: int) -> dict[str, Variable]:
    """Tables of data packets and acknowledgements."""
    arrival_s = seconds(packets.data.time_ns, t0_ns)
    departure_s = _departure_s(packets.departure_ns, t0_ns)
    ack_s = seconds(packets.acks.time_ns, t0_ns)
    sizes, ack_sizes = packets.data.frame_bytes, packets.acks.frame_bytes
    small = _smallest(sizes, ack_sizes)
    return {
        "packet_time_s": variable("packet", arrival_s, "s", "arrival at the queue"),
        "packet_departure_s": variable("packet", departure_s, "s", "departure from the queue"),
        "packet_fate": _flags("packet", packets.fate, Fate, FATE),
        "packet_flow": variable("packet", packets.data_flow.astype(np.uint16), "1", "flow"),
        "packet_size_bytes": variable("packet", sizes.astype(small), "B", "frame without FCS"),
        "ack_time_s": variable("ack", ack_s, "s", "arrival at the bottleneck"),
        "ack_flow": variable("ack", packets.ack_flow.astype(np.uint16), "1", "flow"),
        "ack_size_bytes": variable("ack", ack_sizes.astype(small), "B", "frame without FCS"),
        **_left(packets, t0_ns),
        **_ecn(packets),
        **_followed_acks(packets, t0_ns),
    }


def _left(packets: FlowPackets, t0_ns: int) -> dict[str, Variable]:
    """When packets left their last queue, where they may arrive later than that."""
    if packets.left_ns is None:
        return {}
    text = "departure from the last queue; the path behind it may hold packets"
    return {"packet_left_s": variable("packet", _departure_s(packets.left_ns, t0_ns), "s", text)}


def _ecn(packets: FlowPackets) -> dict[str, Variable]:
    """ECN fields and marks of the data packets, if any sender asks for marks."""
    if not packets.data.ecn.any():
        return {}
    text = "ECN field on arrival at the queue (RFC 3168)"
    marked = packets.marked.astype(np.int8)
    return {
        "packet_ecn": _flags("packet", packets.data.ecn, Ecn, text),
        "packet_is_marked": variable("packet", marked, "1", "marked CE by a queue"),
    }


def _followed_acks(packets: FlowPackets, t0_ns: int) -> dict[str, Variable]:
    """Departures and fates of the ACKs, if they pass a queue or random loss."""
    if packets.ack_departure_ns is None or packets.ack_fate is None:
        return {}
    left_s = _departure_s(packets.ack_departure_ns, t0_ns)
    return {
        "ack_departure_s": variable("ack", left_s, "s", "departure from the bottleneck"),
        "ack_fate": _flags("ack", packets.ack_fate, Fate, FATE),
    }


def _departure_s(departure_ns: IntArray, t0_ns: int) -> FloatArray:
    """Departures in s; NaN for packets that never left."""
    return np.where(departure_ns == NEVER, np.nan, seconds(departure_ns, t0_ns))


def _flags(dim: str, values: IntArray | ByteArray, kind: type[IntEnum], text: str) -> Variable:
    found = variable(dim, values.astype(np.int8), "1", text)
    found[2]["flag_values"] = [flag.value for flag in kind]
    found[2]["flag_meanings"] = " ".join(flag.name.lower() for flag in kind)
    return found


def packet_series(packets: FlowPackets, t0_ns: int, flows: int, bins: Bins) -> dict[str, Variable]:
    """Throughput, queueing delay and drops of every flow over time."""
    arrival_s = seconds(packets.data.time_ns, t0_ns)
    departure_s = seconds(packets.departure_ns, t0_ns)
    out = packets.departure_ns != NEVER
    left_ns = packets.departure_ns if packets.left_ns is None else packets.left_ns
    delay_ms = (seconds(left_ns, t0_ns) - arrival_s) * 1e3
    bits = packets.data.frame_bytes * 8.0
    throughput, delay = [], []
    for flow in range(flows):
        mine = (packets.data_flow == flow) & out
        throughput.append(bins.sums(departure_s[mine], bits[mine]) / bins.width_s / 1e6)
        delay.append(bins.means(departure_s[mine], delay_ms[mine]))
    both = ("flow", "time")
    marks: dict[str, Variable] = {}
    if packets.marked.any():
        each = (arrival_s[packets.marked & (packets.data_flow == flow)] for flow in range(flows))
        sums = np.array([bins.sums(at_s) for at_s in each])
        text = "packets that a queue marked with CE"
        marks["ce_marked_packets"] = variable(both, sums, "1", text)
    return {
        **marks,
        "throughput_mbps": variable(
            both, np.array(throughput), "Mbit/s", "throughput behind the queue"
        ),
        "queue_delay_ms": variable(both, np.array(delay), "ms", "mean queueing delay"),
        "dropped_packets": _losses(packets, t0_ns, flows, bins, Fate.QUEUE_DROP),
    }


def directions_of(bottlenecks: int) -> dict[str, Variable]:
    """Direction of each bottleneck in a run with reverse traffic; half of them are reverse."""
    ways = np.repeat(["forward", "reverse"], bottlenecks // 2)
    text = "direction of the bottleneck; reverse ones are numbered right to left"
    return {"bottleneck_direction": variable("bottleneck", ways, "1", text)}


def capacity_series(experiment: Experiment, bins: Bins) -> dict[str, Variable]:
    """Mean capacity of the link in each bin, where it changes."""
    link = experiment.bottleneck
    if not link.changes_rate:
        return {}
    edges_s = [*bins.left_s.tolist(), bins.count * bins.width_s]
    mbps = np.array(schedule.mean_mbps(link, edges_s))
    return {"capacity_mbps": variable("time", mbps, "Mbit/s", "capacity of the link")}


def random_loss_series(packets: FlowPackets, t0_ns: int, flows: int, bins: Bins) -> Variable:
    """Random losses of every flow over time, where captures distinguish them from drops."""
    return _losses(packets, t0_ns, flows, bins, Fate.RANDOM_LOSS)


def _losses(packets: FlowPackets, t0_ns: int, flows: int, bins: Bins, fate: Fate) -> Variable:
    """How many packets with this fate reached the queue in each bin."""
    lost = packets.fate == fate
    arrival_s, flow = seconds(packets.data.time_ns[lost], t0_ns), packets.data_flow[lost]
    rows = np.array([bins.sums(arrival_s[flow == i]) for i in range(flows)])
    return variable(("flow", "time"), rows, "1", LOSSES[fate])


def telemetry_series(tables: Sequence[pd.DataFrame], t0_ns: int, bins: Bins) -> dict[str, Variable]:
    """Telemetry at the end of each bin; only variables that some stack reports."""
    found: dict[str, Variable] = {}
    for name in columns_of(tables):
        rows = [_last(table, name, t0_ns, bins) for table in tables]
        found[name] = variable(("flow", "time"), np.array(rows), *meaning(name))
    return found


def _last(table: pd.DataFrame, name: str, t0_ns: int, bins: Bins) -> FloatArray:
    if name not in table:
        return np.full(bins.count, np.nan)
    time_s = seconds(table["time_ns"].to_numpy(np.int64), t0_ns)
    return bins.last(time_s, table[name].to_numpy(np.float64))


def sample_variables(tables: Sequence[pd.DataFrame], t0_ns: int) -> dict[str, Variable]:
    """All rows of telemetry, flow by flow."""
    rows = [table.assign(flow=i) for i, table in enumerate(tables) if len(table)]
    if not rows:
        rows = [pd.DataFrame({"time_ns": [], "flow": []})]
    whole = pd.concat(rows, ignore_index=True)
    time_s = seconds(whole["time_ns"].to_numpy(np.int64), t0_ns)
    found = {
        "sample_time_s": variable("sample", time_s, "s", "time of the telemetry"),
        "sample_flow": variable("sample", whole["flow"].to_numpy(np.uint16), "1", "flow"),
    }
    if "state" in whole:
        states = states_of(tables)
        index = {name: i for i, name in enumerate(states)}
        state = whole["state"].map(index).fillna(-1).to_numpy(np.int8)
        found["sample_state"] = variable("sample", state, "1", "congestion state")
        found["sample_state"][2]["flag_values"] = list(range(len(states)))
        found["sample_state"][2]["flag_meanings"] = " ".join(states)
    for name in columns_of(tables):
        if name in whole:
            values = whole[name].to_numpy(np.float64)
            found[f"sample_{name}"] = variable("sample", values, *meaning(name))
    return found


def goodput_series(
    tables: Sequence[pd.DataFrame], t0_ns: int, bins: Bins
) -> tuple[dict[str, Variable], FloatArray]:
    """Application bytes received over time, and in total (B; NaN without receiver reports)."""
    rows, totals = [], []
    for table in tables:
        if "bytes" not in table or not table["bytes"].notna().any():
            rows.append(np.full(bins.count, np.nan))
            totals.append(np.nan)
            continue
        table = table[table["bytes"].notna()]
        time_s = seconds(table["time_ns"].to_numpy(np.int64), t0_ns)
        total = table["bytes"].to_numpy(np.float64)
        edges = np.append(bins.left_s, bins.count * bins.width_s)
        at_edges = np.interp(edges, time_s, total, left=0.0)
        rows.append(np.diff(at_edges) * 8 / bins.width_s / 1e6)
        totals.append(total[-1])
    found = {"goodput_mbps": variable(("flow", "time"), np.array(rows), "Mbit/s", "goodput")}
    return found, np.array(totals)


def flow_variables(columns: dict[str, tuple[FloatArray, str, str]]) -> dict[str, Variable]:
    """Variables with one number per flow, from name → (values, unit, meaning)."""
    return {name: variable("flow", v, unit, text) for name, (v, unit, text) in columns.items()}


def assemble(variables: dict[str, Variable], names: dict[str, list[str]], bins: Bins) -> xr.Dataset:
    """The dataset with its coordinates; ``names`` holds label, stack and more of each flow."""
    flows = np.arange(len(names["label"]))
    coords: dict[str, object] = {
        "flow": ("flow", flows, {"long_name": "flow"}),
        "time": ("time", bins.left_s, {"units": "s", "long_name": "time since the start"}),
    }
    for name, values in names.items():
        coords[name] = ("flow", np.array(values, dtype=str), {"long_name": name})
    return xr.Dataset(variables, coords)


def variable(dims: str | Sequence[str], values: object, unit: str, text: str) -> Variable:
    """A variable with its unit and long name."""
    dims = (dims,) if isinstance(dims, str) else dims
    return dims, values, {"units": unit, "long_name": text}


def _smallest(*sizes: IntArray) -> type[np.unsignedinteger]:
    """The smallest type for the sizes: two bytes, except with segmentation offload."""
    largest = max((int(s.max()) for s in sizes if len(s)), default=0)
    return np.uint16 if largest < 65536 else np.uint32
