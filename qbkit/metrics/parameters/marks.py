"""What a CE mark leaves of a window, as `qbkit.metrics.parameters.reductions` measures a loss."""

from __future__ import annotations

import numpy as np
import xarray as xr

from qbkit.metrics.flows.lookup import flow_index
from qbkit.metrics.parameters.connection import Connection
from qbkit.metrics.parameters.reductions import reduction_at
from qbkit.metrics.parameters.start import start_of
from qbkit.traces.arrays import FloatArray

APART_RTTS = 2.0
"""A sender reduces its window once a round trip; so much later the next mark counts."""
FEWEST = 3
"""Marks from which on their median counts."""


def kept_after_marks(c: Connection, run: xr.Dataset, flow: str | int = 0) -> FloatArray:
    """(k,) part of the window that each CE mark after slow start leaves, where no loss is near.

    Empty for a run without marks, or with fewer than `FEWEST` that count.
    """
    kept, next_s = [], start_of(c).settled_s
    for at_s in heard_s(c, run, flow):
        if at_s < next_s:
            continue
        rtt_s = float(np.interp(at_s, c.grid_s, c.rtt_s))
        next_s = at_s + APART_RTTS * rtt_s
        lossy = c.loss_detected_between(np.array([at_s - rtt_s]), np.array([next_s]))
        found = reduction_at(c, at_s, at_s, rtt_s)
        if found and not lossy[0]:
            kept.append(found.factor)
    return np.array(kept if len(kept) >= FEWEST else [])


def signal_of(c: Connection, run: xr.Dataset, flow: str | int = 0) -> str:
    """How the queue signals congestion: ``marks`` after slow start, or ``drops``; "" if unknown.

    Marks hold a window: one that stays constant is then none of a limit.
    """
    marks_s = heard_s(c, run, flow)
    if (marks_s > start_of(c).settled_s).sum() >= FEWEST:
        return "marks"
    return "drops" if c.lost.any() and not len(marks_s) else ""


def heard_s(c: Connection, run: xr.Dataset, flow: str | int = 0) -> FloatArray:
    """(m,) when the sender hears of each packet that was marked CE, in order; empty without any."""
    if "packet_is_marked" not in run:
        return np.empty(0)
    marked = run["packet_is_marked"].values.astype(bool)
    mine = marked & (run["packet_flow"].values == flow_index(run, flow))
    left_s: FloatArray = np.sort(run["packet_departure_s"].values[mine])
    return left_s[np.isfinite(left_s)] + c.min_rtt_s / 2
