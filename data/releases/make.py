"""Measures releases of stacks and writes the tables of notebook 09.

python data/releases/make.py parameters|reductions|conformance [RELEASE ...] [--seeds N]

``parameters`` infers the parameters of each release from lone flows; ``reductions`` lists the
window reductions of the same flows; ``conformance`` compares the release with the kernel's
controller of the same family. ``dates.csv`` names the controller of each release: CUBIC where it
has one, else Reno. Without a RELEASE (``quinn@0.8.4``, or ``quinn`` for the present one), all of
``dates.csv`` that are built here, and the kernel's CUBIC (``tcp``) and Reno (``tcp:reno``), which
are not compared with themselves. Stored runs are not run again, and the rows of other releases
stay, so it can be stopped and started at any time. ``qbkit stacks build RELEASE`` builds one.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.errors import StackNotReady
from qbkit.metrics.maps.families import kernel_counterpart
from qbkit.metrics.parameters import observe
from qbkit.metrics.parameters.reductions import window_reductions_of
from qbkit.metrics.parameters.start import start_of
from qbkit.store.tables import replace_rows
from qbkit.studies.conformance import experiments
from qbkit.studies.reproduction import Precision, Recipe, Table

HERE = Path(__file__).parent
LINK = qb.Bottleneck(rate_mbps=20, rtt_ms=50, buffer_bdp=1)
DURATION_S = 60
KERNEL = {"tcp": "tcp:cubic", "tcp:reno": "tcp:reno"}
NUMBERS = (
    *("outcome", "conformance", "noise_floor", "conformance_t", "delta_throughput_mbps"),
    *("delta_delay_ms", "deviation", "mean_throughput_difference_mbps"),
    *("mean_delay_difference_ms", "p_value", "seeds", "reference_seeds"),
)
INTERVALS = (
    *("conformance", "noise_floor", "deviation", "mean_throughput_difference"),
    "mean_delay_difference",
)


def again(table: str, row: dict[str, Any]) -> Recipe:
    """How the rows of a release are made."""
    return RECIPES[table.removesuffix(".csv")](flows()[row["release"]], seeds_of(table, row))


def seeds_of(table: str, row: dict[str, Any]) -> int:
    """The seeds of a release: those of its rows, of which reductions.csv has one or more each."""
    if table != "reductions.csv":
        return int(row["seeds"])
    rows = reductions_table()
    return int(rows[rows.release == row["release"]].seed.max())


@cache
def reductions_table() -> pd.DataFrame:
    """The published window reductions."""
    return pd.read_csv(HERE / "reductions.csv")


@cache
def flows() -> dict[str, str]:
    """Release → the implementation that stands for it."""
    dates = pd.read_csv(HERE / "dates.csv", dtype=str)
    return dict(zip(dates.release, dates.release + ":" + dates.controller, strict=True)) | KERNEL


def alone(implementation: str, seeds: int) -> list[qb.Experiment]:
    """Lone flows of the implementation."""
    return experiments([implementation], LINK, duration_s=DURATION_S, seeds=seeds)


def inferred(runs: list[xr.Dataset]) -> list[dict[str, Any]]:
    """A row for each parameter of the lone flows."""
    table = qb.metrics.infer(runs).frame().reset_index().drop(columns="meaning")
    # pandas rounds no numbers in a column with words.
    rounded = [v if isinstance(v, str) or v != v else f"{v:.5g}" for v in table["value"]]
    return table.assign(value=rounded).to_dict("records")


def parameters(implementation: str, seeds: int) -> Recipe:
    """A row for each parameter of lone flows of the release."""
    return Recipe([alone(implementation, seeds)], inferred)


def reductions(implementation: str, seeds: int) -> Recipe:
    """A row for each window reduction of lone flows of the release, after slow start.

    ``packet_bytes`` is the flow's: its full frame.
    """
    return Recipe([alone(implementation, seeds)], reduced)


def reduced(runs: list[xr.Dataset]) -> list[dict[str, Any]]:
    """A row for each window reduction."""
    rows = []
    for run in runs:
        connection = observe(run)
        for reduction in window_reductions_of(connection, start_of(connection).settled_s):
            flow = {"seed": run.attrs["seed"], "packet_bytes": connection.packet_bytes}
            rows.append({**flow, **asdict(reduction)})
    return rows


def conformance(implementation: str, seeds: int) -> Recipe:
    """A row: how the release compares with the kernel's controller, and its share of the link."""
    reference = kernel_counterpart(implementation)
    both = [
        experiments([flow, reference], LINK, duration_s=DURATION_S, seeds=seeds)
        for flow in (implementation, reference)
    ]
    return Recipe(both, compared)


def compared(tests: list[xr.Dataset], references: list[xr.Dataset]) -> dict[str, Any]:
    """Numbers, intervals and the share."""
    numbers = qb.metrics.assess(tests, references).to_dict()
    row = {field: numbers[field] for field in NUMBERS}
    for field in INTERVALS:
        row[f"{field}_low"], row[f"{field}_high"] = numbers[f"{field}_ci"]
    mbps = [run.throughput_mbps.mean("time").values for run in tests]
    return {**row, "share": sum(mine / (mine + other) for mine, other in mbps) / len(mbps)}


RECIPES = {"parameters": parameters, "reductions": reductions, "conformance": conformance}
SEEDS = {"parameters": 2, "reductions": 2, "conformance": 3}
REPRODUCIBLE = {
    f"{name}.csv": Table(Precision(digits=5), by=() if name == "conformance" else ("release",))
    for name in RECIPES
}
OTHER = {"dates.csv": "it has the dates of releases, by the registries"}


def main() -> None:
    """Measure one release after the other, and write the table after each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=RECIPES)
    parser.add_argument("releases", nargs="*")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--out", type=Path, default=HERE)
    args = parser.parse_args()
    seeds = args.seeds or SEEDS[args.what]
    every = [name for name in flows() if args.what != "conformance" or name not in KERNEL]
    for name in args.releases or every:
        recipe = RECIPES[args.what](flows()[name], seeds)
        try:
            made = recipe.made(recipe.runs())
        except StackNotReady as error:
            print(error, flush=True)
            continue
        rows = pd.DataFrame(made if isinstance(made, list) else [made]).assign(release=name)
        if args.what == "parameters":
            rows = rows.assign(seeds=seeds)
        replace_rows(args.out / f"{args.what}.csv", rows, "release")
        print(f"{name}: done", flush=True)


if __name__ == "__main__":
    main()
