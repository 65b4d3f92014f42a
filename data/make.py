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
from pathlib import Path

import pandas as pd
import xarray as xr
from releases.make import DURATION_S, LINK, alone, inferred

import qbkit as qb
from qbkit.errors import QbkitError
from qbkit.store.tables import replace_rows

HERE = Path(__file__).parent
SEEDS = 3
"""The fewest that give an interval to a parameter of which a flow shows one sample."""
NETWORK = {
    "rate_mbps": LINK.rate_mbps,
    "rtt_ms": LINK.rtt_ms,
    "buffer_bdp": LINK.buffer_bdp,
    "duration_s": DURATION_S,
}


def main() -> None:
    """Infer one implementation after the other, and write the table after each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, default=HERE / "parameters.csv")
    args = parser.parse_args()
    failed = False
    for name in qb.list_implementations(args.names):
        try:
            replace_rows(args.out, rows(name, args.seeds), "implementation")
            print(f"{name}: done", flush=True)
        except QbkitError as error:
            failed = True
            print(f"{name}: {error}", flush=True)
    sys.exit(failed)


def rows(name: str, seeds: int) -> pd.DataFrame:
    """A row for each parameter, with the lone flows that show it; without numbers of few samples.

    They have no interval: fewer than three samples show them.
    """
    runs = alone(name, seeds)
    flows = {"implementation": name, "version": version(runs[0], name.partition(":")[0])}
    table = inferred(runs).assign(**flows, **NETWORK, seeds=seeds)
    number = pd.to_numeric(table["value"], errors="coerce").notna()
    table["value"] = table["value"].mask(number & table["low"].isna())
    return table[[*flows, *NETWORK, "seeds", *table.columns[: -len(flows) - len(NETWORK) - 1]]]


def version(run: xr.Dataset, stack: str) -> str:
    """The version of a stack; the kernel's for its own stack."""
    if stack == "tcp":
        return f"Linux {run.attrs['kernel_version']}"
    found: str = json.loads(run.attrs["stack_versions"])[stack]
    return found.partition(",")[0]


if __name__ == "__main__":
    main()
