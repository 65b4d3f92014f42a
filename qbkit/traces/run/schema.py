"""The run dataset: names, dimensions, units. Format 2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import pandas as pd
import xarray as xr

from qbkit.spec import Experiment, schedule
from qbkit.traces.arrays import BoolArray, ByteArray, FloatArray, IntArray, UintArray, pieces
from qbkit.traces.run.frames import Ecn
from qbkit.traces.run.journey import Fate
from qbkit.traces.run.match import NEVER
from qbkit.traces.run.packets import FlowPackets
from qbkit.traces.run.series import Bins
from qbkit.traces.run.telemetry import columns_of, meaning, states_of

Variable = tuple[Sequence[str], object, dict[str, object]]

LOSSES = {
    Fate.QUEUE_DROP: "packets dropped at the bottleneck, by its queue or in front of it",
    Fate.RANDOM_LOSS: "packets lost at random behind the queue",
}
FATE = "what became of the packet"
BIN_S = 0.1
"""Width of the regular bins of all time series."""


def seconds(time_ns: IntArray, t0_ns: int) -> FloatArray:
    """Time since t = 0, s."""
    found = np.empty(len(time_ns))
    for piece in pieces(len(time_ns)):
        found[piece] = (time_ns[piece] - t0_ns) / 1e9
    return found


def packet_variables(packets: FlowPackets, t0_ns: int) -> dict[str, Variable]:
    """Tables of data packets and acknowledgements."""
    arrival_s = seconds(packets.data.time_ns, t0_ns)
    departure_s = _departure_s(packets.departure_ns, t0_ns)
    ack_s = seconds(packets.acks.time_ns, t0_ns)
    sizes, ack_sizes = packets.data.frame_bytes, packets.acks.frame_bytes
    small = _smallest(sizes, ack_sizes)
    return {
        "packet_time_s": variable("packet", arrival_s, "s", "arrival at the queue"),
        "packet_departure_s": variable("packet", departure_s, "s", _departure_text(packets)),
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


def _departure_text(packets: FlowPackets) -> str:
    """What the departures are: where the path holds packets, they are seen only behind it."""
    if packets.left_ns is None:
        return "departure from the queue"
    return "departure to the receiver, behind the path after the queue"


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
    if packets.ack_ends is None:
        return {}
    departure_ns, fate = packets.ack_ends
    left_s = _departure_s(departure_ns, t0_ns)
    return {
        "ack_departure_s": variable("ack", left_s, "s", "departure from the bottleneck"),
        "ack_fate": _flags("ack", fate, Fate, FATE),
    }


def _departure_s(departure_ns: IntArray, t0_ns: int) -> FloatArray:
    """Departures in s; NaN for packets that never left."""
    found = seconds(departure_ns, t0_ns)
    found[departure_ns == NEVER] = np.nan
    return found


def _flags(dim: str, values: IntArray | ByteArray, kind: type[IntEnum], text: str) -> Variable:
    found = variable(dim, values.astype(np.int8), "1", text)
    found[2]["flag_values"] = [flag.value for flag in kind]
    found[2]["flag_meanings"] = " ".join(flag.name.lower() for flag in kind)
    return found


def packet_series(packets: FlowPackets, t0_ns: int, flows: int, bins: Bins) -> dict[str, Variable]:
    """Throughput, queueing delay and drops of every flow over time."""
    count, bits, delay_ms = np.zeros((3, flows, bins.count))
    for piece in pieces(len(packets.data)):
        _add_departures(packets, piece, t0_ns, bins, (count, bits, delay_ms))
    mean_ms = np.divide(delay_ms, count, out=np.full_like(count, np.nan), where=count > 0)
    throughput = bits / bins.width_s / 1e6
    both = ("flow", "time")
    marks: dict[str, Variable] = {}
    if packets.marked.any():
        text = "packets that a queue marked with CE"
        sums = _arrivals(packets, packets.marked, t0_ns, flows, bins)
        marks["ce_marked_packets"] = variable(both, sums, "1", text)
    return {
        **marks,
        "throughput_mbps": variable(both, throughput, "Mbit/s", "throughput behind the queue"),
        "queue_delay_ms": variable(both, mean_ms, "ms", "mean queueing delay"),
        "dropped_packets": loss_series(packets, t0_ns, flows, bins, Fate.QUEUE_DROP),
    }


def _add_departures(
    packets: FlowPackets, piece: slice, t0_ns: int, bins: Bins, sums: Sequence[FloatArray]
) -> None:
    """Add some packets that left to sums per flow and bin: how many, their bits, their delay.

    Each sum is added up in the order of the packets, so pieces do not change its rounding.
    """
    departure_ns = packets.departure_ns[piece]
    left_ns = departure_ns if packets.left_ns is None else packets.left_ns[piece]
    index = bins.index(seconds(departure_ns, t0_ns))
    chosen = (departure_ns != NEVER) & (index >= 0)
    data, flow = packets.data.take(piece), packets.data_flow[piece]
    delay_ms = (seconds(left_ns, t0_ns) - seconds(data.time_ns, t0_ns)) * 1e3
    cell = flow[chosen].astype(np.int64) * bins.count + index[chosen]
    values = (np.ones(len(cell)), data.frame_bytes[chosen] * 8.0, delay_ms[chosen])
    for total, value in zip(sums, values, strict=True):
        np.add.at(total.reshape(-1), cell, value)


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


def loss_series(packets: FlowPackets, t0_ns: int, flows: int, bins: Bins, fate: Fate) -> Variable:
    """How many packets of every flow with this fate reached the queue in each bin."""
    rows = _arrivals(packets, packets.fate == fate, t0_ns, flows, bins)
    return variable(("flow", "time"), rows, "1", LOSSES[fate])


def _arrivals(
    packets: FlowPackets, chosen: BoolArray, t0_ns: int, flows: int, bins: Bins
) -> FloatArray:
    """(flow, time) how many of the chosen packets reached the queue in each bin."""
    arrival_s, flow = seconds(packets.data.time_ns[chosen], t0_ns), packets.data_flow[chosen]
    return np.array([bins.sums(arrival_s[flow == i]) for i in range(flows)])


def telemetry_series(tables: Sequence[pd.DataFrame], t0_ns: int, bins: Bins) -> dict[str, Variable]:
    """Telemetry at the end of each bin; only variables that some stack reports."""
    found: dict[str, Variable] = {}
    for name in columns_of(tables):
        rows = [_last(table, name, t0_ns, bins) for table in tables]
        found[name] = variable(("flow", "time"), np.array(rows), *meaning(name))
    return found


def _last(table: pd.DataFrame, name: str, t0_ns: int, bins: Bins) -> FloatArray:
    time_s = seconds(table["time_ns"].to_numpy(np.int64), t0_ns)
    return bins.last(time_s, _numbers(table, name))


def sample_variables(tables: Sequence[pd.DataFrame], t0_ns: int) -> dict[str, Variable]:
    """All rows of telemetry, flow by flow."""
    time_ns = np.concatenate([table["time_ns"].to_numpy(np.int64) for table in tables])
    flow = np.repeat(np.arange(len(tables), dtype=np.uint16), [len(table) for table in tables])
    found = {
        "sample_time_s": variable("sample", seconds(time_ns, t0_ns), "s", "time of the telemetry"),
        "sample_flow": variable("sample", flow, "1", "flow"),
    }
    filled = [table for table in tables if len(table)]
    if any("state" in table for table in filled):
        states = states_of(tables)
        index = {name: i for i, name in enumerate(states)}
        state = np.concatenate([_state(table, index) for table in filled])
        found["sample_state"] = variable("sample", state, "1", "congestion state")
        found["sample_state"][2]["flag_values"] = list(range(len(states)))
        found["sample_state"][2]["flag_meanings"] = " ".join(states)
    for name in columns_of(tables):
        if any(name in table for table in filled):
            values = np.concatenate([_numbers(table, name) for table in filled])
            found[f"sample_{name}"] = variable("sample", values, *meaning(name))
    return found


def _state(table: pd.DataFrame, index: dict[str, int]) -> IntArray:
    """The index of each row's state; -1 where it is unknown."""
    if "state" not in table:
        return np.full(len(table), -1, np.int8)
    return table["state"].map(index).fillna(-1).to_numpy(np.int8)


def _numbers(table: pd.DataFrame, name: str) -> FloatArray:
    """A column of telemetry; NaN where a driver does not report it."""
    if name not in table:
        return np.full(len(table), np.nan)
    return table[name].to_numpy(np.float64)


def received_bytes(tables: Sequence[pd.DataFrame], until_ns: float = math.inf) -> FloatArray:
    """Application bytes that each receiver reports up to a time; NaN without reports at all."""
    totals = np.full(len(tables), np.nan)
    for i, table in enumerate(tables):
        if "bytes" in table and table["bytes"].notna().any():
            reports = table[table["bytes"].notna() & (table["time_ns"] <= until_ns)]["bytes"]
            totals[i] = reports.iloc[-1] if len(reports) else 0.0
    return totals


def goodput_series(
    tables: Sequence[pd.DataFrame], t0_ns: int, bins: Bins, throughput_mbps: FloatArray
) -> dict[str, Variable]:
    """Application bytes received over time (NaN without receiver reports).

    A receiver may report seldom: the kernel's TCP wakes its program every 256 KiB. What came
    between two reports is spread as the flow's packets left the queue, ``throughput_mbps``.
    """
    rows = np.full((len(tables), bins.count), np.nan)
    edges_s = np.append(bins.left_s, bins.count * bins.width_s)
    for row, table, mbps in zip(rows, tables, throughput_mbps, strict=True):
        if "bytes" not in table or not table["bytes"].notna().any():
            continue
        table = table[table["bytes"].notna()]
        time_s = np.append(0.0, seconds(table["time_ns"].to_numpy(np.int64), t0_ns))
        total = np.append(0.0, table["bytes"].to_numpy(np.float64))
        left = np.append(0.0, np.cumsum(np.nan_to_num(mbps)))
        spread = np.interp(left, np.interp(time_s, edges_s, left), total)
        before = total[np.searchsorted(time_s, edges_s, "right") - 1]
        after = total[np.minimum(np.searchsorted(time_s, edges_s), len(total) - 1)]
        row[:] = np.diff(np.clip(spread, before, after)) * 8 / bins.width_s / 1e6
    return {"goodput_mbps": variable(("flow", "time"), rows, "Mbit/s", "goodput")}


def flow_variables(
    *,
    start_s: FloatArray,
    stop_s: FloatArray,
    base_rtt_ms: FloatArray,
    receiver_bytes: FloatArray,
) -> dict[str, Variable]:
    """Start, actual end, base RTT and bytes received of each flow."""
    return {
        "start_s": variable("flow", start_s, "s", "start of the flow"),
        "stop_s": variable("flow", stop_s, "s", "end of the flow"),
        "base_rtt_ms": variable("flow", base_rtt_ms, "ms", "RTT without queueing"),
        "receiver_bytes": variable("flow", receiver_bytes, "B", "application bytes received"),
    }


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
    return dims, values, named(unit, text)


def named(unit: str, text: str) -> dict[str, object]:
    """Attributes of a variable: its unit and long name."""
    return {"units": unit, "long_name": text}


def _smallest(*sizes: UintArray) -> type[np.unsignedinteger]:
    """The smallest type for the sizes: two bytes, except with segmentation offload."""
    largest = max((int(s.max()) for s in sizes if len(s)), default=0)
    return np.uint16 if largest < 65536 else np.uint32
