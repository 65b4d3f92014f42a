"""Binned series of flows for the timeline, averaged down to what a screen can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr

from qbkit.metrics.flows.lookup import span_s
from qbkit.plots.drawing.data import long_table
from qbkit.traces.arrays import FloatArray

MAX_ROWS = 6000
"""Most rows of one chart; a panel is about 500 pixels wide."""
MIN_BINS = 120
MAX_BINS = 600


@dataclass(frozen=True)
class Series:
    """One flow in one trial."""

    label: str
    ds: xr.Dataset
    index: int
    trial: str


def series_names(ds: xr.Dataset) -> list[str]:
    """The variables of a run that have a value for each flow and bin."""
    return [str(name) for name, v in ds.data_vars.items() if set(v.dims) == {"flow", "time"}]


def bins_per_row(series: Sequence[Series]) -> int:
    """Number of bins of the datasets that are averaged into one row of the chart."""
    wanted = min(MAX_BINS, max(MIN_BINS, MAX_ROWS // max(len(series), 1)))
    longest = max(s.ds.sizes["time"] for s in series)
    return max(1, -(-longest // wanted))


def rows_of(series: Sequence[Series], also: Sequence[str] = ()) -> dict[str, list[object]]:
    """Columns label, trial, time_s (middle), throughput_mbps, queue_delay_ms, cwnd_kb.

    ``also`` names further variables of the runs; NaN where a run does not have them.
    """
    factor = bins_per_row(series)
    columns = long_table(
        ({"label": s.label, "trial": s.trial}, _averaged(s, factor, also)) for s in series
    )
    if all(v != v for v in columns["cwnd_kb"]):  # NaN: no stack reports it.
        del columns["cwnd_kb"]
    return columns


def active_parts(series: Sequence[Series]) -> list[float]:
    """The part of the time of each row of `rows_of` in which its flow was active, in [0, 1]."""
    factor, parts = bins_per_row(series), []
    for s in series:
        _, from_s, to_s = _rows_s(s, factor)
        start_s, stop_s = span_s(s.ds, s.index)
        inside_s = np.minimum(to_s, stop_s) - np.maximum(from_s, start_s)
        parts += (np.maximum(inside_s, 0.0) / (to_s - from_s)).tolist()
    return parts


def largest(values: Sequence[object]) -> float:
    """The largest of the finite numbers in a column; 0 without any."""
    return max((v for v in values if isinstance(v, float) and math.isfinite(v)), default=0.0)


def _averaged(s: Series, factor: int, also: Sequence[str]) -> dict[str, FloatArray]:
    """Means over ``factor`` bins; delays are weighted by throughput."""
    mbps = s.ds["throughput_mbps"].values[s.index].astype(float)
    delay_ms = s.ds["queue_delay_ms"].values[s.index].astype(float)
    weight = np.where(np.isfinite(delay_ms), np.nan_to_num(mbps), 0.0)
    starts, start_s, end_s = _rows_s(s, factor)
    weights = np.add.reduceat(weight, starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        waited_ms = np.add.reduceat(weight * np.nan_to_num(delay_ms), starts) / weights
    unknown = np.full(len(mbps), np.nan)
    more = {
        name: s.ds[name].values[s.index].astype(float) if name in s.ds else unknown
        for name in ("cwnd_bytes", *also)
    }
    cwnd = more.pop("cwnd_bytes")
    return {
        "time_s": (start_s + end_s) / 2,
        "throughput_mbps": _mean(mbps, starts),
        "queue_delay_ms": waited_ms,
        "cwnd_kb": _mean(cwnd / 1e3, starts),
        **{name: _mean(values, starts) for name, values in more.items()},
    }


def _rows_s(s: Series, factor: int) -> tuple[npt.NDArray[np.intp], FloatArray, FloatArray]:
    """The first bin of each row, and when (s) the row begins and ends."""
    time_s = s.ds["time"].values
    starts = np.arange(0, len(time_s), factor, dtype=np.intp)
    from_s = time_s[starts]
    return starts, from_s, np.append(from_s[1:], time_s[-1:] + float(s.ds.attrs["bin_s"]))


def _mean(values: FloatArray, starts: npt.NDArray[np.intp]) -> FloatArray:
    seen = np.isfinite(values)
    total = np.add.reduceat(np.where(seen, values, 0.0), starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / np.add.reduceat(seen.astype(float), starts)
