"""Measures shares of a link over its buffer and over the number of flows, and writes shares.csv.

python data/shares/make.py [SENDER ...]

One flow of the sender competes with flows of another controller: BBRs with CUBIC on the link of
Ware et al. (IMC '19), CUBIC with Reno. ``buffer``: beside one flow, 0.1 to 64 BDP. ``flows``:
beside 1 to 99 flows, 4 BDP. A SENDER is one of `PAIRS`; without one, all. Runs are stored as
always, and the rows of a sender are written when all of its runs are there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.execution.many import run_every
from qbkit.metrics.evaluation.measures import Part, queue_mean_ms, share
from qbkit.store.tables import replace_rows
from qbkit.studies.reproduction import Precision, Recipe, Table

TABLE = Path(__file__).with_name("shares.csv")
PAIRS = {
    "tcp:bbr": "tcp:cubic",
    "tcp:cubic": "tcp:reno",
    "quinn:bbr": "tcp:cubic",
    "picoquic:bbr": "tcp:cubic",
}
"""Sender → what it competes with."""
RTT_MS = 40
SEEDS = (1, 2, 3)
BUFFERS_BDP = (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)
OTHERS = (1, 3, 7, 15, 31, 63, 99)
FROM_S = 20.0
"""The share is that of the rest of a run."""
SPANS_S = {"buffer": 120.0, "flows": 60.0}
RATES_MBPS = {"buffer": 10, "flows": 50}
"""At 50 Mbit/s each of 100 flows has eight packets in path and queue."""
REPRODUCIBLE = {TABLE.name: Table(Precision(digits=5))}


def again(table: str, row: dict[str, Any]) -> Recipe:
    """How a row is made."""
    return recipe(row["over"], row["sender"], row["others"], row["buffer_bdp"], row["seed"])


def recipe(over: str, sender: str, others: int, buffer_bdp: float, seed: int) -> Recipe:
    """The share of one flow beside others, and the queue that all of them keep."""
    link = qb.Bottleneck(rate_mbps=RATES_MBPS[over], rtt_ms=RTT_MS, buffer_bdp=buffer_bdp)
    flows = [sender, *[PAIRS[sender]] * others]
    experiment = qb.Experiment(bottleneck=link, flows=flows, duration_s=SPANS_S[over], seed=seed)
    keys = {"over": over, "sender": sender, "beside": PAIRS[sender], "others": others}
    network = {"rate_mbps": RATES_MBPS[over], "rtt_ms": RTT_MS, "buffer_bdp": buffer_bdp}
    return Recipe(
        [[experiment]], partial(measured, SPANS_S[over]), {**keys, **network, "seed": seed}
    )


def measured(end_s: float, runs: list[xr.Dataset]) -> dict[str, Any]:
    """What the table says of a run."""
    part = Part(runs[0], [0], FROM_S, end_s)
    costs = {"run": runs[0].attrs["hash"], "cpu_s": runs[0].attrs["cpu_s"]}
    return {"share": share(part), "queue_ms": queue_mean_ms(part), **costs}


def cells(sender: str) -> Iterator[Recipe]:
    """All runs of a sender."""
    for seed in SEEDS:
        for buffer_bdp in BUFFERS_BDP:
            yield recipe("buffer", sender, 1, buffer_bdp, seed)
        for others in OTHERS:
            yield recipe("flows", sender, others, 4, seed)


def main(senders: list[str]) -> None:
    """Measure one sender after the other, and write the table after each."""
    for sender in senders:
        recipes = list(cells(sender))
        outcomes = run_every([r.specs[0] for r in recipes], progress=True)
        rows = [r.made([run]) for r, run in zip(recipes, outcomes, strict=True)]
        replace_rows(TABLE, pd.DataFrame(rows), "sender")


if __name__ == "__main__":
    main(sys.argv[1:] or list(PAIRS))
