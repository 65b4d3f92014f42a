"""What each parameter can be. An estimate outside of that is unknown, not a finding."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """The values that a parameter can have, ends included."""

    least: float
    most: float = math.inf

    def __contains__(self, value: float) -> bool:
        return self.least <= value <= self.most

    def clip(self, value: float) -> float:
        """The nearest value of the range; NaN stays NaN."""
        return min(max(value, self.least), self.most) if math.isfinite(value) else value


LEAST_PACKETS = 1.0
LARGEST_FRAME_BYTES = 65_549.0
"""The longest IP packet in an Ethernet frame."""
ANY = Range(0.0)
RANGES: dict[str, Range] = {
    "initial_window_packets": Range(LEAST_PACKETS),
    "slow_start_exit_packets": Range(LEAST_PACKETS),
    "burst_packets": Range(LEAST_PACKETS),
    "packet_bytes": Range(LEAST_PACKETS, LARGEST_FRAME_BYTES),
    # A window that is larger after a loss was not reduced by it.
    "decrease_factor": Range(0.0, 1.0),
    "reverted_reductions_percent": Range(0.0, 100.0),
    "limited_percent": Range(0.0, 100.0),
    # A probe sends faster than the path delivers, a drain more slowly.
    "probe_up_gain": Range(1.0),
    "probe_down_gain": Range(0.0, 1.0),
}
"""By parameter; those not named are `ANY`: not negative."""


def range_of(name: str) -> Range:
    """The values that a parameter can have."""
    return RANGES.get(name, ANY)
