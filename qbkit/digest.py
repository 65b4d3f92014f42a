"""What a sweep keeps of a run: figures of each flow, and its operating points."""

from __future__ import annotations

import math
from typing import Any

import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics import operating_points, summary

FIGURES = {
    "goodput_mbps": ("Mbit/s", "application bytes received"),
    "throughput_mbps": ("Mbit/s", "frame bytes that left the queue"),
    "loss_percent": ("%", "packets dropped by the queue"),
    "rtt_mean_ms": ("ms", "mean RTT seen at the bottleneck"),
    "rtt_std_ms": ("ms", "standard deviation of that RTT"),
    "queue_delay_mean_ms": ("ms", "mean queueing delay"),
}
"""Columns of `qbkit.metrics.summary` → unit and meaning."""
DECIMALS = 4


def digest(ds: xr.Dataset) -> dict[str, Any]:
    """One dictionary a run, ready for JSON; figures that are unknown are None."""
    rows = summary(ds).to_dict(orient="records")
    return {
        "labels": [row["label"] for row in rows],
        "figures": {name: [_number(row[name]) for row in rows] for name in FIGURES},
        "points": [_points(ds, i) for i in range(len(rows))],
        "warnings": ds.qb.warnings,
        "cpu_s": _number(ds.attrs.get("cpu_s", math.nan)),
        "stack_versions": ds.attrs["stack_versions"],
        "kernel_version": ds.attrs["kernel_version"],
    }


def _points(ds: xr.Dataset, flow: int) -> list[list[float]]:
    """[delay_ms, throughput_mbps] of each operating point; none where the run is too short."""
    try:
        return operating_points(ds, flow).xy.round(DECIMALS).tolist()
    except MetricError:
        return []


def _number(value: float) -> float | None:
    return round(float(value), DECIMALS) if math.isfinite(value) else None
