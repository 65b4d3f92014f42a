"""When each flow of a run ended, and whether it stopped delivering before that."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from qbkit.spec import Experiment
from qbkit.traces.arrays import BoolArray, FloatArray, as_slice, pieces
from qbkit.traces.run.attributes import changes_rate
from qbkit.traces.run.early_end import EarlyEnd
from qbkit.traces.run.match import NEVER
from qbkit.traces.run.packets import FlowPackets

STILL_S, STILL_RTTS = 1.0, 10.0
"""A flow stalled if it delivered nothing for longer than both before its end."""
LARGEST_ACK_BYTES = 100
"""Smaller packets of a sender carry no data: they acknowledge, or end the connection."""
FINISHES = "only_detect"
"""An option of a controller that stops sending on purpose: it says so with its verdict."""


def arrived_bytes(packets: FlowPackets, reported: FloatArray) -> FloatArray:
    """(flow,) bytes that receivers report; of those that report none, frame bytes that left."""
    delivered = np.zeros(len(reported))
    for piece in pieces(len(packets.data)):
        left = packets.departure_ns[piece] != NEVER
        flow, size_bytes = packets.data_flow[piece], packets.data.frame_bytes[piece]
        delivered += np.bincount(flow[left], size_bytes[left], minlength=len(reported))
    return np.where(np.isfinite(reported), reported, delivered)


def parts_in_time(packets: FlowPackets, flows: int, end_ns: int) -> FloatArray:
    """(flow,) part of the bytes in packets with data that had left the queue by a time."""
    sums = np.zeros((2, flows))
    for piece in pieces(len(packets.data)):
        size_bytes, departure_ns = packets.data.frame_bytes[piece], packets.departure_ns[piece]
        left = (departure_ns != NEVER) & (size_bytes > LARGEST_ACK_BYTES)
        for row, which in zip(sums, (left, left & (departure_ns <= end_ns)), strict=True):
            row += np.bincount(packets.data_flow[piece][which], size_bytes[which], minlength=flows)
    whole, in_time = sums
    return np.divide(in_time, whole, out=np.ones(flows), where=whole > 0)


def stop_times_s(
    experiment: Experiment,
    packets: FlowPackets,
    t0_ns: int,
    arrived: FloatArray,
    ends: Sequence[EarlyEnd | None],
) -> FloatArray:
    """(flow,) when each flow ended.

    A transfer that is complete ended with its last packet. Any other flow ended when it was to
    stop, or when its connection ended.
    """
    stops = []
    for i, flow in enumerate(experiment.flows):
        stop_s = flow.stop_s if flow.stop_s is not None else experiment.duration_s
        if flow.total_bytes is not None and arrived[i] >= flow.total_bytes:
            last_ns = int(packets.data.time_ns[packets.data_flow == i][-1])
            stop_s = min(stop_s, (last_ns - t0_ns) / 1e9)
        end = ends[i]
        stops.append(min(stop_s, end.ended_s) if end else stop_s)
    return np.array(stops)


def ends_of_flows(
    ends: Sequence[EarlyEnd | None], stop_times_s: FloatArray
) -> list[EarlyEnd | None]:
    """The ends of connections that ended their flow: that of a complete transfer did not."""
    both = zip(ends, stop_times_s, strict=True)
    return [end if end and end.ended_s <= stop_s else None for end, stop_s in both]


def is_complete(run: xr.Dataset, index: int, size_bytes: int) -> bool:
    """Whether a flow of a run delivered all of its bytes, which ends it early or on time."""
    return _arrived_bytes(run, index) >= size_bytes


def arrived_in_time(ds: xr.Dataset) -> BoolArray:
    """Which packets arrived; on a link whose rate changes, only those that did so within the run.

    A link that stands still at the end holds the packets of its queue for a time that says nothing
    of the run. On any other link they arrive within a queue of the end, and count.
    """
    departure_s = ds["packet_departure_s"].values
    arrived: BoolArray = np.isfinite(departure_s)
    if changes_rate(ds):
        arrived &= departure_s < float(ds.attrs["duration_s"])
    return arrived


def left_queue_s(ds: xr.Dataset) -> FloatArray:
    """When each packet left its last queue (s), or NaN; the path behind that may hold it longer."""
    left_s: FloatArray = ds.get("packet_left_s", ds["packet_departure_s"]).values
    return left_s


def end_warnings(run: xr.Dataset, experiment: Experiment) -> list[str]:
    """A sentence for each transfer that is not complete, and for each flow that stalled."""
    found = []
    for i, (flow, label) in enumerate(zip(experiment.flows, experiment.labels, strict=True)):
        size_bytes = flow.total_bytes
        if size_bytes is not None and not is_complete(run, i, size_bytes):
            arrived = _of_megabytes(_arrived_bytes(run, i), size_bytes)
            found.append(f"{label} delivered {arrived}")
        pauses = flow.app is not None or flow.options.get(FINISHES)
        if not pauses and (since_s := _still_since_s(run, i, experiment.duration_s)) is not None:
            stop_s = float(run["stop_s"].values[i])
            found.append(
                f"{label} delivered nothing from {since_s:.1f} s to its end at {stop_s:.4g} s"
            )
    return found


def _still_since_s(run: xr.Dataset, index: int, end_s: float) -> float | None:
    """When a flow that stalled delivered its last packet; None if it did not stall.

    What an outage holds beyond ``end_s``, the end of the experiment, was not delivered.
    """
    mine = as_slice(run["packet_flow"].values == index)
    arrival_s, left_s = run["packet_time_s"].values[mine], run["packet_departure_s"].values[mine]
    left = left_s < end_s
    queued_s = float((left_s - arrival_s).mean(where=left)) if left.any() else 0.0
    start_s = float(run["start_s"].values[index])
    last_s = float(left_s.max(where=left, initial=-np.inf)) if left.any() else start_s
    rtt_s = float(run["base_rtt_ms"].values[index]) / 1e3 + queued_s
    still_s = float(run["stop_s"].values[index]) - last_s
    return last_s if still_s > max(STILL_S, STILL_RTTS * rtt_s) else None


def _arrived_bytes(run: xr.Dataset, index: int) -> float:
    """Bytes that the receiver of a flow reports; else frame bytes that left the queue."""
    reported = float(run["receiver_bytes"].values[index])
    if np.isfinite(reported):
        return reported
    mine = (run["packet_flow"].values == index) & np.isfinite(run["packet_departure_s"].values)
    return float(run["packet_size_bytes"].values[mine].astype(np.float64).sum())


def _of_megabytes(part: float, whole: float) -> str:
    """Part and whole in MB or, of less than 10 MB, in kB; the part is rounded down."""
    unit, name = (1e6, "MB") if whole >= 1e7 else (1e3, "kB")
    return f"{int(part / unit)} of {whole / unit:.6g} {name}"
