"""What a connection shows of its controller, in numbers that hardly depend on the path.

They are those of `qbkit.metrics.parameters`, less what belongs to the stack (packet sizes, pacing,
the initial window), and four that say how regular they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qbkit.errors import MetricError
from qbkit.metrics.parameters.connection import GRID_PARTS, Connection
from qbkit.metrics.parameters.growth import growths_of
from qbkit.metrics.parameters.phases import phases_of
from qbkit.metrics.parameters.ranges import range_of
from qbkit.metrics.parameters.reductions import REDUCES, window_reductions_of
from qbkit.metrics.parameters.start import start_of
from qbkit.traces.arrays import FloatArray

MOST_WINDOW = 8.0
LEAST_S, LEAST_RTTS = 5.0, 50.0
"""A connection is observed for both after its slow start, or it is too short."""


@dataclass(frozen=True)
class Feature:
    """A number that a connection shows, if what it describes happened."""

    meaning: str
    close: float
    """Values this far apart are close to each other."""
    is_ratio: bool = False
    """Whether distance is that of the logarithms."""

    def scaled(self, value: float) -> float:
        """The value on an axis where 1 is the distance of close values."""
        return (math.log(max(value, 1e-6)) if self.is_ratio else value) / self.close


FEATURES = {
    "decrease_factor": Feature("fraction of the window left after a loss", 0.03),
    "decrease_spread": Feature("spread of these fractions (interquartile)", 0.05),
    "kept_percent": Feature("losses that leave the window as it was (%)", 10.0),
    "straight_percent": Feature("spans between losses with linear growth (%)", 15.0),
    "curved_percent": Feature("spans between losses along a cubic curve (%)", 15.0),
    "increase_packets_per_rtt": Feature("packets per RTT that the line adds", 0.1),
    "cubic_c": Feature("C of the curve (packets/s³)", 0.2, is_ratio=True),
    "probe_up_gain": Feature("sending rate over delivery rate while it probes", 0.03),
    "probe_down_gain": Feature("the same while it drains", 0.03),
    "probe_cycle_rtts": Feature("RTTs from probe to probe", 0.15, is_ratio=True),
    "probe_rtt_interval_s": Feature("seconds from ProbeRTT to ProbeRTT", 0.1, is_ratio=True),
    "probe_rtt_duration_ms": Feature("length of a ProbeRTT (ms)", 0.15, is_ratio=True),
    "least_window_packets": Feature(
        "fewest packets in flight for an RTT, up to 8", 0.2, is_ratio=True
    ),
}
"""Name → what it is. Names that `qbkit.metrics.PARAMETERS` has mean the same there."""


def features_of(connection: Connection) -> dict[str, float]:
    """The features of a connection; NaN where what they describe did not happen.

    Raises MetricError if the connection is too short to tell, or if nothing happened in it that
    separates controllers: no loss after slow start, and no probing.
    """
    start = start_of(connection)
    observed_s = float(connection.grid_s[-1] - start.settled_s)
    needed_s = max(LEAST_S, LEAST_RTTS * connection.min_rtt_s)
    if observed_s < needed_s:
        raise MetricError(
            f"{connection.label} is seen for {max(observed_s, 0):.1f} s after its slow start; a "
            f"controller needs {needed_s:.1f} s or more to show"
        )
    found = {**_at_losses(connection, start.settled_s), **_probing(connection, start.settled_s)}
    if not any(map(math.isfinite, found.values())):
        raise MetricError(
            f"in {observed_s:.0f} s {connection.label} has no loss after its slow start and does "
            "not probe; only such events tell controllers apart"
        )
    found["least_window_packets"] = _least_window(connection, start.settled_s)
    return {name: _possible(name, found.get(name, math.nan)) for name in FEATURES}


def _at_losses(connection: Connection, after_s: float) -> dict[str, float]:
    """How the window falls at losses, and grows between them."""
    reductions = window_reductions_of(connection, after_s)
    growths = growths_of(connection, reductions, connection.grid_s[-1])
    factors = np.array([r.factor for r in reductions if not r.reverted])
    kept = np.array([r.reverted or r.factor > REDUCES for r in reductions], dtype=float)
    lines = np.array([growth.packets_per_rtt for growth in growths])
    curves = np.array([growth.cubic_c for growth in growths])
    return {
        "decrease_factor": _median(factors),
        "decrease_spread": _range(factors, 0.25, 0.75) if len(factors) > 2 else math.nan,
        "kept_percent": 100 * _mean(kept),
        "straight_percent": 100 * _mean(np.isfinite(lines)),
        "curved_percent": 100 * _mean(np.isfinite(curves)),
        "increase_packets_per_rtt": _median(lines),
        "cubic_c": _median(curves),
    }


def _probing(connection: Connection, after_s: float) -> dict[str, float]:
    """Cycles of probing for bandwidth, and probes for the RTT."""
    phases = phases_of(connection, after_s)
    repeats = len(phases.probe_rtt_begin_s) > 1
    durations_s = phases.probe_rtt_duration_s if repeats else np.empty(0)
    return {
        "probe_up_gain": _median(phases.up_gain),
        "probe_down_gain": _median(phases.down_gain),
        "probe_cycle_rtts": _median(phases.cycle_rtts),
        "probe_rtt_interval_s": _median(np.diff(phases.probe_rtt_begin_s)),
        "probe_rtt_duration_ms": 1e3 * _median(durations_s),
    }


def _least_window(connection: Connection, after_s: float) -> float:
    """The fewest packets in flight for an RTT; above `MOST_WINDOW` they depend on the path."""
    window = connection.in_flight_packets[connection.grid_s > after_s]
    rolled = np.median(np.lib.stride_tricks.sliding_window_view(window, GRID_PARTS), axis=1)
    return min(float(rolled.min()), MOST_WINDOW)


def _possible(name: str, value: float) -> float:
    return value if value in range_of(name) else math.nan


def _median(values: FloatArray) -> float:
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else math.nan


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else math.nan


def _range(values: FloatArray, low: float, high: float) -> float:
    ends = np.quantile(values, [low, high])
    return float(ends[1] - ends[0])
