"""Binned series of flows for the timeline, averaged down to what a screen can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr

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


def largest(values: Sequence[object]) -> float:
    """The largest of the finite numbers in a column; 0 without any."""
    return max((v for v in values if isinstance(v, float) and math.isfinite(v)), default=0.0)


def _averaged(s: Series, factor: int, also: Sequence[str]) -> dict[str, FloatArray]:
    """Means over ``factor`` bins; delays are weighted by throughput."""
    bin_s = float(s.ds.attrs["bin_s"])
    mbps = s.ds["throughput_mbps"].values[s.index].astype(float)
    delay_ms = s.ds["queue_delay_ms"].values[s.index].astype(float)
    weight = np.where(np.isfinite(delay_ms), np.nan_to_num(mbps), 0.0)
    starts = np.arange(0, len(mbps), factor, dtype=np.intp)
    weights = np.add.reduceat(weight, starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        waited_ms = np.add.reduceat(weight * np.nan_to_num(delay_ms), starts) / weights
    start_s = s.ds["time"].values[starts]
    end_s = np.append(start_s[1:], s.ds["time"].values[-1] + bin_s)
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


def _mean(values: FloatArray, starts: npt.NDArray[np.intp]) -> FloatArray:
    seen = np.isfinite(values)
    total = np.add.reduceat(np.where(seen, values, 0.0), starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / np.add.reduceat(seen.astype(float), starts)
