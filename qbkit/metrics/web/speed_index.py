"""Speed Index: how quickly a page's visible part fills."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from qbkit.errors import MetricError, StoreError
from qbkit.metrics.arrays import row


def speed_index(time_s: ArrayLike, progress_percent: ArrayLike) -> float:
    """Speed Index in s of screenshots at these times since the navigation.

    ``progress_percent`` is the visual progress of each, from 0 to 100. Before the first screenshot
    the page is white. As Lighthouse's speedline defines it (speed-index.js): the time of the first
    progress, and from then on the integral of what is missing. NaN if there never is any progress.

    >>> speed_index([1.0, 2.0, 4.0], [50, 80, 100])  # 1 + 1 * 0.5 + 2 * 0.2
    1.9
    """
    time = row("time_s", time_s)
    missing = 1 - row("progress_percent", progress_percent) / 100
    if len(time) != len(missing):
        raise MetricError("give as many times as values of progress")
    painted = np.flatnonzero(missing < 1)
    if not len(painted):
        return float("nan")
    first = painted[0]
    return float(time[first] + np.sum(np.diff(time[first:]) * missing[first:-1]))


def page_speed_index(run: xr.Dataset) -> float:
    """Speed Index in s of a page load, NaN if its browser took no screenshots.

    Raises StoreError for a run that is no page load.
    """
    if "page_load_time_s" not in run:
        raise StoreError("this run is no page load, so it has no Speed Index")
    if "visual_progress_percent" not in run:
        return float("nan")
    return speed_index(run.screenshot_time_s, run.visual_progress_percent)
