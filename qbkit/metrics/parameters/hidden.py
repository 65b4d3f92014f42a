"""What an application, marks or a path that is not steady hide of a sender's own law."""

from __future__ import annotations

import numpy as np
import xarray as xr

from qbkit.metrics.flows.lookup import flow_index
from qbkit.metrics.parameters.connection import Connection
from qbkit.metrics.parameters.laws import GROWTH, PROBING
from qbkit.metrics.parameters.reductions import REDUCES
from qbkit.metrics.parameters.relations import LOSSES, PROBES
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.attributes import changes, changes_rate, spec_of


def shown(
    samples: dict[str, FloatArray | float | str],
    trace: xr.Dataset | Connection,
    flow: str | int,
    kept: FloatArray,
) -> dict[str, FloatArray | float | str]:
    """The samples, less those that an application, marks or the path make in its place."""
    hidden: set[str] = set()
    if isinstance(trace, xr.Dataset):
        hidden.update((*LOSSES, *PROBES) if _pauses(trace, flow_index(trace, flow)) else ())
        hidden.update(["limited_percent"] if changes_rate(trace) else ())
        if _makes_cycles(trace) or (len(kept) and float(np.median(kept)) <= REDUCES):
            hidden.update(PROBES, [GROWTH] if samples.get(GROWTH) == PROBING else ())
    return {name: value for name, value in samples.items() if name not in hidden}


def _makes_cycles(run: xr.Dataset) -> bool:
    """Whether a path changes, or holds packets, so that what is sent comes and goes with it."""
    link = spec_of(run).get("bottleneck") or {}
    return changes(run) or bool(link.get("hold_data_ms") or link.get("hold_acks_ms"))


def _pauses(run: xr.Dataset, index: int) -> bool:
    """Whether an application gave a flow its data in objects."""
    return "object_flow" in run and bool((run["object_flow"].values == index).any())
