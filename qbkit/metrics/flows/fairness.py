"""Shares of the link: throughput ratio, link share and Jain's index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.arrays import row
from qbkit.metrics.flows import lookup
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.attributes import require_run


def throughput_ratio(ds: xr.Dataset, x: str | int, y: str | int) -> float:
    """T_x / (T_x + T_y) in [0, 1] (IMC'22 §2.2, Figure 5): above 0.5, x got more than y.

    Throughput counts frame bytes after the queue over the whole time in which both flows were
    active. Raises MetricError for an unknown flow, the same flow twice, flows that share no link
    (opposite directions, or different links of a parking lot), flows that were never active
    together, and if nothing of either arrived.
    """
    i, j = lookup.flow_index(ds, x), lookup.flow_index(ds, y)
    if i == j:
        raise MetricError(f"the throughput ratio needs two flows, not {x!r} and {y!r}")
    mine, theirs = _common_throughput_mbps(ds, [i, j])
    if mine + theirs == 0:
        raise MetricError(f"nothing of {x!r} or {y!r} arrived while both were active")
    return float(mine / (mine + theirs))


def link_share(ds: xr.Dataset, flows: Sequence[str | int]) -> float:
    """Share of those flows together in the throughput of all flows on their link, in [0, 1].

    A link has a direction. Throughput is as in `throughput_ratio`, over the time in which all flows
    of the link were active. Raises MetricError for an unknown flow, without flows, for a flow given
    twice, flows that share no link or several with different flows, flows that were never active
    together, and if nothing arrived.
    """
    chosen = [lookup.flow_index(ds, flow) for flow in flows]
    if not chosen or len(set(chosen)) < len(chosen):
        raise MetricError(f"a share of the link needs flows, each given once, not {list(flows)}")
    others = _flows_of(ds, chosen)
    mbps = _common_throughput_mbps(ds, others)
    if not mbps.sum():
        raise MetricError("nothing arrived while all flows were active, so nothing was shared")
    return float(mbps[[others.index(i) for i in chosen]].sum() / mbps.sum())


def jain_index(values: xr.Dataset | npt.ArrayLike) -> float:
    """Jain's fairness index (Σx)² / (n Σx²), in [1/n, 1]; 1 if all get the same.

    ``values`` are n allocations x, or a run, whose throughputs are taken over the time in which all
    flows were active. Of a run with reverse flows, only the forward flows count, because the two
    share no bottleneck. Raises MetricError for an array of more than one dimension, as
    ``run.throughput_mbps`` is (take its mean over time), without allocations, for negative or
    unknown ones, if all are 0, and for a run whose flows share no link, as those of a parking lot.
    """
    if isinstance(values, xr.Dataset):
        require_run(values)
        ways = lookup.flow_directions(values)
        forward = [i for i, way in enumerate(ways) if way == "forward"]
        counted = forward or range(len(ways))
        x = _common_throughput_mbps(values, counted) if counted else np.array([])
    else:
        x = row("values", values)
    if not len(x) or not np.isfinite(x).all() or (x < 0).any() or x.max() == 0:
        raise MetricError(
            "Jain's index needs at least one allocation, none below 0 and not all of them 0, "
            f"not {x.tolist()}"
        )
    # Scale by the largest, so that no square overflows or underflows.
    x = x / x.max()
    return float(x.sum() ** 2 / (len(x) * (x**2).sum()))


def _common_links(ds: xr.Dataset, indexes: Sequence[int]) -> frozenset[int]:
    """The bottlenecks that the data of all these flows cross; MetricError if there is none."""
    common = frozenset.intersection(*(_links(ds, i) for i in indexes))
    if not common:
        opposite = len({lookup.flow_directions(ds)[i] for i in indexes}) > 1
        why = "go in opposite directions" if opposite else "do not all cross one link"
        raise MetricError(
            f"{_named(ds, indexes)} {why}, so they share no bottleneck; give the flows, or the "
            "throughputs, of one link"
        )
    return common


def _links(ds: xr.Dataset, index: int) -> frozenset[int]:
    """The bottlenecks that a flow's data cross, by number; where a run does not say, it has one."""
    way = lookup.flow_directions(ds)[index]
    if "balance_in_packets" not in ds:
        return frozenset([0 if way == "forward" else 1])
    crossed = ds["balance_in_packets"].isel(flow=index).values > 0
    if "bottleneck_direction" in ds:  # a flow's ACKs cross those of the other direction
        crossed &= ds["bottleneck_direction"].values == way
    return frozenset(np.flatnonzero(crossed).tolist())


def _flows_of(ds: xr.Dataset, chosen: Sequence[int]) -> list[int]:
    """The flows of the link that all the chosen flows cross; MetricError if it is not one link."""
    links = [_links(ds, i) for i in range(ds.sizes["flow"])]
    found = {
        tuple(i for i, crossed in enumerate(links) if link in crossed)
        for link in _common_links(ds, chosen)
    }
    if len(found) > 1:
        raise MetricError(
            f"{_named(ds, chosen)} crosses {len(found)} links, and has a share of each; compare it "
            "with a flow of one link by throughput_ratio"
        )
    return list(found.pop())


def _named(ds: xr.Dataset, indexes: Sequence[int]) -> str:
    return " and ".join(repr(lookup.flow_labels(ds)[i]) for i in indexes)


def _common_throughput_mbps(ds: xr.Dataset, indexes: Sequence[int]) -> FloatArray:
    """Throughput of flows that share a link, over the time in which all of them were active."""
    _common_links(ds, indexes)
    spans = [lookup.active_span_s(ds, i) for i in indexes]
    start_s, stop_s = max(s for s, _ in spans), min(s for _, s in spans)
    if stop_s <= start_s:
        names = ", ".join(lookup.flow_labels(ds)[i] for i in indexes)
        raise MetricError(f"the flows {names} were never active at the same time")
    sent = [lookup.delivered_bytes(ds, i, start_s, stop_s) for i in indexes]
    return np.array(sent) * 8 / 1e6 / (stop_s - start_s)
