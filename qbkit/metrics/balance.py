"""Conservation of packets as a table: in = out + dropped + lost at random + still queued."""

from __future__ import annotations

from typing import Any

import pandas as pd
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows import flow_labels

COLUMNS = {
    "in_packets": "balance_in_packets",
    "out_packets": "balance_out_packets",
    "dropped_packets": "balance_dropped_packets",
    "random_loss_packets": "balance_random_loss_packets",
    "queued_packets": "balance_queued_packets",
}
"""Column → variable of the run."""
CAPTURES, KERNEL = "captures", "kernel"


def packet_balance(ds: xr.Dataset) -> pd.DataFrame:
    """Packets in and out of each bottleneck, a row per flow, and one of the kernel's counters.

    Columns: ``bottleneck`` (from 1, left to right), ``label`` of the flow (empty: all flows),
    ``source`` ("captures", or "kernel" for what ``tc -s`` reports), ``in_packets``,
    ``out_packets`` (neither dropped nor lost at random), ``dropped_packets`` (by the queue),
    ``random_loss_packets`` and ``queued_packets`` (in the queue when the counters were read, after
    it was given the time to run empty). All count from the first packet to the last of the
    capture, beyond the end of the experiment, and every IP packet from the flow's sender to its
    receiver. The flows' rows of a bottleneck add up to the kernel's; a run in which they do not
    has a warning.

    Raises MetricError for a run without counters: imported captures, or one of an older qbkit.
    """
    if "qdisc_sent_packets" not in ds:
        raise MetricError(
            "the run has no counters of its queues, so its balance is unknown: it was imported, or "
            "made by an older qbkit; run it again"
        )
    rows: list[dict[str, Any]] = []
    for k in range(ds.sizes["bottleneck"]):
        at = ds.isel(bottleneck=k)
        rows += [row for i in range(ds.sizes["flow"]) if (row := _of_flow(at, i))["in_packets"]]
        rows.append(_of_kernel(at, ds))
    return pd.DataFrame(rows, columns=["bottleneck", "label", "source", *COLUMNS])


def _of_flow(at: xr.Dataset, index: int) -> dict[str, Any]:
    """What the captures count of a flow at a bottleneck."""
    counts = {column: int(at[name].values[index]) for column, name in COLUMNS.items()}
    return {**_words(at, flow_labels(at)[index], CAPTURES), **counts}


def _of_kernel(at: xr.Dataset, ds: xr.Dataset) -> dict[str, Any]:
    """What the queue counts, and the random loss behind it for the flows that end there."""
    sent, dropped, queued = (
        int(at[f"qdisc_{word}_packets"]) for word in ("sent", "dropped", "queued")
    )
    # A flow meets random loss behind its last bottleneck only.
    entered = ds["balance_in_packets"].transpose("flow", "bottleneck").values
    later = entered[:, int(at["bottleneck"]) + 1 :].any(axis=1)
    here = (at["balance_in_packets"].values > 0) & ~later
    lost = int(ds["netem_lost_packets"].values[here].sum())
    counts = (sent + dropped + queued, sent - lost, dropped, lost, queued)
    return {**_words(at, "", KERNEL), **dict(zip(COLUMNS, counts, strict=True))}


def _words(at: xr.Dataset, label: str, source: str) -> dict[str, Any]:
    return {"bottleneck": int(at["bottleneck"]) + 1, "label": label, "source": source}
