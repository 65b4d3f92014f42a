"""How long the start of two flows lasts in a deep buffer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from runs import Row, beside

import qbkit as qb

PAIRS = (
    ("tcp:cubic", "tcp:bbr"),
    ("tcp:reno", "tcp:cubic"),
    ("quinn:cubic", "tcp:cubic"),
    ("lsquic:cubic", "tcp:cubic"),
    ("picoquic:cubic", "tcp:cubic"),
    ("msquic:bbr", "tcp:cubic"),
    ("google-quiche:cubic", "quiche:reno"),
)
"""The last one is an outlier of IMC'22, 3.2, there with Chromium."""
RATES_MBPS = (20, 50)
"""Those of ``data/interactions``: deep.yaml and start.yaml."""
RTT_MS, BUFFER_BDP = 20, 5
LASTING_S = 120
PARTS_S = ((0, 25), (20, 40), (60, 120))
"""The trials of start.yaml, the settled part of those of deep.yaml, and what follows."""


def settled(seeds: int) -> Iterator[Row]:
    """A row for each pair and rate: the first flow's share in parts of long trials."""
    for rate_mbps, (first, second) in product(RATES_MBPS, PAIRS):
        link = qb.Bottleneck(rate_mbps=rate_mbps, rtt_ms=RTT_MS, buffer_bdp=BUFFER_BDP)
        runs = beside(first, second, seeds, link, LASTING_S)
        row: Row = {"rate_mbps": rate_mbps, "flow": first, "other": second}
        for begin_s, end_s in PARTS_S:
            parts = [
                run.throughput_mbps.sel(time=slice(begin_s, end_s)).sum("time") for run in runs
            ]
            shares = [float(mbps[0] / mbps.sum()) for mbps in parts]
            name = f"share_{begin_s}_to_{end_s}_s"
            row |= {name: np.mean(shares), f"{name}_sd": np.std(shares, ddof=1)}
        yield row
