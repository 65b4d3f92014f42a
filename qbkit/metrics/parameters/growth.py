"""Growth of the window between losses: linear in round trips, or along CUBIC's curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qbkit.metrics.parameters.connection import GRID_PARTS, Connection
from qbkit.metrics.parameters.reductions import WindowReduction
from qbkit.traces.arrays import FloatArray

FEWEST_RTTS = 12.0
"""Shortest span of growth that is judged."""
CLOSE_PACKETS = 1.0
"""Largest error (RMS) of a straight line that fits, unless the noise of the trace is larger."""
CURVE_CLOSE_PACKETS = 0.5
"""The same for a curve, which is more flexible and so must fit better."""
PREFIXES = (1.0, 0.8, 0.6, 0.45, 0.33)
"""Fractions of a span that may follow CUBIC's curve before its Reno-friendly region."""


@dataclass(frozen=True)
class Growth:
    """Growth of the window in one span between two reductions."""

    packets_per_rtt: float
    """Slope of a straight line over round trips; NaN if none fits."""
    cubic_c: float
    """CUBIC's C in packets/s³ (RFC 9438 §4.2); NaN if no such curve fits."""


def growths_of(
    connection: Connection, reductions: Sequence[WindowReduction], until_s: float
) -> list[Growth]:
    """Growth after each reduction, up to the next one or the end of the trace."""
    ends_s = [*(reduction.begin_s for reduction in reductions[1:]), until_s]
    found = [
        _growth(connection, reduction.end_s, end_s)
        for reduction, end_s in zip(reductions, ends_s, strict=False)
    ]
    return [growth for growth in found if growth is not None]


def _growth(connection: Connection, begin_s: float, end_s: float) -> Growth | None:
    from scipy import ndimage  # slow to load

    # In the first round after a reduction, the bytes in flight still rise to the new window.
    begin = int(np.searchsorted(connection.grid_s, begin_s)) + GRID_PARTS
    end = int(np.searchsorted(connection.grid_s, end_s))
    time_s, rtt_s = connection.grid_s[begin:end], connection.rtt_s[begin:end]
    rounds = np.cumsum(connection.min_rtt_s / GRID_PARTS / rtt_s)
    if not len(rounds) or rounds[-1] < FEWEST_RTTS:
        return None
    raw = connection.in_flight_packets[begin:end]
    window = ndimage.median_filter(raw, 2 * GRID_PARTS + 1, mode="nearest")
    noise = _trimmed_rms(raw - window)
    slope, base = np.polyfit(rounds, window, 1)
    straight = _trimmed_rms(window - slope * rounds - base) < max(CLOSE_PACKETS, noise)
    curve = (
        np.nan
        if straight
        else _cubic_c(time_s - time_s[0], window, max(CURVE_CLOSE_PACKETS, noise))
    )
    return Growth(float(slope) if straight else np.nan, curve)


def _cubic_c(time_s: FloatArray, window: FloatArray, close: float) -> float:
    """C of the longest prefix that follows W = C (t - K)³ + W_max while concave; NaN if none."""
    for part in PREFIXES:
        count = int(part * len(time_s))
        if count < FEWEST_RTTS * GRID_PARTS:
            break
        t, w = time_s[:count], window[:count]
        c, k, top = _fit_cubic(t, w)
        # Without enough of the concave side, C and K cannot be separated.
        concave = c > 0 and 0.4 * t[-1] < k < 2 * t[-1]
        if concave and _trimmed_rms(w - c * (t - k) ** 3 - top) < close:
            return c
    return np.nan


def _trimmed_rms(residual: FloatArray) -> float:
    """Root mean square without the largest tenth, which ACKs that arrive together may cause."""
    square = np.sort(residual**2)
    return float(np.sqrt(square[: max(1, int(0.9 * len(square)))].mean()))


def _fit_cubic(time_s: FloatArray, window: FloatArray) -> tuple[float, float, float]:
    """C, K and W_max by least squares; for a given K, the problem is linear in the other two."""
    from scipy import optimize  # slow to load

    def solve(k: float) -> tuple[Any, float]:
        design = np.column_stack([(time_s - k) ** 3, np.ones_like(time_s)])
        found = np.linalg.lstsq(design, window, rcond=None)[0]
        return found, float(((design @ found - window) ** 2).sum())

    span_s = float(time_s[-1])
    step_s = 0.05 * span_s
    tried = np.arange(step_s, 3 * span_s, step_s)
    near = float(tried[int(np.argmin([solve(k)[1] for k in tried]))])
    best = optimize.minimize_scalar(
        lambda k: solve(k)[1], bounds=(near - step_s, near + step_s), method="bounded"
    )
    (c, top), _ = solve(float(best.x))
    return float(c), float(best.x), float(top)
