"""How long the start of two flows lasts in a deep buffer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import xarray as xr
from runs import Row, beside

import qbkit as qb
from qbkit.studies.reproduction import Recipe

PAIRS = (
    ("tcp:cubic", "tcp:bbr"),
    ("tcp:reno", "tcp:cubic"),
    ("quinn:cubic", "tcp:cubic"),
    ("lsquic:cubic", "tcp:cubic"),
    ("picoquic:cubic", "tcp:cubic"),
    ("msquic:bbr", "tcp:cubic"),
    ("google-quiche:cubic", "quiche:reno"),
    ("tcp:reno", "tcp:bbr"),
    ("google-quiche:cubic", "tcp:bbr"),
    ("quinn:bbr", "tcp:cubic"),
    ("tquic:bbr", "tcp:cubic"),
)
"""Google's CUBIC against quiche's Reno is an outlier of IMC'22, 3.2, there with Chromium."""
RATES_MBPS = (20, 50)
"""Those of ``data/interactions``: deep.yaml and start.yaml."""
RTT_MS, BUFFER_BDP = 20, 5
LASTING_S = 120
PARTS_S = ((0, 25), (20, 40), (60, 120))
"""The trials of start.yaml, the settled part of those of deep.yaml, and what follows."""
STEP_S = 20
"""Length of the settled part of those of deep.yaml."""


def settled(seeds: int) -> Iterator[Recipe]:
    """A row for each pair and rate: the first flow's share in parts of long trials.

    The last two columns are the least and the most of any 20 s of a trial from 60 s on.
    """
    for rate_mbps, (first, second) in product(RATES_MBPS, PAIRS):
        link = qb.Bottleneck(rate_mbps=rate_mbps, rtt_ms=RTT_MS, buffer_bdp=BUFFER_BDP)
        both = beside(first, second, seeds, link, LASTING_S)
        keys = {"rate_mbps": rate_mbps, "flow": first, "other": second}
        yield Recipe([both], measure, keys)


def measure(runs: list[xr.Dataset]) -> Row:
    """The shares of all parts."""
    row: Row = {}
    for begin_s, end_s in PARTS_S:
        shares = [_share(run, begin_s, end_s) for run in runs]
        name = f"share_{begin_s}_to_{end_s}_s"
        row |= {name: np.mean(shares), f"{name}_sd": np.std(shares, ddof=1)}
    steps_s = range(PARTS_S[-1][0], LASTING_S, STEP_S)
    later = [_share(run, begin_s, begin_s + STEP_S) for run in runs for begin_s in steps_s]
    return row | {"least_later_share": min(later), "most_later_share": max(later)}


def _share(run: xr.Dataset, begin_s: float, end_s: float) -> float:
    """The first flow's share in a part of a run."""
    mbps = run.throughput_mbps.sel(time=slice(begin_s, end_s)).sum("time")
    return float(mbps[0] / mbps.sum())
