"""Operating points: throughput against queueing delay, sampled every 10 base RTTs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr

from qbkit.errors import MetricError, SpecError
from qbkit.metrics.flows import lookup
from qbkit.spec.experiment import usual_start_window_s
from qbkit.traces.arrays import BoolArray, FloatArray

WINDOW_RTTS = 10.0
"""Base RTTs in a window (IMC'22 §2.1)."""
MIN_POINTS = 3
"""A hull needs a triangle."""
MIN_SKIP_START_S, SKIP_START_FRACTION = 5.0, 0.1


@dataclass(frozen=True, eq=False)
class OperatingPoints:
    """Operating points of one flow in one run (one trial); all arrays have shape (n,)."""

    delay_ms: FloatArray
    """Queueing delay of each point."""
    throughput_mbps: FloatArray
    """Throughput of each point, in Mbit/s of frame bytes after the queue."""
    time_s: FloatArray
    """Time of each point in the experiment (start of its window); NaN if unknown."""
    interval_s: float = math.nan
    """Time between points; NaN if unknown."""
    skip_start_s: float = math.nan
    """Time skipped at the flow's start; NaN if unknown."""
    skip_end_s: float = math.nan
    """Time skipped at the flow's end; NaN if unknown."""
    label: str = ""
    """Label of the flow."""

    def __len__(self) -> int:
        return len(self.delay_ms)

    @property
    def xy(self) -> FloatArray:
        """The points as (n, 2): [delay_ms, throughput_mbps]."""
        return np.column_stack([self.delay_ms, self.throughput_mbps])

    @classmethod
    def from_array(cls, points: npt.ArrayLike) -> OperatingPoints:
        """Points from an array (n, 2) of [delay_ms, throughput_mbps]; MetricError if n < 3."""
        xy = np.asarray(points, dtype=np.float64)
        if xy.ndim != 2 or xy.shape[1] != 2:
            raise MetricError(
                f"operating points must have the shape (n, 2), columns delay_ms and "
                f"throughput_mbps, not {xy.shape}"
            )
        if not np.isfinite(xy).all():
            raise MetricError("operating points must be finite; drop the rows with NaN")
        require_enough(len(xy), "the array", "give more points")
        return cls(xy[:, 0].copy(), xy[:, 1].copy(), np.full(len(xy), np.nan))


def operating_points(
    ds: xr.Dataset,
    flow: str | int = 0,
    *,
    interval_rtts: float = WINDOW_RTTS,
    skip_start_s: float | None = None,
    skip_end_s: float | None = None,
) -> OperatingPoints:
    """Operating points of a flow (IMC'22 §2.1: the time series sampled every 10 RTTs).

    The flow's active time, without the skipped start and end, is divided into consecutive windows
    of ``interval_rtts`` base RTTs. A window's throughput is the frame bytes that left the queue in
    it divided by its length; its delay is the mean queueing delay of the packets that left in it.
    Both come from the packet table, or else from the binned series (a bin belongs to the window
    that contains its middle; delays are weighted by throughput). A window in which nothing left has
    no delay and gives no point.

    By default ``skip_start_s`` is the larger of 5 s and 10 % of the active time, because slow start
    and the first convergence are not operating points (5 s are 100 RTTs at 50 ms; the time grows
    with the run because long runs are made for competition that converges slowly). By default
    ``skip_end_s`` is one window, in which flows close and queues drain. The paper does not report
    skipping a start.

    Raises MetricError for an unknown flow, impossible parameters, or fewer than 3 points.
    """
    index, label = lookup.flow_and_label(ds, flow)
    rtt_ms = lookup.require_rtt(float(ds["base_rtt_ms"].values[index]), label)
    interval_s = interval_rtts * rtt_ms / 1e3
    if not interval_s > 0:
        raise MetricError(
            f"windows of {interval_rtts:g} RTTs of {rtt_ms:g} ms are impossible; both must be "
            "above 0"
        )
    start_s, stop_s = lookup.active_span_s(ds, index)
    if skip_end_s is None:
        skip_end_s = interval_s
    needed_s = _needed_s(interval_s, skip_start_s, skip_end_s)
    if skip_start_s is None:
        skip_start_s = max(MIN_SKIP_START_S, SKIP_START_FRACTION * (stop_s - start_s))
    edges_s = _window_edges_s(start_s, stop_s, skip_start_s, skip_end_s, interval_s)
    sample = _from_packets if lookup.has_packets(ds) else _from_bins
    throughput_mbps, delay_ms = sample(ds, index, edges_s, interval_s)
    seen = np.isfinite(delay_ms)
    require_enough(
        int(seen.sum()),
        f"{label} from {start_s:g} s to {stop_s:g} s, less {skip_start_s:g} s at the start and "
        f"{skip_end_s:g} s at the end, in windows of {interval_s:g} s,",
        _advice(seen, needed_s),
    )
    return OperatingPoints(
        delay_ms=delay_ms[seen],
        throughput_mbps=throughput_mbps[seen],
        time_s=edges_s[:-1][seen],
        interval_s=interval_s,
        skip_start_s=float(skip_start_s),
        skip_end_s=float(skip_end_s),
        label=label,
    )


def require_long_enough(duration_s: float, rtt_ms: float) -> None:
    """Raise SpecError for flows too short for a hull, wherever in 10 RTTs they start."""
    interval_s = WINDOW_RTTS * rtt_ms / 1e3
    needed_s = _needed_s(interval_s, None, interval_s)
    if duration_s - usual_start_window_s(rtt_ms, duration_s) < needed_s:
        raise SpecError(
            f"duration_s = {duration_s:g}: a hull needs {MIN_POINTS} windows of 10 RTTs after the "
            f"start of a flow and before its end; give at least {needed_s + interval_s:g} s for "
            f"RTTs of {rtt_ms:g} ms"
        )


def _needed_s(interval_s: float, skip_start_s: float | None, skip_end_s: float) -> float:
    """How long a flow must be for the windows of a hull; None is the default of the start."""
    used_s = MIN_POINTS * interval_s + skip_end_s
    if skip_start_s is not None:
        return skip_start_s + used_s
    return max(MIN_SKIP_START_S + used_s, used_s / (1 - SKIP_START_FRACTION))


def _window_edges_s(
    start_s: float, stop_s: float, skip_start_s: float, skip_end_s: float, interval_s: float
) -> FloatArray:
    """Edges of the whole windows between the skipped parts; one edge without a window."""
    if skip_start_s < 0 or skip_end_s < 0:
        raise MetricError("skip_start_s and skip_end_s must be 0 or more")
    span_s = stop_s - start_s - skip_start_s - skip_end_s
    # 1e-9 of a window allows for rounding in a span of whole windows.
    windows = max(0, math.floor(span_s / interval_s + 1e-9))
    return start_s + skip_start_s + np.arange(windows + 1, dtype=np.float64) * interval_s


def _advice(seen: BoolArray, needed_s: float) -> str:
    """What to do about too few points; ``seen`` are the windows in which something left."""
    if len(seen) < MIN_POINTS:
        return f"the flow must last {needed_s:g} s or more"
    return f"nothing left the queue in {(~seen).sum()} windows, so run longer"


def require_enough(points: int, what: str, advice: str) -> None:
    """Raise MetricError for fewer operating points than a hull needs."""
    if points < MIN_POINTS:
        raise MetricError(
            f"{what} gives {points} operating points, but a hull needs {MIN_POINTS}; {advice}"
        )


def _from_packets(
    ds: xr.Dataset, index: int, edges_s: FloatArray, interval_s: float
) -> tuple[FloatArray, FloatArray]:
    left_s, size_bytes, waited_ms = lookup.delivered_packets(ds, index)
    return _window_means(left_s, size_bytes, np.ones_like(left_s), waited_ms, edges_s, interval_s)


def _from_bins(
    ds: xr.Dataset, index: int, edges_s: FloatArray, interval_s: float
) -> tuple[FloatArray, FloatArray]:
    bin_s = float(ds.attrs["bin_s"])
    if interval_s < bin_s:
        raise MetricError(
            f"windows of {interval_s:g} s are shorter than the bins of {bin_s:g} s and the run "
            "has no packet table; keep the packets or lengthen interval_rtts"
        )
    middle_s = ds["time"].values + bin_s / 2
    mbps = np.nan_to_num(ds["throughput_mbps"].values[index])
    delay_ms = ds["queue_delay_ms"].values[index]
    weight = np.where(np.isfinite(delay_ms), mbps, 0.0)
    size_bytes = mbps * bin_s * 1e6 / 8
    # If bins do not tile the windows, a window takes the mean over the bins that it contains.
    held = np.histogram(middle_s, edges_s)[0] if len(edges_s) > 1 else np.zeros(0, dtype=int)
    throughput_mbps, mean_ms = _window_means(
        middle_s, size_bytes, weight, np.nan_to_num(delay_ms), edges_s, interval_s
    )
    return throughput_mbps * interval_s / np.maximum(held * bin_s, bin_s), mean_ms


def _window_means(
    time_s: FloatArray,
    size_bytes: FloatArray,
    weight: FloatArray,
    delay_ms: FloatArray,
    edges_s: FloatArray,
    interval_s: float,
) -> tuple[FloatArray, FloatArray]:
    """Throughput (Mbit/s) and weighted mean delay (ms) of each window; NaN delay when empty."""
    windows = len(edges_s) - 1
    window = np.searchsorted(edges_s, time_s, side="right") - 1
    inside = (window >= 0) & (window < windows)
    window = window[inside]
    total_bytes = np.bincount(window, size_bytes[inside], windows)
    weights = np.bincount(window, weight[inside], windows)
    waited = np.bincount(window, (weight * delay_ms)[inside], windows)
    with np.errstate(invalid="ignore", divide="ignore"):
        return total_bytes * 8 / 1e6 / interval_s, waited / weights
