"""Interval of the deviation of two envelopes, by bootstrap over trials."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qbkit.metrics.envelopes.envelope import Definition
from qbkit.traces.arrays import FloatArray

NAN_INTERVAL = (math.nan, math.nan)


def deviation_ci(
    tests: Sequence[FloatArray],
    references: Sequence[FloatArray],
    rule: Definition,
    confidence: float,
    draws: int,
    rng_seed: int,
) -> tuple[float, float]:
    """Interval of the deviation by bootstrap over trials; NaN if a side has a single trial."""
    if min(len(tests), len(references)) < 2:
        return NAN_INTERVAL
    rng = np.random.default_rng(rng_seed)
    (ours, most), (theirs, largest) = (_drawn(s, rule, draws, rng) for s in (tests, references))
    scale = np.maximum(most, largest) if rule.normalises else np.ones_like(most)
    found = np.hypot(*((ours - theirs) / np.where(scale > 0, scale, 1.0)).T)
    low, high = np.quantile(found, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _drawn(
    points: Sequence[FloatArray], rule: Definition, draws: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """(draws, 2) each: centroid, and largest magnitude along each axis, of each draw's trials."""
    chosen = rng.integers(0, len(points), (draws, len(points) if rule.pools else 1))
    counts = np.array([len(p) for p in points], dtype=float)[chosen]
    sums = np.array([p.sum(axis=0) for p in points])[chosen].sum(axis=1)
    largest = np.array([np.abs(p).max(axis=0) for p in points])[chosen].max(axis=1)
    return sums / counts.sum(axis=1)[:, None], largest


def holding(interval: tuple[float, float], value: float) -> tuple[float, float]:
    """The interval, widened to hold the value where it does not."""
    if math.isnan(interval[0]):
        return interval
    return min(interval[0], value), max(interval[1], value)
