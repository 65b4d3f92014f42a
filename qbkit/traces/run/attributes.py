"""The attributes of a run, its experiment and its warnings; what is no run, and what is a part."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import xarray as xr

from qbkit.errors import SpecError, TraceError
from qbkit.json_words import in_words, object_of
from qbkit.spec import Experiment
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.series import Bins

DIMENSIONS = {
    "label": {"flow"},
    "start_s": {"flow"},
    "base_rtt_ms": {"flow"},
    "throughput_mbps": {"flow", "time"},
}
"""Variable of every run → the only dimensions that it may have."""
CUBE = (
    "this is the cube of a sweep, which has figures of its runs but no run: take a figure, such as "
    "cube.throughput_mbps, or open a run of the sweep's folder, "
    "qb.load_run('FOLDER/runs/NAME.nc') with the NAME that cube.run gives"
)
SHORTFALL = 0.99
"""A table of packets that has less than this part of them is cut: sums of bins are rounded."""


def run_experiment(ds: xr.Dataset) -> Experiment | None:
    """The experiment of a run; None for imported captures, which have none.

    Raises SpecError where it is damaged.
    """
    return Experiment.from_json(ds.attrs["spec"]) if spec_of(ds) else None


def changes_rate(ds: xr.Dataset) -> bool:
    """Whether the rate of a run's link is not the same at all times. Raises as `spec_of`."""
    link = spec_of(ds).get("bottleneck") or {}
    return bool(link.get("capacity") or link.get("outages"))


def changes(ds: xr.Dataset) -> bool:
    """Whether the rate or the delay of a run's path is not the same at all times.

    Raises as `spec_of`.
    """
    return changes_rate(ds) or bool((spec_of(ds).get("bottleneck") or {}).get("delay"))


def delay_changes_ms(ds: xr.Dataset, at_s: FloatArray) -> FloatArray:
    """What a schedule of delays adds to the base RTT (ms) at each time; 0 without one."""
    has_schedule = (spec_of(ds).get("bottleneck") or {}).get("delay")
    experiment = run_experiment(ds) if has_schedule else None
    link = experiment.bottleneck if experiment is not None else None
    if link is None or link.delay is None:
        return np.zeros(len(at_s))
    steps = np.array(link.delay.until(float(ds.attrs["duration_s"])))
    at = np.searchsorted(steps[:, 0], at_s, "right") - 1
    changes: FloatArray = steps[np.maximum(at, 0), 1] - link.rtt_ms
    return changes


def state_values(ds: xr.Dataset) -> dict[str, int]:
    """The states that the stacks of a run report: name → value in ``sample_state``."""
    attrs = ds["sample_state"].attrs
    return dict(zip(attrs["flag_meanings"].split(), attrs["flag_values"], strict=True))


def spec_of(ds: xr.Dataset) -> dict[str, Any]:
    """The experiment of a run as JSON has it; empty for imported captures, which have none.

    Raises SpecError where it is damaged.
    """
    try:
        return object_of(ds.attrs.get("spec") or "{}")
    except ValueError as error:
        raise SpecError(f"the run's experiment is damaged: {error}") from None


def run_warnings(ds: xr.Dataset) -> list[str]:
    """The warnings of a run, one sentence each; raises SpecError where the list is damaged."""
    try:
        warnings = json.loads(ds.attrs.get("warnings", "[]"))
    except (ValueError, TypeError, RecursionError) as error:
        raise SpecError(f"the run's warnings are not valid JSON: {in_words(error)}") from None
    return [str(w) for w in warnings] if isinstance(warnings, list) else [str(warnings)]


def require_run(run: Any) -> None:
    """Raise TraceError for anything but the dataset of one run, of which a part may be chosen."""
    if isinstance(run, xr.Dataset) and "sweep" in run.attrs:
        raise TraceError(CUBE)
    if not isinstance(run, xr.Dataset) or "label" not in run:
        log = isinstance(run, xr.Dataset) and "sent_time_s" in run
        raise TraceError(
            "this is the log of a connection, and no run: draw it as {'a name': log}, by "
            "qb.plots.root_cause_chart and its like, or have qb.identify(log) name its controller"
            if log
            else "this is no run; give a dataset that qb.run returns or qb.load_run opens"
        )
    for name, own in DIMENSIONS.items():
        for dim in run[name].dims if name in run else ():
            if dim not in own:
                raise TraceError(_further_dimension(name, str(dim)))
    if "flow" in run.coords and len(np.unique(run["flow"].values)) < run["flow"].size:
        raise TraceError(
            "a flow is there twice, as after xr.concat of runs along 'flow'; choose each flow of "
            "a run once, and join runs along a dimension of their own: xr.concat(runs, 'run')"
        )
    if "throughput_mbps" in run and "time" not in run["throughput_mbps"].dims:
        raise TraceError(
            "this is no run any more, for it has no dimension 'time'; choose a span, "
            'run.sel(time=slice(5, 10)), or one variable: run.throughput_mbps.mean("time")'
        )
    if "throughput_mbps" in run and not {"bin_s", "duration_s"} <= run.attrs.keys():
        raise TraceError(
            "this run has lost its attributes, as operations of xarray may leave them out; keep "
            "them by xr.set_options(keep_attrs=True)"
        )


def _further_dimension(name: str, dim: str) -> str:
    """What is wrong with a variable that has a dimension too many, as concat and where give it."""
    if dim == "time":
        return (
            f"this is no run any more, for its {name} has a dimension 'time', as where() gives it "
            "to all variables; choose times of one variable: "
            "run.throughput_mbps.where(run.time < 5)"
        )
    one = f"{dim}=0" if dim.isidentifier() else f"{{{dim!r}: 0}}"
    return f"a run has no dimension {dim!r}; select one run of it first: .isel({one})"


def require_whole(run: xr.Dataset) -> None:
    """Raise TraceError for a run whose time or packets were cut: its totals are of all its time."""
    if (bins := _bins(run)) is not None and run.sizes["time"] < bins:
        raise TraceError(_cut_sentence(run, bins))
    least = math.floor(SHORTFALL * _least_packets(run))
    if (packets := run.sizes.get("packet", least)) < least:
        raise TraceError(
            f"the table of packets is cut to {packets}, but the series of the run have {least} "
            "at least; keep the run whole, and choose packets of a result, such as "
            "run.packet_size_bytes[run.packet_time_s > 5]"
        )


def _bins(run: xr.Dataset) -> int | None:
    """How many bins of time the whole run has; None if it has none, or does not say."""
    if "time" not in run.dims or "duration_s" not in run.attrs:
        return None
    return Bins(float(run.attrs["bin_s"]), float(run.attrs["duration_s"])).count


def _cut_sentence(run: xr.Dataset, bins: int) -> str:
    """What is wrong with a run of which only some bins of time are left, and what to do."""
    times_s = [f"{s:g}" for s in run["time"].values[[0, -1]]] if run.sizes["time"] else ["5", "10"]
    left = f"{'–'.join(times_s)} s" if run.sizes["time"] else "nothing"
    return (
        f"the time is cut to {left} ({run.sizes['time']} of {bins} bins), but the packets and "
        f"totals are of the whole run ({float(run.attrs['duration_s']):g} s); keep the run whole "
        "and cut the result, such as "
        f'run.throughput_mbps.sel(time=slice({", ".join(times_s)})).mean("time")'
    )


def _least_packets(run: xr.Dataset) -> float:
    """The fewest packets that the series allow: those that were lost, and full frames that left."""
    if "throughput_mbps" not in run or "packet" not in run.dims:
        return 0.0
    if not (frame_bytes := float(run.attrs.get("max_frame_bytes", 0))) > 0:
        return 0.0
    mbits = float(np.nansum(run["throughput_mbps"].values)) * float(run.attrs["bin_s"])
    dropped = float(np.nansum(run["dropped_packets"].values)) if "dropped_packets" in run else 0.0
    return mbits * 1e6 / 8 / frame_bytes + dropped
