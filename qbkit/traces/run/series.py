"""Sums, means and last values over regular bins of time."""

from __future__ import annotations

import numpy as np

from qbkit.traces.arrays import FloatArray, IntArray


class Bins:
    """Regular bins of ``width_s`` from 0 to ``duration_s``."""

    def __init__(self, width_s: float, duration_s: float) -> None:
        self.width_s = width_s
        self.count = max(1, int(np.ceil(duration_s / width_s - 1e-9)))

    @property
    def left_s(self) -> FloatArray:
        """Left edges, s."""
        return np.round(np.arange(self.count) * self.width_s, 9)

    def sums(self, time_s: FloatArray, values: FloatArray | None = None) -> FloatArray:
        """Sum of the values (or count) of the events in each bin; ignores events outside."""
        index = self.index(time_s)
        inside = index >= 0
        weights = None if values is None else values[inside]
        return np.bincount(index[inside], weights, self.count).astype(np.float64)

    def index(self, time_s: FloatArray) -> IntArray:
        """The bin of each time; -1 outside."""
        # Half a nanosecond: 0.3 / 0.1 is slightly less than 3, yet 0.3 s begins the bin.
        index = np.floor((time_s + 0.5e-9) / self.width_s)
        return np.where((index >= 0) & (index < self.count), index, -1).astype(np.int64)

    def last(self, time_s: FloatArray, values: FloatArray) -> FloatArray:
        """The last known value at the end of each bin; NaN before the first."""
        known = np.isfinite(values)
        time_s, values = time_s[known], values[known]
        ends_s = self.left_s + self.width_s + 0.5e-9
        index = np.searchsorted(time_s, ends_s, "right") - 1
        if not len(values):
            return np.full(self.count, np.nan)
        return np.where(index >= 0, values[np.maximum(index, 0)], np.nan)
