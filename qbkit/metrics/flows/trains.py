"""Inter-packet gaps and packet trains of a sender, as in "QUIC Steps" (doi 10.1145/3730985)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows.lookup import flow_and_label, has_packets, steady_span_s
from qbkit.traces.arrays import FloatArray, IntArray

TRAIN_GAP_MS = 0.1
"""Packets closer than this to the previous one belong to its train, as in the paper's analysis.

The paper's link has 40 Mbit/s, where it is a third of the time of a full frame.
"""


@dataclass(frozen=True, eq=False)
class PacketTrains:
    """How the packets of a flow arrive at its bottleneck: one by one, or back to back."""

    label: str
    gap_ms: FloatArray
    """Time between each packet and the next; shape (packets - 1,)."""
    train_packets: IntArray
    """Length of the train that each packet belongs to, 1 for a packet alone; shape (packets,)."""
    train_gap_ms: float = TRAIN_GAP_MS
    """Packets closer than this to the previous one belong to its train."""

    @property
    def back_to_back_share(self) -> float:
        """Fraction of packets that follow the previous one within the gap of a train."""
        return float(np.mean(self.gap_ms < self.train_gap_ms))

    def train_quantile(self, quantile: float) -> float:
        """Train length up to which that fraction of the packets lies: figures of the paper."""
        return float(np.quantile(self.train_packets, quantile, method="inverted_cdf"))


def packet_trains(
    ds: xr.Dataset,
    flow: str | int = 0,
    *,
    train_gap_ms: float = TRAIN_GAP_MS,
    skip_start_s: float | None = None,
) -> PacketTrains:
    """Gaps and trains of a flow's packets where they enter the bottleneck's queue.

    Packets closer than ``train_gap_ms`` to the previous one belong to its train. At more than 80
    Mbit/s a paced sender's full frames are closer than the default: choose less there (a third of
    the time of a full frame is 0.04 ms at 100 Mbit/s). The first ``skip_start_s`` are left out, by
    default a fifth of the flow's time. Jitter between sender and bottleneck spreads trains: measure
    with ``jitter_ms=0``. Raises MetricError for an unknown flow, a run without packets, fewer than
    two packets, and a negative gap or time.
    """
    if not train_gap_ms >= 0:
        raise MetricError(f"train_gap_ms is {train_gap_ms:g}; give 0 or more ms")
    index, label = flow_and_label(ds, flow)
    if not has_packets(ds):
        raise MetricError(f"the run has no packets of {label}, from which gaps are computed")
    start_s, stop_s = steady_span_s(ds, index, skip_start_s)
    time_s = np.sort(ds["packet_time_s"].values[ds["packet_flow"].values == index])
    time_s = time_s[(time_s >= start_s) & (time_s < stop_s)]
    if len(time_s) < 2:
        raise MetricError(f"{label} sends {len(time_s)} packets after {start_s:g} s; 2 are needed")
    gap_ms = np.diff(time_s) * 1e3
    return PacketTrains(label, gap_ms, train_lengths(gap_ms, train_gap_ms), train_gap_ms)


def train_lengths(gap_ms: FloatArray, train_gap_ms: float = TRAIN_GAP_MS) -> IntArray:
    """Length of the train of each packet, from the gaps (n,) between n + 1 packets."""
    train = np.concatenate([[0], np.cumsum(gap_ms >= train_gap_ms)])
    return np.bincount(train)[train]
