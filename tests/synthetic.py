"""Run datasets made without a guest: the schema of a real run, deterministic, in milliseconds.

`synthetic_run` sends sawtooth-shaped flows through a FIFO queue with tail drop and stores what a
capture before and after the queue, and telemetry of the senders, would have shown.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.traces.run.telemetry import STATES

FRAME_BYTES = 1514
HEADER_BYTES = 66
ACK_BYTES = 66
SAMPLE_S = 0.05
SAWTOOTH_S = 4.0

UNITS = {
    "cwnd_bytes": "B",
    "bytes_in_flight": "B",
    "ssthresh_bytes": "B",
    "srtt_ms": "ms",
    "latest_rtt_ms": "ms",
    "min_rtt_ms": "ms",
    "pacing_rate_mbps": "Mbit/s",
    "delivery_rate_mbps": "Mbit/s",
    "lost_packets": "1",
    "spurious_losses": "1",
    "retransmits": "1",
}


@dataclass(frozen=True)
class _Packets:
    time_s: np.ndarray
    departure_s: np.ndarray
    flow: np.ndarray
    size_bytes: np.ndarray


def synthetic_run(
    *,
    flows: Sequence[str] = ("quic-go:cubic", "tcp:cubic"),
    shares: Sequence[float] | None = None,
    duration_s: float = 20.0,
    rate_mbps: float = 10.0,
    rtt_ms: float = 20.0,
    buffer_bdp: float = 2.0,
    bin_s: float = 0.1,
    seed: int = 1,
) -> xr.Dataset:
    """A run dataset of ``flows`` (``stack:controller``) over one FIFO bottleneck.

    ``shares`` are the parts of the link that the flows ask for on average (equal by default).
    Equal arguments give equal datasets.
    """
    spec = Experiment(
        bottleneck=Bottleneck(rate_mbps=rate_mbps, rtt_ms=rtt_ms, buffer_bdp=buffer_bdp),
        flows=tuple(Flow(f) for f in flows),
        duration_s=duration_s,
        seed=seed,
    )
    parts = np.full(len(flows), 1 / len(flows)) if shares is None else np.asarray(shares, float)
    packets = _through_the_queue(spec, parts, np.random.default_rng(seed))
    edges_s = np.arange(int(np.ceil(duration_s / bin_s - 1e-9)) + 1) * bin_s
    ds = xr.Dataset(
        coords={
            "flow": np.arange(len(flows)),
            "label": ("flow", np.array(spec.labels)),
            "stack": ("flow", np.array([f.stack for f in spec.flows])),
            "controller": ("flow", np.array([f.controller for f in spec.flows])),
            "time": ("time", edges_s[:-1], {"units": "s", "long_name": "time"}),
        }
    )
    _add_packets(ds, packets)
    _add_acks(ds, packets, spec)
    _add_series(ds, packets, spec, edges_s)
    _add_samples(ds, packets, spec, edges_s)
    _add_flows(ds, packets, spec)
    ds.attrs = _attributes(spec, bin_s)
    return ds


def _through_the_queue(spec: Experiment, parts: np.ndarray, rng: np.random.Generator) -> _Packets:
    """Arrivals of all flows in order, and when each came out (NaN: dropped at a full queue)."""
    bits = FRAME_BYTES * 8
    slots_s = bits / (spec.bottleneck.rate_mbps * 1e6)
    arrivals_s = []
    for i, part in enumerate(parts):
        grid_s = np.arange(0.0, spec.duration_s, SAWTOOTH_S / 200)
        phase = (grid_s / SAWTOOTH_S + 0.37 * i + rng.uniform()) % 1.0
        packets = np.cumsum((0.75 + 0.5 * phase) * part * SAWTOOTH_S / 200 / slots_s)
        number = np.arange(int(packets[-1])) + rng.uniform(0, 0.9, int(packets[-1]))
        arrivals_s.append(np.interp(number, packets, grid_s))
    flow = np.concatenate([np.full(len(a), i) for i, a in enumerate(arrivals_s)])
    time_s = np.concatenate(arrivals_s)
    order = np.argsort(time_s, kind="stable")
    time_s, flow = time_s[order], flow[order]
    departure_s = np.full(len(time_s), np.nan)
    room_s = spec.bottleneck.queue_bytes * 8 / (spec.bottleneck.rate_mbps * 1e6)
    free_s = 0.0
    for k, now_s in enumerate(time_s.tolist()):
        if free_s - now_s + slots_s <= room_s:
            begins_s = max(now_s, free_s)
            departure_s[k] = begins_s
            free_s = begins_s + slots_s
    return _Packets(time_s, departure_s, flow.astype("uint8"), np.full(len(flow), FRAME_BYTES))


def _put(ds: xr.Dataset, name: str, dims: tuple[str, ...], values: np.ndarray, units: str) -> None:
    ds[name] = (dims, values, {"units": units, "long_name": name.replace("_", " ")})


def _add_packets(ds: xr.Dataset, p: _Packets) -> None:
    _put(ds, "packet_time_s", ("packet",), p.time_s, "s")
    _put(ds, "packet_departure_s", ("packet",), p.departure_s, "s")
    _put(ds, "packet_fate", ("packet",), np.isnan(p.departure_s).astype("int8"), "1")
    _put(ds, "packet_flow", ("packet",), p.flow, "1")
    _put(ds, "packet_size_bytes", ("packet",), p.size_bytes.astype("uint16"), "B")


def _add_acks(ds: xr.Dataset, p: _Packets, spec: Experiment) -> None:
    """Every second packet of a flow is acknowledged one round trip after it left the queue."""
    time_s, flow = [], []
    for i in range(len(spec.flows)):
        left_s = p.departure_s[(p.flow == i) & np.isfinite(p.departure_s)][1::2]
        time_s.append(left_s + spec.bottleneck.rtt_ms / 1e3)
        flow.append(np.full(len(left_s), i, "uint8"))
    times_s, flows = np.concatenate(time_s), np.concatenate(flow)
    order = np.argsort(times_s, kind="stable")
    order = order[times_s[order] < spec.duration_s]
    _put(ds, "ack_time_s", ("ack",), times_s[order], "s")
    _put(ds, "ack_flow", ("ack",), flows[order], "1")
    _put(ds, "ack_size_bytes", ("ack",), np.full(len(order), ACK_BYTES, "uint16"), "B")


def _add_series(ds: xr.Dataset, p: _Packets, spec: Experiment, edges_s: np.ndarray) -> None:
    shape = (len(spec.flows), len(edges_s) - 1)
    series = {n: np.zeros(shape) for n in ("throughput", "delay", "dropped", "goodput")}
    width_s = edges_s[1] - edges_s[0]
    to_mbps = 8 / 1e6 / width_s
    for i in range(shape[0]):
        mine = p.flow == i
        out = mine & np.isfinite(p.departure_s)
        left_s, size = p.departure_s[out], p.size_bytes[out].astype(float)
        waited_ms = (left_s - p.time_s[out]) * 1e3
        number = np.histogram(left_s, edges_s)[0]
        with np.errstate(invalid="ignore"):
            series["delay"][i] = np.histogram(left_s, edges_s, weights=waited_ms)[0] / number
        series["throughput"][i] = np.histogram(left_s, edges_s, weights=size)[0] * to_mbps
        lost_s = p.time_s[mine & ~np.isfinite(p.departure_s)]
        series["dropped"][i] = np.histogram(lost_s, edges_s)[0]
        there_s = left_s + spec.bottleneck.rtt_ms / 2e3
        payload = np.histogram(there_s, edges_s, weights=size - HEADER_BYTES)[0]
        series["goodput"][i] = payload * to_mbps
    _put(ds, "throughput_mbps", ("flow", "time"), series["throughput"], "Mbit/s")
    _put(ds, "queue_delay_ms", ("flow", "time"), series["delay"], "ms")
    _put(ds, "dropped_packets", ("flow", "time"), series["dropped"], "1")
    _put(ds, "random_loss_packets", ("flow", "time"), np.zeros(shape), "1")
    _put(ds, "goodput_mbps", ("flow", "time"), series["goodput"], "Mbit/s")


def _add_samples(ds: xr.Dataset, p: _Packets, spec: Experiment, edges_s: np.ndarray) -> None:
    """Telemetry every `SAMPLE_S` of each flow; TCP does not report spurious losses (NaN)."""
    tables = [_telemetry(p, spec, i) for i in range(len(spec.flows))]
    columns = {n: np.concatenate([t[n] for t in tables]) for n in tables[0]}
    order = np.argsort(columns["time_s"], kind="stable")
    for name, values in columns.items():
        _put(ds, f"sample_{name}", ("sample",), values[order], UNITS.get(name, "1"))
    ds["sample_time_s"].attrs["units"] = "s"
    ds["sample_state"].attrs |= {
        "flag_values": np.arange(-1, len(STATES), dtype="int8"),
        "flag_meanings": " ".join(("unknown", *STATES)),
    }
    last = np.searchsorted(tables[0]["time_s"], edges_s[1:], side="right") - 1
    for name, units in UNITS.items():
        series = np.stack([np.where(last < 0, np.nan, t[name][last]) for t in tables])
        _put(ds, name, ("flow", "time"), series, units)


def _telemetry(p: _Packets, spec: Experiment, i: int) -> dict[str, np.ndarray]:
    mine = p.flow == i
    out = mine & np.isfinite(p.departure_s)
    now_s = np.arange(SAMPLE_S, spec.duration_s, SAMPLE_S)
    rtt_ms = spec.bottleneck.rtt_ms
    srtt_ms = rtt_ms + np.interp(
        now_s, p.departure_s[out], (p.departure_s[out] - p.time_s[out]) * 1e3
    )
    sent = np.searchsorted(p.time_s[mine], now_s)
    rate_mbps = np.gradient(sent * FRAME_BYTES * 8 / 1e6, now_s)
    lost_s = p.time_s[mine & ~np.isfinite(p.departure_s)]
    lost = np.searchsorted(lost_s, now_s - rtt_ms / 1e3).astype(float)
    flight = rate_mbps * srtt_ms * 1e3 / 8
    quic = spec.flows[i].stack != "tcp"
    backing_off = np.diff(lost, prepend=0) > 0
    return {
        "time_s": now_s,
        "flow": np.full(len(now_s), i, "uint8"),
        "state": np.where(backing_off, 2, np.where(now_s < 1, 0, 1)).astype("int8"),
        "cwnd_bytes": 1.1 * flight + 10 * FRAME_BYTES,
        "bytes_in_flight": flight,
        "ssthresh_bytes": np.where(lost > 0, 0.7 * flight.max(), np.nan),
        "srtt_ms": srtt_ms,
        "latest_rtt_ms": srtt_ms,
        "min_rtt_ms": np.minimum.accumulate(srtt_ms),
        "pacing_rate_mbps": 1.2 * rate_mbps,
        "delivery_rate_mbps": rate_mbps,
        "lost_packets": lost,
        "spurious_losses": np.zeros(len(now_s)) if quic else np.full(len(now_s), np.nan),
        "retransmits": lost,
    }


def _add_flows(ds: xr.Dataset, p: _Packets, spec: Experiment) -> None:
    n = len(spec.flows)
    out = np.isfinite(p.departure_s)
    received = np.bincount(
        p.flow[out], weights=p.size_bytes[out].astype(float) - HEADER_BYTES, minlength=n
    )
    _put(ds, "start_s", ("flow",), np.zeros(n), "s")
    _put(ds, "stop_s", ("flow",), np.full(n, spec.duration_s), "s")
    _put(ds, "base_rtt_ms", ("flow",), np.full(n, spec.bottleneck.rtt_ms), "ms")
    _put(ds, "receiver_bytes", ("flow",), received, "B")


def _attributes(spec: Experiment, bin_s: float) -> dict[str, object]:
    return {
        "format_version": 2,
        "spec": spec.to_json(),
        "spec_hash": spec.hash,
        "hash": spec.hash,
        "qbkit_version": "0.1.0",
        "kernel_version": "synthetic",
        "stack_versions": json.dumps({f.stack: "synthetic" for f in spec.flows}),
        "engine": "synthetic",
        "seed": spec.seed,
        "bin_s": bin_s,
        "duration_s": spec.duration_s,
        "rate_mbps": spec.bottleneck.rate_mbps,
        "rtt_ms": spec.bottleneck.rtt_ms,
        "queue_bytes": spec.bottleneck.queue_bytes,
        "warnings": "[]",
        "max_frame_bytes": FRAME_BYTES,
        "capture_drops": 0,
    }
