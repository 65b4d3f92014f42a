"""Loss rate and mean window of a flow: one point of its response function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows import lookup
from qbkit.metrics.flows.jitter import flow_jitter_ms
from qbkit.traces.run.attributes import delay_changes_ms
from qbkit.traces.run.ends import arrived_in_time


@dataclass(frozen=True)
class LossResponse:
    """Loss rate, window and RTT of a flow in its steady state, to compare with models."""

    label: str
    loss_rate: float
    """Fraction of its packets that were lost, from any cause."""
    window_packets: float
    """Mean number of packets in flight."""
    rtt_ms: float
    """Mean RTT, including queueing delay and what the experiment's jitter adds."""


def loss_response(
    ds: xr.Dataset, flow: str | int = 0, *, skip_start_s: float | None = None
) -> LossResponse:
    """Loss rate, mean window and RTT of a flow, from the captures alone.

    The window is the number of packets per second that left the queue times their mean RTT
    (Little's law), so it measures what the controller uses, whatever it calls its window. The first
    ``skip_start_s`` are left out, by default a fifth of the flow's time. Raises MetricError for an
    unknown flow, a run without packets or base RTT, and if nothing was delivered.
    """
    index, label = lookup.flow_and_label(ds, flow)
    if not lookup.has_packets(ds):
        raise MetricError(f"the run has no packets of {label}, from which its window is computed")
    base_ms = lookup.require_rtt(float(ds["base_rtt_ms"].values[index]), label)
    start_s, stop_s = lookup.steady_span_s(ds, index, skip_start_s)
    time_s, left_s = ds["packet_time_s"].values, ds["packet_departure_s"].values
    mine = (ds["packet_flow"].values == index) & lookup.known_fate(ds)
    mine &= (time_s >= start_s) & (time_s < stop_s)
    mine &= np.isnan(left_s) | arrived_in_time(ds)
    out = mine & np.isfinite(left_s)
    if not out.any():
        raise MetricError(f"nothing of {label} arrived from {start_s:g} s to {stop_s:g} s")
    rtt_ms = base_ms + (left_s - time_s)[out] * 1e3 + lookup.ack_delays_ms(ds, index, left_s[out])
    rtt_ms = rtt_ms + delay_changes_ms(ds, left_s[out])
    mean_rtt_ms = float(np.nanmean(rtt_ms)) + flow_jitter_ms(ds, index)
    return LossResponse(
        label=label,
        loss_rate=float(1 - out.sum() / mine.sum()),
        window_packets=float(out.sum() / (stop_s - start_s) * mean_rtt_ms / 1e3),
        rtt_ms=mean_rtt_ms,
    )
