"""HTTP/3 against HTTP/2 for URLs that were measured in real time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from qbkit.metrics.web.loads import TIME, median_difference

FEWEST_LOADS = 2


def url_differences(loads: xr.Dataset) -> pd.DataFrame:
    """One row per URL of the dataset of `qbkit.measure_urls`: medians, and their difference.

    Columns: ``url``, ``h2_loads`` and ``h3_loads`` (counted ones), ``h2_median_s`` and
    ``h3_median_s`` of the time to last byte, ``difference_percent`` of H3's median to H2's with its
    95 % bootstrap interval ``low_percent`` and ``high_percent``. NaN where a protocol has no load,
    or, for the difference, fewer than two.
    """
    return pd.DataFrame([_row(loads, url) for url in dict.fromkeys(loads["url"].values.tolist())])


def _row(loads: xr.Dataset, url: str) -> dict[str, Any]:
    mine = loads["url"].values == url
    times = {p: loads[TIME].values[mine & (loads["protocol"].values == p)] for p in ("h2", "h3")}
    counts = {f"{p}_loads": len(found) for p, found in times.items()}
    medians = {f"{p}_median_s": _median(found) for p, found in times.items()}
    difference = (np.nan,) * 3
    if min(counts.values()) >= FEWEST_LOADS:
        difference = median_difference(times["h3"], times["h2"])
    names = ("difference_percent", "low_percent", "high_percent")
    return {"url": url, **counts, **medians, **dict(zip(names, difference, strict=True))}


def _median(found: np.ndarray) -> float:
    return float(np.median(found)) if len(found) else np.nan
