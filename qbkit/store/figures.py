"""What a sweep keeps of a run: figures, throughput and operating points of each flow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import numpy as np
import xarray as xr

from qbkit import measurement
from qbkit.errors import MetricError
from qbkit.json_words import in_words, object_of
from qbkit.metrics import operating_points, summary
from qbkit.metrics.maps.shares import STEP_S
from qbkit.traces.run.early_end import EARLY_END
from qbkit.traces.run.schema import named

FIGURES = {
    "goodput_mbps": named("Mbit/s", "application bytes received"),
    "throughput_mbps": named("Mbit/s", "frame bytes that left the queue"),
    "loss_percent": named("%", "packets that did not arrive, of those sent"),
    "rtt_mean_ms": named("ms", "mean RTT seen at the bottleneck"),
    "rtt_std_ms": named("ms", "standard deviation of that RTT"),
    "queue_delay_mean_ms": named("ms", "mean queueing delay"),
}
"""Columns of `qbkit.metrics.flows.summary` → attributes of the variable."""
DECIMALS = 4


class _Kept(msgspec.Struct):
    """What `cube` reads of the figures of a run."""

    labels: list[str]
    figures: dict[str, list[float | None]]
    series: list[list[float]]
    points: list[list[tuple[float, float]]]
    warnings: list[str]
    cpu_s: float | None
    stack_versions: str
    kernel_version: str
    measurement_version: Annotated[int, msgspec.Meta(ge=1)] = measurement.PUBLISHED_BEFORE
    ended_s: list[float | None] | None = None


def require_figures(found: Mapping[str, Any]) -> None:
    """Raise ValueError, with a few words, for what `run_figures` cannot have returned."""
    try:
        kept = msgspec.convert(found, _Kept)
    except msgspec.ValidationError as error:
        raise ValueError(in_words(error)) from None
    if lacking := [name for name in FIGURES if name not in kept.figures]:
        raise ValueError(f"figures has no {lacking[0]}")
    lists: dict[str, list[Any] | None] = {
        "series": kept.series,
        "points": kept.points,
        EARLY_END: kept.ended_s,
    }
    for name, values in {**kept.figures, **lists}.items():
        if values is not None and len(values) != len(kept.labels):
            raise ValueError(f"{name} has {len(values)} values, and labels {len(kept.labels)}")
    object_of(kept.stack_versions)


def run_figures(ds: xr.Dataset) -> dict[str, Any]:
    """The figures of a run, ready for JSON; None for unknown ones.

    ``ended_s`` is there only if a connection ended before its flow did.
    """
    rows = summary(ds).to_dict(orient="records")
    ends = {EARLY_END: [_number(row[EARLY_END]) for row in rows]} if EARLY_END in ds else {}
    return {
        **ends,
        "labels": [row["label"] for row in rows],
        "figures": {name: [_number(row[name]) for row in rows] for name in FIGURES},
        "series": [_series(ds, i) for i in range(len(rows))],
        "points": [_points(ds, i) for i in range(len(rows))],
        "warnings": ds.qb.warnings,
        "cpu_s": _number(ds.attrs.get("cpu_s", math.nan)),
        "stack_versions": ds.attrs["stack_versions"],
        "kernel_version": ds.attrs["kernel_version"],
        "kernel_build": ds.attrs.get("kernel_build", ""),
        "tool_versions": ds.attrs.get("tool_versions", ""),
        "measurement_version": measurement.version_of(ds.attrs),
    }


def _series(ds: xr.Dataset, flow: int) -> list[float]:
    """Throughput (Mbit/s) of each whole step of the run."""
    bins = max(1, round(STEP_S / float(ds.attrs["bin_s"])))
    mbps = ds["throughput_mbps"].values[flow].astype(float)
    whole = mbps[: len(mbps) // bins * bins].reshape(-1, bins)
    series: list[float] = np.nanmean(whole, axis=1).round(DECIMALS).tolist()
    return series


def _points(ds: xr.Dataset, flow: int) -> list[list[float]]:
    """[delay_ms, throughput_mbps] of each operating point; empty if the run is too short."""
    try:
        return operating_points(ds, flow).xy.round(DECIMALS).tolist()
    except MetricError:
        return []


def _number(value: float) -> float | None:
    return round(float(value), DECIMALS) if math.isfinite(value) else None
