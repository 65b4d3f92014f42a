"""Lookup of the flows of a run: labels, directions, active times, packets, delays and bytes."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from qbkit.arguments import whole
from qbkit.errors import MetricError
from qbkit.traces.arrays import BoolArray, FloatArray
from qbkit.traces.run.attributes import delay_changes_ms, require_run, require_whole
from qbkit.traces.run.ends import arrived_in_time, left_queue_s
from qbkit.traces.run.journey import Fate

SKIPPED_PART = 0.2
"""Fraction of a flow's time that is skipped at its start, for slow start is no steady state."""


def flow_labels(ds: xr.Dataset) -> list[str]:
    """Labels of the run's flows, in order."""
    require_run(ds)
    return [str(v) for v in ds["label"].values]


def flow_directions(ds: xr.Dataset) -> list[str]:
    """Direction of each flow's data: "forward" or "reverse"."""
    if "direction" not in ds:
        return ["forward"] * ds.sizes["flow"]
    return [str(v) for v in ds["direction"].values]


def flow_index(ds: xr.Dataset, flow: str | int) -> int:
    """Index of a flow given by its label or index; MetricError lists the flows of the run."""
    labels = flow_labels(ds)
    if isinstance(flow, str) and flow in labels:
        return labels.index(flow)
    if not isinstance(flow, str) and 0 <= (index := whole(flow, "flow")) < len(labels):
        return index
    known = ", ".join(f"{i} {label!r}" for i, label in enumerate(labels)) or "none"
    raise MetricError(f"the run has no flow {flow!r}; its flows are: {known}", refused=True)


def flow_and_label(ds: xr.Dataset, flow: str | int) -> tuple[int, str]:
    """Index and label of a flow given by either, as `flow_index`."""
    index = flow_index(ds, flow)
    return index, flow_labels(ds)[index]


def active_span_s(ds: xr.Dataset, index: int) -> tuple[float, float]:
    """When the flow of a whole run started and stopped sending, in seconds of the experiment.

    An unknown start (NaN, or no such variable) counts as 0, an unknown stop as the end. A web load
    lasts as long as its client says (`load_span_s`). Raises TraceError where the time or the
    packets of the run were cut: whoever asks for the span divides totals by it.
    """
    require_whole(ds)
    return span_s(ds, index)


def last_sample(ds: xr.Dataset, name: str, index: int) -> float:
    """The last value of what a flow's stack reports by that name; NaN where it reports none."""
    if f"sample_{name}" not in ds:
        return math.nan
    values = ds[f"sample_{name}"].values[ds["sample_flow"].values == index]
    known = values[~np.isnan(values)]
    return float(known[-1]) if len(known) else math.nan


def span_s(ds: xr.Dataset, index: int) -> tuple[float, float]:
    """`active_span_s` of a run of which a part of the time may have been chosen, for series."""
    if (load := load_span_s(ds)) is not None:
        return load
    end_s = float(ds.attrs["duration_s"])
    start_s = float(ds["start_s"].values[index]) if "start_s" in ds else math.nan
    stop_s = float(ds["stop_s"].values[index]) if "stop_s" in ds else math.nan
    start_s = start_s if math.isfinite(start_s) else 0.0
    return start_s, min(stop_s, end_s) if math.isfinite(stop_s) else end_s


def load_span_s(ds: xr.Dataset) -> tuple[float, float] | None:
    """From the client's first packet to the last byte of a web load; None for any other run.

    Also None for a load that ended before it was complete. Its run goes on for up to a bin.
    """
    if "first_packet_s" not in ds.attrs or "time_to_last_byte_s" not in ds:
        return None
    begin_s, took_s = float(ds.attrs["first_packet_s"]), float(ds["time_to_last_byte_s"])
    return (begin_s, begin_s + took_s) if math.isfinite(took_s) else None


def require_rtt(rtt_ms: float, label: str) -> float:
    """The base RTT in ms; MetricError if captures were imported without it."""
    if not rtt_ms > 0:
        raise MetricError(
            f"{label}: the base RTT of its path is unknown; give it to read_pcaps as rtt_ms"
        )
    return rtt_ms


def has_packets(ds: xr.Dataset) -> bool:
    """Whether the dataset has its packet table."""
    return "packet_departure_s" in ds


def known_fate(ds: xr.Dataset) -> BoolArray:
    """Which packets have a fate known from the captures; all packets in runs of format 1."""
    if "packet_fate" not in ds:
        return np.ones(ds.sizes["packet"], bool)
    known: BoolArray = ds["packet_fate"].values != Fate.UNKNOWN
    return known


def delivered_packets(ds: xr.Dataset, index: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Data packets of the flow that arrived: departure to it (s), size (B), queueing delay (ms)."""
    mine = (ds["packet_flow"].values == index) & arrived_in_time(ds)
    arrived_s = ds["packet_departure_s"].values[mine].astype(np.float64)
    size_bytes = ds["packet_size_bytes"].values[mine].astype(np.float64)
    return arrived_s, size_bytes, (left_queue_s(ds)[mine] - ds["packet_time_s"].values[mine]) * 1e3


def path_delays_ms(ds: xr.Dataset, index: int, arrived_s: FloatArray) -> FloatArray:
    """RTT (ms) that the path adds to the flow's base RTT, for each packet of `delivered_packets`.

    Where the delay changes, it is that of the time at which the packet arrived; where the path
    holds or delays packets behind the last queue, what the packet waited there.
    """
    added = np.zeros(len(arrived_s))
    if "packet_left_s" in ds:
        mine = (ds["packet_flow"].values == index) & arrived_in_time(ds)
        held_s = ds["packet_departure_s"].values[mine] - ds["packet_left_s"].values[mine]
        added += held_s * 1e3
    return added + delay_changes_ms(ds, arrived_s)


def steady_span_s(ds: xr.Dataset, index: int, skip_start_s: float | None) -> tuple[float, float]:
    """`active_span_s` without ``skip_start_s`` at its start, by default `SKIPPED_PART` of it.

    Raises MetricError for a time that is negative or no number.
    """
    start_s, stop_s = active_span_s(ds, index)
    if skip_start_s is None:
        skip_start_s = SKIPPED_PART * (stop_s - start_s)
    if not 0 <= skip_start_s < math.inf:
        raise MetricError(f"skip_start_s is {skip_start_s:g}; give 0 or more seconds")
    return start_s + skip_start_s, stop_s


def ack_delays_ms(ds: xr.Dataset, index: int, left_s: FloatArray) -> FloatArray:
    """Queueing delay (ms) of the first ACK that can report each packet.

    ``left_s`` is when the packets of the flow left the queue. The ACK of a packet is the first
    delivered one that reached its queue at least half a base RTT later; NaN if there is none.
    Without reverse traffic, ACKs meet no queue and the delay is 0.
    """
    if "ack_departure_s" not in ds:
        return np.zeros(len(left_s))
    mine = (ds["ack_flow"].values == index) & np.isfinite(ds["ack_departure_s"].values)
    at_s = ds["ack_time_s"].values[mine]
    waited_ms = np.append((ds["ack_departure_s"].values[mine] - at_s) * 1e3, np.nan)
    half_s = float(ds["base_rtt_ms"].values[index]) / 2e3
    found: FloatArray = waited_ms[np.searchsorted(at_s, left_s + half_s)]
    return found


def delivered_bytes(ds: xr.Dataset, index: int, start_s: float, stop_s: float) -> float:
    """Frame bytes of the flow that left the queue in ``[start_s, stop_s)``.

    Without a packet table, the bins whose middle lies in the span count.
    """
    if has_packets(ds):
        left_s, size_bytes, _ = delivered_packets(ds, index)
        return float(size_bytes[(left_s >= start_s) & (left_s < stop_s)].sum())
    bin_s = float(ds.attrs["bin_s"])
    middle_s = ds["time"].values + bin_s / 2
    chosen = (middle_s >= start_s) & (middle_s < stop_s)
    return float(np.nansum(ds["throughput_mbps"].values[index][chosen]) * bin_s * 1e6 / 8)
