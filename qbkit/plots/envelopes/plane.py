"""The plane in which envelopes lie, throughput over queueing delay: its axes, points and hulls."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from qbkit.traces.arrays import FloatArray

X = alt.X("queue_delay_ms:Q", title="Queueing delay (ms)").scale(nice=True, zero=False)
Y = alt.Y("throughput_mbps:Q", title="Throughput (Mbit/s)").scale(nice=True, zero=False)
TOOLTIP = [
    alt.Tooltip("queue_delay_ms:Q", title="Queueing delay (ms)", format=".2f"),
    alt.Tooltip("throughput_mbps:Q", title="Throughput (Mbit/s)", format=".2f"),
]
MAX_POINTS = 60
"""Most operating points of an envelope that is drawn small, among many."""


def coordinates(points: FloatArray) -> dict[str, FloatArray]:
    """Columns of a table with points (n, 2)."""
    return {"queue_delay_ms": points[:, 0], "throughput_mbps": points[:, 1]}


def corners(hull: FloatArray) -> dict[str, Any]:
    """Columns of a table with the numbered corners of a hull, closed by the first one."""
    closed = np.concatenate([hull, hull[:1]])
    return {"corner": range(len(closed)), **coordinates(closed)}


def thinned(points: FloatArray) -> FloatArray:
    """Every n-th point, so that at most `MAX_POINTS` are left."""
    return points[:: max(1, -(-len(points) // MAX_POINTS))]
