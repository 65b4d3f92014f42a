"""The plane in which envelopes lie, throughput over queueing delay: its axes, points and hulls."""

from __future__ import annotations

from collections.abc import Sequence

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


def coordinates(points: Sequence[FloatArray]) -> dict[str, FloatArray]:
    """Columns of a table with all these points, each array (n, 2)."""
    both = np.concatenate(points)
    return {"queue_delay_ms": both[:, 0], "throughput_mbps": both[:, 1]}


def ring(hull: FloatArray) -> FloatArray:
    """The corners of a hull, closed by the first one: (n + 1, 2)."""
    return np.concatenate([hull, hull[:1]])


def thinned(points: FloatArray) -> FloatArray:
    """Every n-th point, so that at most `MAX_POINTS` are left."""
    return points[:: max(1, -(-len(points) // MAX_POINTS))]
