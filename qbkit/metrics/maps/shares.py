"""Throughput and shares of flows in the cube of a sweep: of whole trials, or of a part of them."""

from __future__ import annotations

import json
import math

import xarray as xr

from qbkit.errors import MetricError

Span = tuple[float, float]
"""Begin and end of a part of a trial in seconds; the end does not belong to it."""
STEP_S = 1.0
"""Bin width of the throughput that a sweep keeps."""


def settle_s(cube: xr.Dataset) -> float:
    """The seconds at the start of each trial in which its flows settle; see `qbkit.Sweep`."""
    sweep = json.loads(cube.attrs.get("sweep", "{}"))
    return float(sweep.get("settle_s", 0.0))


def settled_throughput_mbps(cube: xr.Dataset) -> xr.DataArray:
    """Mean throughput of each flow (Mbit/s) after the time in which flows settle (`settle_s`).

    It is over the steps of the throughput series that begin after it; without such a time, over the
    whole trial. Raises MetricError if no step is left.
    """
    start_s = settle_s(cube)
    if start_s == 0:
        return cube["throughput_mbps"]
    if not (cube["time"] >= start_s).any():
        raise MetricError(
            f"no trial is longer than the {start_s:g} s of settle_s; run longer, or give less"
        )
    return throughput_between_mbps(cube, start_s)


def throughput_between_mbps(
    cube: xr.Dataset, start_s: float, stop_s: float = math.inf
) -> xr.DataArray:
    """Mean throughput of each flow (Mbit/s) in a part of each trial.

    It is over the steps (1 s) of the throughput series that begin at ``start_s`` or later and
    before ``stop_s``. Raises MetricError if there is none, or for a ``stop_s`` after the end of all
    trials.
    """
    series = cube["series_throughput_mbps"]
    last_s = float(series["time"].values.max(initial=0))
    inside = (series["time"] >= start_s) & (series["time"] < stop_s)
    if not inside.any():
        raise MetricError(
            f"no trial has a step from {start_s:g} to {stop_s:g} s; its last one begins at "
            f"{last_s:g} s"
        )
    if math.isfinite(stop_s) and stop_s > last_s + STEP_S:
        raise MetricError(
            f"no trial lasts until {stop_s:g} s; the last one ends at {last_s + STEP_S:g} s, so "
            "give less, or leave the end out"
        )
    return series.isel(time=inside.values).mean("time", keep_attrs=True)


def shares(cube: xr.Dataset, between_s: Span | None = None) -> xr.DataArray:
    """The share of the throughput of all flows that each flow gets, by trial (0 to 1).

    Of the part ``between_s`` of each trial (`throughput_between_mbps`), or else of
    `settled_throughput_mbps`. NaN where there is no run.
    """
    if between_s is None:
        mbps = settled_throughput_mbps(cube)
    else:
        mbps = throughput_between_mbps(cube, *between_s)
    share = mbps / mbps.sum("flow", skipna=False)
    return share.assign_attrs(units="1", long_name="share of the throughput").rename("share")
