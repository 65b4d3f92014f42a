"""What an application, marks or a changing link hide of a sender's own law."""

from __future__ import annotations

import numpy as np
import xarray as xr

from qbkit.metrics.flows.lookup import flow_index
from qbkit.metrics.parameters.connection import Connection
from qbkit.metrics.parameters.laws import GROWTH, PROBING
from qbkit.metrics.parameters.reductions import REDUCES
from qbkit.metrics.parameters.relations import LOSSES, PROBES
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.attributes import changes_rate


def shown(
    samples: dict[str, FloatArray | float | str],
    trace: xr.Dataset | Connection,
    flow: str | int,
    kept: FloatArray,
) -> dict[str, FloatArray | float | str]:
    """The samples, less those that an application, marks or a changing link make in its place."""
    hidden: set[str] = set()
    if isinstance(trace, xr.Dataset):
        hidden.update((*LOSSES, *PROBES) if _pauses(trace, flow_index(trace, flow)) else ())
        changes = changes_rate(trace)
        hidden.update(["limited_percent"] if changes else ())
        if changes or (len(kept) and float(np.median(kept)) <= REDUCES):
            hidden.update(PROBES, [GROWTH] if samples.get(GROWTH) == PROBING else ())
    return {name: value for name, value in samples.items() if name not in hidden}


def _pauses(run: xr.Dataset, index: int) -> bool:
    """Whether an application gave a flow its data in objects."""
    return "object_flow" in run and bool((run["object_flow"].values == index).any())
