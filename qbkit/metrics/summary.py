"""One row a flow: goodput, throughput, loss and RTT, as in QUIC-DC's tables."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import xarray as xr

from qbkit.metrics.flows import (
    active_span_s,
    delivered_bytes,
    delivered_packets,
    has_packets,
)

COLUMNS = (
    "label",
    "stack",
    "controller",
    "goodput_mbps",
    "throughput_mbps",
    "loss_percent",
    "rtt_mean_ms",
    "rtt_std_ms",
    "queue_delay_mean_ms",
)


def summary(ds: xr.Dataset) -> pd.DataFrame:
    """One row per flow with the columns of `COLUMNS` (QUIC-DC, Tables I-IV); NaN is unknown.

    - ``goodput_mbps``: application bytes received over the time the flow was active (``start_s``
      to ``stop_s``); ``throughput_mbps``: frame bytes that left the queue over the same time.
    - ``loss_percent``: packets that entered the queue and never left, of those that entered.
    - ``rtt_mean_ms``, ``rtt_std_ms``: RTT of a packet = the flow's base RTT + the packet's
      queueing delay, seen passively at the bottleneck. It holds no delay inside the hosts (ACK
      delay, pacing), so it is comparable between stacks, and dropped packets have none.
    - ``queue_delay_mean_ms``: mean over the packets that left.

    Without a packet table the means come from the binned series, weighted by throughput, and
    loss and deviation are NaN, which bins do not tell.
    """
    rows = [_row(ds, i) for i in range(ds.sizes["flow"])]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def flow_summaries(ds: xr.Dataset) -> list[dict[str, str | float | None]]:
    """`summary` ready for JSON, without stack and controller; what is unknown is None."""
    rows = summary(ds).drop(columns=["stack", "controller"]).to_dict(orient="records")
    return [
        {
            str(k): None if isinstance(v, float) and not math.isfinite(v) else v
            for k, v in row.items()
        }
        for row in rows
    ]


def _row(ds: xr.Dataset, index: int) -> dict[str, str | float]:
    start_s, stop_s = active_span_s(ds, index)
    active_s = stop_s - start_s
    delay_ms, spread_ms = _queue_delay_ms(ds, index)
    received = float(ds["receiver_bytes"].values[index]) if "receiver_bytes" in ds else math.nan
    # Also what the queue still held when the sender stopped: it belongs to the transfer.
    left_bytes = delivered_bytes(ds, index, -math.inf, math.inf)
    return {
        "label": str(ds["label"].values[index]),
        "stack": str(ds["stack"].values[index]),
        "controller": str(ds["controller"].values[index]),
        "goodput_mbps": received * 8 / 1e6 / active_s,
        "throughput_mbps": left_bytes * 8 / 1e6 / active_s,
        "loss_percent": _loss_percent(ds, index),
        "rtt_mean_ms": float(ds["base_rtt_ms"].values[index]) + delay_ms,
        "rtt_std_ms": spread_ms,
        "queue_delay_mean_ms": delay_ms,
    }


def _loss_percent(ds: xr.Dataset, index: int) -> float:
    if not has_packets(ds):
        return math.nan
    departure_s = ds["packet_departure_s"].values[ds["packet_flow"].values == index]
    return float(np.isnan(departure_s).mean() * 100) if len(departure_s) else math.nan


def _queue_delay_ms(ds: xr.Dataset, index: int) -> tuple[float, float]:
    """Mean and standard deviation of the queueing delay over the packets that left."""
    if has_packets(ds):
        _, _, waited_ms = delivered_packets(ds, index)
        if not len(waited_ms):
            return math.nan, math.nan
        return float(waited_ms.mean()), float(waited_ms.std())
    delay_ms = ds["queue_delay_ms"].values[index]
    seen = np.isfinite(delay_ms)
    weight = np.where(seen, np.nan_to_num(ds["throughput_mbps"].values[index]), 0.0)
    if not weight.sum():
        return math.nan, math.nan
    return float((weight * np.where(seen, delay_ms, 0.0)).sum() / weight.sum()), math.nan
