"""QUICbench's operating points: what its released code computes, not what the paper describes.

Source: NUS-SNL/QUICbench (MIT), parse/parse_pcap.py, visualize/plot_perf_env.py, constants.py;
this is an independent, vectorised implementation. It differs from IMC'22 §2.1 and from
`qbkit.metrics.envelopes.points` as follows:

- The window moves instead of being consecutive. Each packet that finds the window's oldest packet
  more than 10 RTTs old gives a row. The window then drops *one* packet, so it stretches while
  packets get rarer and shrinks back by one packet per row.
- The throughput of a row counts the bytes of both the new packet and the oldest one.
- The first window of the delay opens at the capture's first frame, that of the throughput at the
  flow's first packet.
- A row is sampled when its time has reached an epoch, which then advances by 10 RTTs. After a gap,
  the epoch catches up one row at a time.
- Each sampled delay is paired with the first throughput row that is not earlier.
- Nothing is cut at the start, and 5 % of the flow's duration at the end (TRUNCATE_TRACES_BY).
- Values are rounded to 5 decimals.

We omit one step: QUICbench subtracts half an RTT from the delays, because its captures are on both
sides of netem; qbkit's are on both sides of the queue alone. QUICbench crashes for a flow that
starts later than one window into the capture, and for a delay row after the last throughput row.
Here, the first row is skipped, and the last throughput is used.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from qbkit.errors import MetricError, SpecError
from qbkit.metrics.envelopes.points import OperatingPoints, require_enough
from qbkit.metrics.flows import lookup
from qbkit.spec.experiment import usual_start_window_s
from qbkit.traces.arrays import FloatArray, IntArray

TRUNCATE_TRACES_BY = 0.95
PREMATURE_FRACTION = 0.9
STEP_RTT_MULT = 10
DECIMALS = 5


def require_long_trace(duration_s: float, rtt_ms: float) -> None:
    """Raise SpecError for flows that QUICbench would call ended early, however late they start."""
    interval_s = rtt_ms / 1e3 * STEP_RTT_MULT
    needed_s = _needed_s(interval_s)
    if duration_s - usual_start_window_s(rtt_ms, duration_s) < needed_s:
        raise SpecError(
            f"duration_s = {duration_s:g}: QUICbench takes flows of less than {needed_s:.3g} s for "
            f"ended early; give at least {needed_s + interval_s:.3g} s for RTTs of {rtt_ms:g} ms"
        )


def quicbench_points(ds: xr.Dataset, flow: str | int = 0) -> OperatingPoints:
    """Operating points of a flow as QUICbench samples them; needs the packet table.

    Raises MetricError for an unknown flow, a run without packets, a flow that ended before 85.5 %
    of its time (which QUICbench refuses too), and fewer than 3 points.
    """
    index, label = lookup.flow_and_label(ds, flow)
    if not lookup.has_packets(ds):
        raise MetricError(
            "the definition 'quicbench' needs the packet table, which this run lacks; keep the "
            "packets or choose imc22"
        )
    left_s, size_bytes, delay_ms = lookup.delivered_packets(ds, index)
    order = np.argsort(left_s, kind="stable")
    first_s = _first_frame_s(ds)
    interval_s = lookup.require_rtt(float(ds.attrs["rtt_ms"]), label) / 1e3 * STEP_RTT_MULT
    start_s, stop_s = lookup.active_span_s(ds, index)
    try:
        time_s, waited_ms, mbps = moving_window_points(
            np.round(left_s[order] - first_s, 9),
            size_bytes[order],
            delay_ms[order],
            interval_s=interval_s,
            flow_duration_s=stop_s - start_s,
        )
    except MetricError as error:
        raise MetricError(f"{label}: {error}") from None
    return OperatingPoints(
        delay_ms=waited_ms,
        throughput_mbps=mbps,
        time_s=time_s + first_s,
        interval_s=interval_s,
        skip_start_s=0.0,
        skip_end_s=(1 - TRUNCATE_TRACES_BY) * (stop_s - start_s),
        label=label,
    )


def _needed_s(interval_s: float) -> float:
    """How long a flow must be: its trace begins a window after it."""
    return interval_s / (1 - PREMATURE_FRACTION * TRUNCATE_TRACES_BY)


def moving_window_points(
    time_s: FloatArray,
    size_bytes: FloatArray,
    delay_ms: FloatArray,
    *,
    interval_s: float,
    flow_duration_s: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sampled (time_s, delay_ms, throughput_mbps) of packets of shape (n,), ordered by time.

    ``time_s`` counts from the capture's first frame. Raises MetricError for a flow that ended
    early and for fewer than 3 points.
    """
    end_s = flow_duration_s * TRUNCATE_TRACES_BY
    rate_row, rate_from = _rows(time_s, time_s, interval_s)
    lasted_s = time_s[rate_row[-1]] - time_s[rate_row[0]] if len(rate_row) else 0.0
    if lasted_s < flow_duration_s * PREMATURE_FRACTION * TRUNCATE_TRACES_BY:
        needed_s = _needed_s(interval_s)
        longer = f"flow of {needed_s:.3g} s" if flow_duration_s < needed_s else "longer flow"
        raise MetricError(
            f"the flow ended too early for QUICbench: its trace lasts {lasted_s:g} s of "
            f"{flow_duration_s:g} s; choose another definition or a {longer}"
        )
    in_time = time_s[rate_row] < end_s
    rate_row, rate_from = rate_row[in_time], rate_from[in_time]
    packets = int(np.searchsorted(time_s, end_s, side="left"))
    opened_s = time_s[:packets].copy()
    opened_s[:1] = 0.0
    delay_row, delay_from = _rows(time_s[:packets], opened_s, interval_s)
    taken = _sampled(time_s[delay_row], interval_s)
    delay_row, delay_from = delay_row[taken], delay_from[taken]
    require_enough(len(delay_row), "the flow", "run longer")
    joined = np.searchsorted(time_s[rate_row], time_s[delay_row], side="left")
    joined = np.minimum(joined, len(rate_row) - 1)
    mbps = _rates_mbps(time_s, size_bytes, rate_row[joined], rate_from[joined])
    return time_s[delay_row], _means_ms(delay_ms, delay_row, delay_from), mbps


def _first_frame_s(ds: xr.Dataset) -> float:
    """Time of the first frame of any flow after the queue, which is QUICbench's time zero."""
    first_s = float(np.nanmin(ds["packet_departure_s"].values))
    acks_s = ds["ack_time_s"].values if "ack_time_s" in ds else np.zeros(0)
    return min(first_s, float(acks_s.min())) if len(acks_s) else first_s


def _follower(target: IntArray) -> IntArray:
    """The p with p[0] = 0 and p[i+1] = min(p[i] + 1, target[i]), for a non-decreasing target.

    Unrolled: p[i+1] = i + min(1, min over j ≤ i of (target[j] - j)), a running minimum.
    """
    steps = np.arange(len(target))
    position = np.zeros(len(target) + 1, dtype=np.int64)
    position[1:] = steps + np.minimum(1, np.minimum.accumulate(target - steps))
    return position


def _rows(time_s: FloatArray, opened_s: FloatArray, window_s: float) -> tuple[IntArray, IntArray]:
    """Packets that give a row, and the oldest packet in the window of each.

    ``opened_s[q]`` is when a window with oldest packet q opens; q leaves the window after the first
    packet that finds it open for more than ``window_s``.
    """
    packets = np.arange(len(time_s))
    if not len(packets):
        return packets, packets
    target = np.searchsorted(opened_s, time_s - window_s, side="left")
    # QUICbench compares differences, which round differently; step to the exact edge.
    target = np.minimum(target, packets)
    while (behind := (time_s - opened_s[target] > window_s) & (target < packets)).any():
        target = target + behind
    while (
        ahead := (target > 0) & ~(time_s - opened_s[np.maximum(target - 1, 0)] > window_s)
    ).any():
        target = target - ahead
    oldest = _follower(target)[:-1]
    row = oldest < target
    return packets[row], oldest[row]


def _sampled(row_s: FloatArray, interval_s: float) -> IntArray:
    """Rows that are sampled if each sampled row advances the epoch by one interval."""
    if not len(row_s):
        return np.zeros(0, dtype=np.int64)
    epochs = math.ceil((row_s[-1] - row_s[0]) / interval_s) + 2
    epoch_s = np.cumsum(np.concatenate([row_s[:1], np.full(epochs, interval_s)]))
    due = np.searchsorted(epoch_s, row_s, side="right")
    return np.flatnonzero(_follower(due)[:-1] < due)


def _rates_mbps(
    time_s: FloatArray, size_bytes: FloatArray, row: IntArray, oldest: IntArray
) -> FloatArray:
    total = np.concatenate([[0.0], np.cumsum(size_bytes)])
    rate = (total[row + 1] - total[oldest]) / (time_s[row] - time_s[oldest])
    return np.array([round(v, DECIMALS) for v in (rate * 8 / 1000000).tolist()])


def _means_ms(delay_ms: FloatArray, row: IntArray, oldest: IntArray) -> FloatArray:
    # In whole units of the last decimal, so that the running sum is exact.
    units = np.rint(delay_ms * 10**DECIMALS).astype(np.int64)
    total = np.concatenate([[0], np.cumsum(units)])
    mean = (total[row + 1] - total[oldest]) / (row + 1 - oldest) / 10**DECIMALS
    return np.array([round(v, DECIMALS) for v in mean.tolist()])
