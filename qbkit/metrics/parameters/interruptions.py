"""What a lone sender does after an interruption: a pause of its application, or an outage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from qbkit.metrics.parameters.connection import Connection
from qbkit.metrics.parameters.probe_path import ProbePath
from qbkit.traces.run.attributes import spec_of

PAUSE_S, PAUSE_RTTS = 0.3, 5.0
"""A gap between packets is a pause if it is longer than both, and nothing was lost before it."""
BEFORE_RTTS = 20.0
"""The window before is the most in flight in so many round trips."""
MOST = 0.9
"""Quantile that stands for the most."""
ROUND = 0.9
"""Part of a round trip: what leaves in it was let go before the first ACK came back."""
FEWEST_PACED = 6
"""Packets whose rate after a pause is judged: more than leave at once."""


def after_interruptions(c: Connection, run: xr.Dataset) -> dict[str, float]:
    """How much of a window is left after pauses and outages, each the median of all of a run."""
    parts: dict[str, list[float]] = {}
    if _has_app(run):
        parts["kept_after_pause"] = _after_pauses(c)
        parts["rate_after_pause"] = _rates_after_pauses(c)
    if outages := outages_s(run):
        parts["kept_after_outage"] = _after_outages(c, outages)
    return {name: float(np.median(of_each)) for name, of_each in parts.items() if of_each}


def outages_s(run: xr.Dataset) -> list[tuple[float, float]]:
    """Begin and length of each outage of a run's path; those of a `ProbePath` are bursts."""
    link = spec_of(run).get("bottleneck", {})
    times = (link.get("outages") or {}).get("times", ())
    return [] if ProbePath.of(run) else [(begin_s, length_s) for begin_s, length_s in times]


def _has_app(run: xr.Dataset) -> bool:
    flows = spec_of(run).get("flows") or [{}]
    return bool(flows[0].get("app"))


def pauses_s(c: Connection) -> list[tuple[float, float]]:
    """From the last packet before each pause of an application to the first after it."""
    after = np.flatnonzero(np.diff(c.sent_s) > max(PAUSE_S, PAUSE_RTTS * c.min_rtt_s)) + 1
    lossy = c.loss_detected_between(c.sent_s[after - 1], c.sent_s[after])
    return [(float(c.sent_s[k - 1]), float(c.sent_s[k])) for k in after[~lossy]]


def _after_pauses(c: Connection) -> list[float]:
    """What leaves in the first round after each pause, over what was in flight before it."""
    ends = pauses_s(c)
    parts = [_part(c, low_s, high_s, high_s + ROUND * c.min_rtt_s) for low_s, high_s in ends]
    return [part for part in parts if part]


def _rates_after_pauses(c: Connection) -> list[float]:
    """Sending rate over the link's in the first round after each pause, 1 at most."""
    if c.link is None:
        return []
    rates = []
    for _, begin_s in pauses_s(c):
        low, high = np.searchsorted(c.sent_s, [begin_s, begin_s + ROUND * c.min_rtt_s])
        if high - low >= FEWEST_PACED:
            took_s = max(float(c.sent_s[high - 1] - c.sent_s[low]), 1e-6)
            bits = (high - low - 1) * c.packet_bytes * 8
            rates.append(min(bits / took_s / (c.link.rate_mbps * 1e6), 1.0))
    return rates


def _after_outages(c: Connection, times: Sequence[tuple[float, float]]) -> list[float]:
    """The same for the round after the first ACK that comes after each outage."""
    found = []
    for begin_s, length_s in times:
        after = c.delivered_s > begin_s + length_s  # a receiver's own probes are no ACKs
        if after.any():
            ack_s = float(c.acked_or_lost_s[after].min())
            found.append(_part(c, begin_s, ack_s, ack_s + c.min_rtt_s))
    return [part for part in found if part]


def _part(c: Connection, before_s: float, begin_s: float, end_s: float) -> float:
    """Packets sent from one time to another over those in flight before; 0 if there were none."""
    earlier = (c.grid_s > before_s - BEFORE_RTTS * c.min_rtt_s) & (c.grid_s < before_s)
    if not earlier.any():
        return 0.0
    most = float(np.quantile(c.in_flight_packets[earlier], MOST))
    sent = int(((c.sent_s >= begin_s) & (c.sent_s <= end_s)).sum())
    return min(sent / most, 1.0) if most else 0.0
