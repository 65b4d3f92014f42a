"""Shares of the link: throughput ratio, link share and Jain's index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.arrays import numbers
from qbkit.metrics.flows import lookup
from qbkit.traces.arrays import FloatArray


def throughput_ratio(ds: xr.Dataset, x: str | int, y: str | int) -> float:
    """T_x / (T_x + T_y) in [0, 1] (IMC'22 §2.2, Figure 5): above 0.5, x got more than y.

    Throughput counts frame bytes after the queue over the whole time in which both flows were
    active. Raises MetricError for an unknown flow, the same flow twice, flows in opposite
    directions, flows that were never active together, and if nothing of either arrived.
    """
    i, j = lookup.flow_index(ds, x), lookup.flow_index(ds, y)
    if i == j:
        raise MetricError(f"the throughput ratio needs two flows, not {x!r} and {y!r}")
    if len({lookup.flow_directions(ds)[k] for k in (i, j)}) > 1:
        raise MetricError(f"{x!r} and {y!r} go in opposite directions, so they share no bottleneck")
    mine, theirs = _common_throughput_mbps(ds, [i, j])
    if mine + theirs == 0:
        raise MetricError(f"nothing of {x!r} or {y!r} arrived while both were active")
    return float(mine / (mine + theirs))


def link_share(ds: xr.Dataset, flows: Sequence[str | int]) -> float:
    """Share of those flows together in the throughput of all flows in their direction, in [0, 1].

    Throughput is as in `throughput_ratio`, over the time in which all flows of the direction were
    active. Raises MetricError for an unknown flow, without flows, for a flow given twice, flows in
    opposite directions, flows that were never active together, and if nothing arrived.
    """
    chosen = [lookup.flow_index(ds, flow) for flow in flows]
    if not chosen or len(set(chosen)) < len(chosen):
        raise MetricError(f"a share of the link needs flows, each given once, not {list(flows)}")
    ways = lookup.flow_directions(ds)
    if len({ways[i] for i in chosen}) > 1:
        raise MetricError(f"{list(flows)} go in opposite directions, so they share no bottleneck")
    others = [i for i, way in enumerate(ways) if way == ways[chosen[0]]]
    mbps = _common_throughput_mbps(ds, others)
    if not mbps.sum():
        raise MetricError("nothing arrived while all flows were active, so nothing was shared")
    return float(mbps[[others.index(i) for i in chosen]].sum() / mbps.sum())


def jain_index(values: xr.Dataset | npt.ArrayLike) -> float:
    """Jain's fairness index (Σx)² / (n Σx²), in [1/n, 1]; 1 if all get the same.

    ``values`` are n allocations x, or a run, whose throughputs are taken over the time in which all
    flows were active. Of a run with reverse flows, only the forward flows count, because the two
    share no bottleneck. Raises MetricError without allocations, for negative or unknown ones, and
    if all are 0.
    """
    if isinstance(values, xr.Dataset):
        ways = lookup.flow_directions(values)
        forward = [i for i, way in enumerate(ways) if way == "forward"]
        x = _common_throughput_mbps(values, forward or range(len(ways)))
    else:
        x = numbers("values", values).ravel()
    if not len(x) or not np.isfinite(x).all() or (x < 0).any() or x.max() == 0:
        raise MetricError(
            "Jain's index needs at least one allocation, none below 0 and not all of them 0, "
            f"not {x.tolist()}"
        )
    # Scale by the largest, so that no square overflows or underflows.
    x = x / x.max()
    return float(x.sum() ** 2 / (len(x) * (x**2).sum()))


def _common_throughput_mbps(ds: xr.Dataset, indexes: Sequence[int]) -> FloatArray:
    """Throughput of the flows over the time in which all of them were active."""
    spans = [lookup.active_span_s(ds, i) for i in indexes]
    start_s, stop_s = max(s for s, _ in spans), min(s for _, s in spans)
    if stop_s <= start_s:
        names = ", ".join(lookup.flow_labels(ds)[i] for i in indexes)
        raise MetricError(f"the flows {names} were never active at the same time")
    sent = [lookup.delivered_bytes(ds, i, start_s, stop_s) for i in indexes]
    return np.array(sent) * 8 / 1e6 / (stop_s - start_s)
