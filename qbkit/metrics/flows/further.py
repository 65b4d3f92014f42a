"""Columns of a summary that only some runs have: what a transfer took, marks, kinds of losses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import xarray as xr

from qbkit.metrics.flows.frames import frame_columns
from qbkit.metrics.flows.lookup import has_packets, last_sample
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.attributes import run_experiment, state_values
from qbkit.traces.run.early_end import EARLY_END
from qbkit.traces.run.ends import is_complete
from qbkit.traces.run.resumed import STARTED as RESUMED

Column = list[float] | list[float | str]
UNFINISHED = "unfinished"


def further_columns(ds: xr.Dataset) -> dict[str, Column]:
    """The columns of `summary` that have a value in this run, by name.

    A column in which no flow has a value is left out. One of zeros stays, since 0 is known: in a
    mean over seeds it counts.
    """
    columns: dict[str, Column] = {"transport": transports(ds), "complete_s": completion_times_s(ds)}
    if has_packets(ds):
        columns |= {
            "mean_frame_bytes": _per_flow(ds, ds["packet_size_bytes"].values, np.mean),
            "slow_start_lost_packets": slow_start_losses(ds),
        }
        if "packet_is_marked" in ds:
            marked = ds["packet_is_marked"].values
            columns["ce_marked_packets"] = _per_flow(ds, marked, np.sum)
    if "object_flow" in ds:
        columns |= {**object_columns(ds), **frame_columns(ds)}
    if RESUMED in ds:
        columns |= resumed_columns(ds)
    if "sample_spurious_losses" in ds:
        columns["spurious_losses"] = spurious_losses(ds)
    if EARLY_END in ds:
        columns[EARLY_END] = [float(s) for s in ds[EARLY_END].values]
    return {name: values for name, values in columns.items() if any(map(_is_known, values))}


def transports(ds: xr.Dataset) -> list[float | str]:
    """Package and version of each flow's transport; NaN where the stack's version counts it."""
    known = json.loads(ds.attrs.get("transport_versions") or "{}")
    return [known.get(str(stack), math.nan) for stack in ds["stack"].values]


def object_columns(ds: xr.Dataset) -> dict[str, Column]:
    """Objects of each flow's application, those that did not arrive, and the times they took."""
    took_ms = (ds["object_arrived_s"].values - ds["object_release_s"].values) * 1e3
    columns: dict[str, Column] = {
        name: [] for name in ("objects", "objects_missing", "object_median_ms", "object_p95_ms")
    }
    for i in range(ds.sizes["flow"]):
        mine = took_ms[ds["object_flow"].values == i]
        arrived = mine[np.isfinite(mine)]
        middle, late = np.percentile(arrived, [50, 95]) if len(arrived) else (math.nan, math.nan)
        values = (float(len(mine)), float(len(mine) - len(arrived)), float(middle), float(late))
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value)
    return columns


def resumed_columns(ds: xr.Dataset) -> dict[str, Column]:
    """Whether 0-RTT was accepted, and when first and last byte of the second connections came."""
    start_s = ds[RESUMED].values
    times = {
        f"second_{name}_ms": list((ds[f"resumed_{name}_s"].values - start_s) * 1e3)
        for name in ("first_byte", "last_byte")
    }
    words = {1.0: "accepted", 0.0: "none"}
    early = [words.get(float(is_one), math.nan) for is_one in ds["resumed_early_data"].values]
    return {"early_data": early, **times}


def completion_times_s(ds: xr.Dataset) -> list[float | str]:
    """Time from a transfer's start to its last packet, or "unfinished"; NaN without a size."""
    experiment = run_experiment(ds)
    found: list[float | str] = [math.nan] * ds.sizes["flow"]
    if experiment is None or "receiver_bytes" not in ds or not has_packets(ds):
        return found
    labels = [str(label) for label in ds["label"].values]
    for flow, label in zip(experiment.flows, experiment.labels, strict=True):
        if flow.total_bytes is not None and label in labels:
            i = labels.index(label)
            took_s = float(ds["stop_s"].values[i] - ds["start_s"].values[i])
            found[i] = took_s if is_complete(ds, i, flow.total_bytes) else UNFINISHED
    return found


def slow_start_losses(ds: xr.Dataset) -> list[float]:
    """Packets lost of those sent before the sender first left slow start; NaN if unknown."""
    found = [math.nan] * ds.sizes["flow"]
    if "sample_state" not in ds:
        return found
    names = state_values(ds)
    inside = [names[name] for name in ("slow_start", "startup") if name in names]
    lost = np.isnan(ds["packet_departure_s"].values)
    for i in range(len(found)):
        mine = (ds["sample_flow"].values == i) & (ds["sample_state"].values >= 0)
        state, time_s = ds["sample_state"].values[mine], ds["sample_time_s"].values[mine]
        if len(state) and state[0] in inside:
            left_s = time_s[~np.isin(state, inside)]
            until_s = left_s[0] if len(left_s) else math.inf
            early = (ds["packet_flow"].values == i) & (ds["packet_time_s"].values < until_s)
            found[i] = float((lost & early).sum())
    return found


def spurious_losses(ds: xr.Dataset) -> list[float]:
    """Packets declared lost that arrived, as stacks report them; NaN if unknown.

    The kernel's TCP counts duplicate SACKs. A packet that the network duplicates causes one, too,
    so the number is unknown there.
    """
    experiment = run_experiment(ds)
    found = [last_sample(ds, "spurious_losses", i) for i in range(ds.sizes["flow"])]
    if experiment is None or not experiment.bottleneck.duplicate_percent:
        return found
    stacks = ds["stack"].values.astype(str)
    return [
        math.nan if stack == "tcp" else value for stack, value in zip(stacks, found, strict=True)
    ]


def _per_flow(ds: xr.Dataset, values: FloatArray, of: Callable[[FloatArray], float]) -> list[float]:
    flow = ds["packet_flow"].values
    parts = [values[flow == i].astype(np.float64) for i in range(ds.sizes["flow"])]
    return [float(of(part)) if len(part) else math.nan for part in parts]


def _is_known(value: float | str) -> bool:
    return isinstance(value, str) or math.isfinite(value)


def is_news(value: float | str) -> bool:
    """Whether a value says more than that nothing happened."""
    return _is_known(value) and value != 0
