"""Who gets how much of the shared link."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows import (
    active_span_s,
    delivered_bytes,
    flow_directions,
    flow_index,
    flow_labels,
)
from qbkit.traces.arrays import FloatArray


def throughput_ratio(ds: xr.Dataset, x: str | int, y: str | int) -> float:
    """T_x / (T_x + T_y) in [0, 1] (IMC'22 §2.2, Figure 5): above 0.5, x got more than y.

    Throughput is frame bytes behind the queue over the time in which both flows were active,
    nothing cut. Raises MetricError for an unknown flow, the same flow twice, flows in opposite
    directions, flows that were never active together, or where neither got anything.
    """
    i, j = flow_index(ds, x), flow_index(ds, y)
    if i == j:
        raise MetricError(f"the throughput ratio needs two flows, not {x!r} and {y!r}")
    if len({flow_directions(ds)[k] for k in (i, j)}) > 1:
        raise MetricError(f"{x!r} and {y!r} go in opposite directions, so they share no bottleneck")
    mine, theirs = _common_throughput_mbps(ds, [i, j])
    if mine + theirs == 0:
        raise MetricError(f"neither {x!r} nor {y!r} got anything through while both were active")
    return float(mine / (mine + theirs))


def link_share(ds: xr.Dataset, flows: Sequence[str | int]) -> float:
    """What those flows get together of the throughput of all flows in their direction, in [0, 1].

    Throughput as in `throughput_ratio`, over the time in which all flows of the direction were
    active. Raises MetricError for an unknown flow, none, one twice, flows in opposite directions,
    flows that were never active together, or where nothing got through.
    """
    chosen = [flow_index(ds, flow) for flow in flows]
    if not chosen or len(set(chosen)) < len(chosen):
        raise MetricError(f"a share of the link needs flows, each of them once, not {list(flows)}")
    ways = flow_directions(ds)
    if len({ways[i] for i in chosen}) > 1:
        raise MetricError(f"{list(flows)} go in opposite directions, so they share no bottleneck")
    others = [i for i, way in enumerate(ways) if way == ways[chosen[0]]]
    mbps = _common_throughput_mbps(ds, others)
    if not mbps.sum():
        raise MetricError("nothing got through while all flows were active, so nothing was shared")
    return float(mbps[[others.index(i) for i in chosen]].sum() / mbps.sum())


def jain_index(values: xr.Dataset | npt.ArrayLike) -> float:
    """Jain's fairness index (Σx)² / (n Σx²), in [1/n, 1]; 1 where all get the same.

    Of n allocations x, or of a run's throughputs over the time in which all flows were active;
    of its forward flows, for reverse flows share no bottleneck with them.
    Raises MetricError for no, negative or unknown allocations, and where all are 0.
    """
    if isinstance(values, xr.Dataset):
        ways = flow_directions(values)
        forward = [i for i, way in enumerate(ways) if way == "forward"]
        x = _common_throughput_mbps(values, forward or range(len(ways)))
    else:
        x = np.asarray(values, dtype=np.float64).ravel()
    if not len(x) or not np.isfinite(x).all() or (x < 0).any() or x.max() == 0:
        raise MetricError(
            "Jain's index needs at least one allocation, none below 0 and not all of them 0, "
            f"and these are {x.tolist()}"
        )
    # Scaled by the largest, so that no square overflows or vanishes.
    x = x / x.max()
    return float(x.sum() ** 2 / (len(x) * (x**2).sum()))


def _common_throughput_mbps(ds: xr.Dataset, indexes: Sequence[int]) -> FloatArray:
    """Throughput of the flows over the time in which all of them were active."""
    spans = [active_span_s(ds, i) for i in indexes]
    start_s, stop_s = max(s for s, _ in spans), min(s for _, s in spans)
    if stop_s <= start_s:
        names = ", ".join(flow_labels(ds)[i] for i in indexes)
        raise MetricError(f"the flows {names} were never active at the same time")
    sent = [delivered_bytes(ds, i, start_s, stop_s) for i in indexes]
    return np.array(sent) * 8 / 1e6 / (stop_s - start_s)
