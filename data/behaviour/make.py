"""How implementations that model their path behave where it changes, and writes behaviour.csv.

python data/behaviour/make.py [NAME ...]

A NAME is an implementation (``quinn:bbr``) or a stack (``quinn``); without one, all BBRs that are
ready here. Each runs alone on the path of `qbkit.studies.probing` for the link of
``parameters.csv``: it becomes slower, fast again, and loses a burst. Stored runs are not run again,
and the rows of other implementations stay, so it can be stopped and started at any time.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.metrics.maps.families import kernel_counterpart
from qbkit.metrics.parameters.behaviour import behaviour_of
from qbkit.store.tables import replace_rows
from qbkit.studies.probing import probing
from qbkit.studies.reproduction import Precision, Recipe, Table

HERE = Path(__file__).parent
LINK = qb.Bottleneck(rate_mbps=20, rtt_ms=50, buffer_bdp=1)
SEEDS = 2
REPRODUCIBLE = {"behaviour.csv": Table(Precision(digits=5), by=("implementation",))}


def again(file: str, row: dict[str, Any]) -> Recipe:
    """How the rows of an implementation are made."""
    return recipe(row["implementation"])


def recipe(name: str) -> Recipe:
    """A row for each behaviour that an implementation shows."""
    return Recipe([probing(name, LINK, seeds=SEEDS)], partial(rows, name))


def rows(name: str, runs: list[xr.Dataset]) -> list[dict[str, Any]]:
    """A row for each behaviour: the median of the runs, the least and the greatest."""
    stack = name.partition(":")[0]
    versions = json.loads(runs[0].attrs["stack_versions"])
    version = f"Linux {runs[0].attrs['kernel_version']}" if stack == "tcp" else versions[stack]
    path = {"rate_mbps": LINK.rate_mbps, "rtt_ms": LINK.rtt_ms, "seeds": SEEDS}
    return [
        {
            "implementation": name,
            "version": version.partition(",")[0],
            **path,
            "behaviour": found.name,
            "value": found.word or found.value,
            "low": found.low,
            "high": found.high,
            "unit": found.unit,
        }
        for found in behaviour_of(runs)
        if found.known
    ]


def main(names: list[str]) -> None:
    """One implementation after the other; the table is written after each."""
    for name in qb.list_implementations(names):
        if kernel_counterpart(name) == "tcp:bbr":
            made = recipe(name)
            table = pd.DataFrame(made.made(made.runs()))
            replace_rows(HERE / "behaviour.csv", table, "implementation")
            print(f"{name}: done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
