"""Conservation of packets as a table: in = out + dropped + lost at random + still queued."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows.lookup import flow_directions, flow_labels
from qbkit.traces.run.attributes import require_run, require_whole

COLUMNS = {
    f"{word}_packets": f"balance_{word}_packets"
    for word in ("in", "out", "dropped", "random_loss", "queued")
}
"""Column → variable of the run."""
EXTRA = "extra_packets"
CAPTURES, KERNEL = "captures", "kernel"


def packet_balance(ds: xr.Dataset) -> pd.DataFrame:
    """Packets into and out of each bottleneck: one row per flow, and one of the kernel's counters.

    Columns: ``bottleneck`` (from 1, left to right; then right to left, if flows go that way),
    ``direction`` of the bottleneck, ``label`` of the flow (empty: all flows), ``source``
    ("captures", or "kernel" for what ``tc -s`` reports), ``in_packets``, ``out_packets`` (neither
    dropped nor lost at random), ``dropped_packets`` (by the queue, or by a
    policer or a router's MTU in front of it), ``random_loss_packets`` and
    ``queued_packets`` (still in the queue when the counters were read, after it had time to drain).
    Counts cover the whole capture, which extends beyond the end of the experiment, and every IP
    packet from the flow's sender to its receiver; at a bottleneck of the other direction, the
    packets back (ACKs). ACKs that meet random loss but no queue are in rows of bottleneck 0. The
    rows of the flows add up to the kernel's row; a run in which they do not has a warning. Where
    packets may be duplicated or corrupted, ``extra_packets`` came out beside those that went in;
    the kernel does not count them, nor the packets whose headers were corrupted, which count as
    lost at random. With an MTU, the kernel's random loss may include ICMP messages of routers.

    Raises MetricError for a run without counters: imported captures, a run that was published
    without them, or one of an older qbkit; TraceError for a run whose time was cut.
    """
    require_run(ds)
    require_whole(ds)
    if "qdisc_sent_packets" not in ds:
        raise MetricError(
            "the run has no counters of its queues, so its balance is unknown: it was imported, "
            "published without them, or recorded by an older qbkit; run it again"
        )
    rows: list[dict[str, Any]] = []
    for k in range(ds.sizes["bottleneck"]):
        rows += [row for i in range(ds.sizes["flow"]) if (row := _of_flow(ds, k, i))["in_packets"]]
        rows.append(_of_kernel(ds, k))
    if "ack_in_packets" in ds:
        rows += [_of_acks(ds, i) for i in range(ds.sizes["flow"])] + [_of_acks_by_kernel(ds)]
    extra = [EXTRA] * ("balance_extra_packets" in ds)
    names = ["bottleneck", "direction", "label", "source", *COLUMNS, *extra]
    return pd.DataFrame(rows, columns=names).fillna(dict.fromkeys(extra, 0))


def _of_flow(ds: xr.Dataset, k: int, index: int) -> dict[str, Any]:
    """Row of a flow at a bottleneck, as the captures count it."""
    at = ds.isel(bottleneck=k, flow=index)
    counts = {column: int(at[name]) for column, name in COLUMNS.items()}
    if "balance_extra_packets" in ds:
        counts[EXTRA] = int(at["balance_extra_packets"])
        counts["out_packets"] -= counts[EXTRA]
    return {**_words(ds, k, flow_labels(ds)[index], CAPTURES), **counts}


def _of_kernel(ds: xr.Dataset, k: int) -> dict[str, Any]:
    """Row of the kernel's counters at a bottleneck, and the random loss of flows that end there."""
    sent, dropped, queued = (
        int(ds[f"qdisc_{word}_packets"][k]) for word in ("sent", "dropped", "queued")
    )
    in_front = ("policer_dropped_packets", "too_big_packets")
    dropped += sum(int(ds[name][k]) for name in in_front if name in ds)
    # A flow's packets meet random loss only after their last bottleneck in a direction.
    entered = ds["balance_in_packets"].transpose("flow", "bottleneck").values > 0
    ways = _directions(ds)
    further = (ways == ways[k]) & (np.arange(len(ways)) > k)
    data = np.array(flow_directions(ds)) == ways[k]
    ends_here = entered[:, k] & ~entered[:, further].any(axis=1)
    lost = int(ds["netem_lost_packets"].values[ends_here & data].sum())
    if "netem_lost_ack_packets" in ds:
        lost += int(ds["netem_lost_ack_packets"].values[ends_here & ~data].sum())
    counts = (sent + dropped + queued, sent - lost, dropped, lost, queued)
    return {**_words(ds, k, "", KERNEL), **dict(zip(COLUMNS, counts, strict=True))}


def _of_acks(ds: xr.Dataset, index: int) -> dict[str, Any]:
    """Row of a flow's ACKs that meet no queue, as the captures count them."""
    words = ("in", "out", "random_loss")
    entered, left, lost = (int(ds[f"ack_{word}_packets"][index]) for word in words)
    if "ack_too_big_packets" in ds:  # a router drops them before the random loss, which counts
        entered -= int(ds["ack_too_big_packets"][index])
    return _no_queue(flow_labels(ds)[index], CAPTURES, (entered, left, 0, lost, 0))


def _of_acks_by_kernel(ds: xr.Dataset) -> dict[str, Any]:
    """Row of the kernel's counters of the random loss of ACKs that meet no queue."""
    sent, lost = (int(ds[f"netem_{word}_ack_packets"].sum()) for word in ("sent", "lost"))
    return _no_queue("", KERNEL, (sent + lost, sent, 0, lost, 0))


def _no_queue(label: str, source: str, counts: tuple[int, ...]) -> dict[str, Any]:
    words = {"bottleneck": 0, "direction": "reverse", "label": label, "source": source}
    return {**words, **dict(zip(COLUMNS, counts, strict=True))}


def _directions(ds: xr.Dataset) -> npt.NDArray[np.str_]:
    """Direction of each bottleneck."""
    if "bottleneck_direction" not in ds:
        return np.full(ds.sizes["bottleneck"], "forward")
    return ds["bottleneck_direction"].values.astype(str)


def _words(ds: xr.Dataset, k: int, label: str, source: str) -> dict[str, Any]:
    number, way = int(ds["bottleneck"][k]) + 1, str(_directions(ds)[k])
    return {"bottleneck": number, "direction": way, "label": label, "source": source}
