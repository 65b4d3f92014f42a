"""What a window that losses reduce does between two of them, and what holds one without losses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from qbkit.metrics.parameters.connection import GRID_PARTS, Connection, between
from qbkit.metrics.parameters.limits import STILL_PACKETS
from qbkit.metrics.parameters.model import PEAK_RTTS
from qbkit.metrics.parameters.reductions import WindowReduction
from qbkit.metrics.parameters.rules import STEEP
from qbkit.traces.arrays import FloatArray

FEW_RTTS = (3.0, 12.0)
"""Losses this far apart leave no time for a line or a curve, only for a slope."""
LEAST_BACK = 4.0
"""Fewest packets that a window regains for its way back to be seen."""
C = 0.4
"""CUBIC's, packets/s³ (RFC 9438, section 5.1)."""
CURVES = 1.5
"""Growth below this times CUBIC's in the same time may be its: over a long RTT that is steep."""
MOST_OF = 0.9
"""A window is back when it has regained this part of what it will, and CUBIC then needs
(1 - (1 - `MOST_OF`)^(1/3)) of its K for it."""
CAPPED_PERCENT = 50.0
HELD_PART = 0.05
"""Largest change of a window that something holds, from one half of the time to the other."""
SETTLED_RTTS = (2.0, 2.5)
"""When a window that was reduced is used again, also by a sender that paced below it at first."""
LINEAR = (0.35, 0.65)
"""Part of its growth after half of its time, if a window grows along a line."""


def between_losses(
    c: Connection, reductions: Sequence[WindowReduction], limited_percent: float
) -> dict[str, float]:
    """Growth where losses are close to each other, the way back to the last, and a cap."""
    from scipy import ndimage  # slow to load

    window = ndimage.median_filter(c.in_flight_packets, GRID_PARTS + 1, mode="nearest")
    rounds = np.cumsum(c.min_rtt_s / GRID_PARTS / c.rtt_s)
    slopes: list[float] = []
    back: list[float] = []
    for this, following in itertools.pairwise(reductions):
        span = between(c.grid_s, this.end_s, following.begin_s)
        grown, rtts = window[span], rounds[span]
        if len(grown) < 2 * GRID_PARTS:
            continue
        low = int(np.argmin(grown))
        took = float(rtts[-1] - rtts[low])
        slope = float(grown[-1] - grown[low]) / max(took, 1.0)
        half = low + int(np.searchsorted(rtts[low:], rtts[low] + took / 2))
        more = float(grown[-1] - grown[low])
        part = float(grown[half] - grown[low]) / max(more, 1.0)
        took_s = (len(grown) - low) * c.min_rtt_s / GRID_PARTS
        curved = more < CURVES * _cubic_packets(this.before_packets - grown[low], took_s)
        if took < FEW_RTTS[1] and slope > STEEP and LINEAR[0] < part < LINEAR[1] and not curved:
            slopes.append(slope)
        if len(grown) > FEW_RTTS[1] * GRID_PARTS:
            back.append(_way_back(c, grown))
    found = {}
    if slopes and 2 * len(slopes) > len(reductions) - 1:
        found["steep_increase_packets_per_rtt"] = float(np.median(slopes))
    if kept := _settled(c, reductions):
        found["kept_two_rtts"] = float(np.median(kept))
    if known := [part for part in back if np.isfinite(part)]:
        found["back_at_loss_part"] = float(np.median(known))
    if limited_percent > CAPPED_PERCENT or _is_held(c, window):
        found["window_cap_packets"] = float(np.median(c.in_flight_packets))
    return found


def _cubic_packets(lost: float, took_s: float) -> float:
    """What CUBIC regains of so many packets after a time (RFC 9438, equation 1)."""
    k_s = (max(lost, 0.0) / C) ** (1 / 3)
    return C * float((took_s - k_s) ** 3 + k_s**3)


def _settled(c: Connection, reductions: Sequence[WindowReduction]) -> list[float]:
    """Part of its window that is there a while after each loss but the last."""
    kept = []
    for this, following in itertools.pairwise(reductions):
        rtt_s = float(np.interp(this.end_s, c.grid_s, c.rtt_s))
        begin_s, end_s = (this.end_s + rtts * rtt_s for rtts in SETTLED_RTTS)
        window = c.in_flight_packets[between(c.grid_s, begin_s, end_s)]
        if len(window) and end_s < following.begin_s:
            kept.append(float(np.median(window)) / this.before_packets)
    return kept


def _is_held(c: Connection, window: FloatArray) -> bool:
    """Whether, for most of the time, the window does not grow, without a loss.

    Nor may packets arrive late, which many take for lost. A receiver that reads slowly holds the
    window, though it moves with each update of flow control; where these are few, what is in flight
    comes and goes, and only the most of it stays.
    """
    last_s = [float(c.sent_s[0]), *c.loss_detected_s[-1:], *c.overtaken_s[-1:]]
    since_s = max(last_s) + PEAK_RTTS * c.min_rtt_s
    later = c.grid_s > since_s
    if later.mean() < CAPPED_PERCENT / 100:
        return False
    early, late = (np.quantile(half, [0.5, 1.0]) for half in np.array_split(window[later], 2))
    return bool((np.abs(late - early) <= np.maximum(STILL_PACKETS, HELD_PART * early)).any())


def _way_back(c: Connection, grown: FloatArray) -> float:
    """When most of what a window regains until the middle of a span is back, over CUBIC's K."""
    third = len(grown) // 3
    most = float(np.median(grown[third : 2 * third]))
    least = float(grown[:GRID_PARTS].min())
    if most - least < LEAST_BACK:
        return math.nan
    at = int(np.argmax(grown >= least + MOST_OF * (most - least)))
    k_s = ((most - least) / C) ** (1 / 3) * (1 - (1 - MOST_OF) ** (1 / 3))
    return float(at * c.min_rtt_s / GRID_PARTS / k_s)
