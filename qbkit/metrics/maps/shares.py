"""Throughput and shares of flows in the cube of a sweep: of whole trials, or of a part of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import xarray as xr

from qbkit.errors import MetricError
from qbkit.spec.flow import parsed
from qbkit.spec.sweep import beside_implementation

Span = tuple[float, float]
"""Begin and end of a part of a trial in seconds; the end does not belong to it."""
STEP_S = 1.0
"""Bin width of the throughput that a sweep keeps."""


def sweep_of(cube: xr.Dataset) -> dict[str, Any]:
    """The sweep of a cube, as its JSON has it; empty for a cube that names none."""
    found: dict[str, Any] = json.loads(cube.attrs.get("sweep", "{}"))
    return found


def settle_s(cube: xr.Dataset) -> float:
    """The seconds at the start of each trial in which its flows settle; see `qbkit.Sweep`."""
    return float(sweep_of(cube).get("settle_s", 0.0))


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
    before ``stop_s``; NaN for a trial that ends earlier. Raises MetricError if there is none, or
    for a ``stop_s`` after the end of all trials.
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
    part = series.isel(time=inside.values)
    found = part.mean("time", keep_attrs=True)
    return found.where(part.notnull().all("time")) if math.isfinite(stop_s) else found


def shares(cube: xr.Dataset, between_s: Span | None = None) -> xr.DataArray:
    """The share of the throughput of all flows that each flow gets, by trial (0 to 1).

    Of the part ``between_s`` of each trial (`throughput_between_mbps`), or else of
    `settled_throughput_mbps`. NaN where there is no run. Raises MetricError where neither
    ``between_s`` nor the sweep's ``settle_s`` says which part, and flows start, stop or have sent
    everything at times of their own: a throughput of the whole trial is over a flow's own time.
    Also raises it where not all flows share one link.
    """
    _require_one_link(cube)
    if between_s is None:
        if settle_s(cube) == 0 and (field := _timed_by(cube)):
            raise MetricError(
                f"by {field}, the flows of this sweep do not all send at the same time, so a whole "
                "trial has no shares; give the sweep the settle_s from which on all of them send, "
                "or name the seconds, as in shares(cube, (20, 30))"
            )
        mbps = settled_throughput_mbps(cube)
    else:
        mbps = throughput_between_mbps(cube, *between_s)
    share = mbps / mbps.sum("flow", skipna=False)
    return share.assign_attrs(units="1", long_name="share of the throughput").rename("share")


def _require_one_link(cube: xr.Dataset) -> None:
    """Raise MetricError for flows in both directions, or on both links of a parking lot."""
    base, flows = sweep_of(cube).get("base", {}), _flows(cube)
    ways = {beside_implementation(flow).get("direction", "forward") for flow in flows}
    if len(ways) > 1:
        raise MetricError("flows of this sweep go in opposite directions, so they share no link")
    if base.get("topology") == "parking_lot" and len(flows) > 2:
        raise MetricError(
            "not all flows of a parking lot cross one link; choose flows of one, as in "
            "shares(cube.isel(flow=[0, 1]))"
        )


def _timed_by(cube: xr.Dataset) -> str:
    """A field by which the flows of a cube do not all send at the same time; "" without one."""
    swept = sweep_of(cube).get("sweep", {})
    times: dict[str, set[float]] = {"start_s": set(), "stop_s": set(), "bytes": set()}
    for index, flow in enumerate(_flows(cube)):
        place, own = f"flows.{index}", beside_implementation(flow)
        names = _values(cube, place, swept)
        texts = [parsed(text) if "?" in text else {} for text in names] or [{}]
        for name, found in times.items():
            values = _values(cube, f"{place}.{name}", swept)
            values = values or [text.get(name, own.get(name)) for text in texts]
            found |= {float(value or 0) for value in values}
    if any(times["bytes"]):
        times["bytes"].add(0.0)  # also where all have as many: each ends at a time of its own
    return next((name for name, found in times.items() if len(found) > 1), "")


def _values(cube: xr.Dataset, field: str, swept: Mapping[str, list[Any]]) -> list[Any]:
    """The values of a swept field in a cube, or a selection of it; none if it is not swept."""
    return cube[field].values.ravel().tolist() if field in cube.coords else swept.get(field, [])


def _flows(cube: xr.Dataset) -> list[str | dict[str, Any]]:
    """The flows of a sweep's base, or the first of them that a cube has."""
    found = sweep_of(cube).get("base", {}).get("flows", [])
    return list(found[: cube.sizes.get("flow", 0)])
