"""Times at a load's client, which the capture at the bottleneck does not have."""

from __future__ import annotations

import xarray as xr

from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.attributes import delay_changes_ms


def base_rtt_ms(load: xr.Dataset, at_s: FloatArray) -> FloatArray:
    """The base RTT of a load's path (ms) at each time."""
    found: FloatArray = float(load.attrs["rtt_ms"]) + delay_changes_ms(load, at_s)
    return found


def client_sent_s(load: xr.Dataset) -> FloatArray:
    """When the client sent its packets: half an RTT before they reach the bottleneck."""
    seen_s: FloatArray = load["ack_time_s"].values
    return seen_s - base_rtt_ms(load, seen_s) / 2e3
