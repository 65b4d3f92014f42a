"""Infers the parameters of implementations from lone flows, and writes parameters.csv.

python data/make.py [NAME ...] [--seeds N]

A NAME is an implementation (``quinn:cubic``) or a stack (``quinn``); without one, all that are
ready here. The network is that of the releases (``releases/make.py``). Stored runs are not run
again, and the rows of other implementations stay, so it can be stopped and started at any time.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from releases.make import DURATION_S, LINK, alone, inferred

import qbkit as qb
from qbkit.errors import QbkitError
from qbkit.store.tables import replace_rows
from qbkit.studies.reproduction import Precision, Recipe, Table

HERE = Path(__file__).parent
SEEDS = 3
"""The fewest that give an interval to a parameter of which a flow shows one sample."""
NETWORK = {
    "rate_mbps": LINK.rate_mbps,
    "rtt_ms": LINK.rtt_ms,
    "buffer_bdp": LINK.buffer_bdp,
    "duration_s": DURATION_S,
}
FIRST_RTTS_MS = {"cases/first-rtt.nc": None, "cases/first-rtt-10.nc": 10}
"""The events of notebook 06, and the first RTT sample that their BBR is given."""
REPRODUCIBLE = {
    "parameters.csv": Table(Precision(digits=5), by=("implementation",)),
    **dict.fromkeys(FIRST_RTTS_MS, Table()),
}
OTHER = {
    "external.csv": "it says how programs were built outside of qbkit",
    "faults.csv": "it names lines of source code, with their evidence",
    "start/one-second.nc": "it holds packets of the run beside it",
}


def again(file: str, row: dict[str, Any]) -> Recipe:
    """How the rows of an implementation, or the events of a flow, are made."""
    if file in FIRST_RTTS_MS:
        return first_rtt(FIRST_RTTS_MS[file])
    return parameters(row["implementation"], int(row["seeds"]))


def parameters(name: str, seeds: int) -> Recipe:
    """A row for each parameter of an implementation."""
    return Recipe([alone(name, seeds)], partial(rows, name))


def rows(name: str, runs: list[xr.Dataset]) -> list[dict[str, Any]]:
    """A row for each parameter, with the lone flows that show it; without numbers of few samples.

    They have no interval: fewer than three samples show them.
    """
    flows = {"implementation": name, "version": version(runs[0], name.partition(":")[0])}
    made = []
    for row in inferred(runs):
        is_rare = row["low"] != row["low"] and pd.notna(pd.to_numeric(row["value"], "coerce"))
        value = float("nan") if is_rare else row["value"]
        made.append({**flows, **NETWORK, "seeds": len(runs), **row, "value": value})
    return made


def version(run: xr.Dataset, stack: str) -> str:
    """The version of a stack; the kernel's for its own stack."""
    if stack == "tcp":
        return f"Linux {run.attrs['kernel_version']}"
    found: str = json.loads(run.attrs["stack_versions"])[stack]
    return found.partition(",")[0]


def first_rtt(first_rtt_ms: float | None) -> Recipe:
    """The events of a BBR alone on a path of 100 ms, whose first RTT sample may be wrong."""
    options = {} if first_rtt_ms is None else {"first_rtt_ms": first_rtt_ms}
    link = qb.Bottleneck(rate_mbps=20, rtt_ms=100, buffer_bdp=1)
    lone = qb.Experiment(
        bottleneck=link, flows=[qb.Flow("qbkit:bbr", options=options)], duration_s=10
    )
    return Recipe([[lone]], lambda runs: runs[0].qb.events())


def main() -> None:
    """Infer one implementation after the other, and write the table after each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, default=HERE / "parameters.csv")
    args = parser.parse_args()
    failed = False
    for name in qb.list_implementations(args.names):
        recipe = parameters(name, args.seeds)
        try:
            made = recipe.made(recipe.runs())
            replace_rows(args.out, pd.DataFrame(made), "implementation")
            print(f"{name}: done", flush=True)
        except QbkitError as error:
            failed = True
            print(f"{name}: {error}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
