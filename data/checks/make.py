"""Measures the tables of notebook 14, "is it the stack", and ``settled`` of notebook 04.

python data/checks/make.py trains|trains_faster|jitter|phase|bursts|segmentation [--seeds N]
python data/checks/make.py granularity|pacing|extra_rtt|receivers|acks|samples [--seeds N]
python data/checks/make.py late|lateness|packet_sizes|settled [--seeds N]

``trains`` describes how each implementation's packets follow each other, alone on the shallowest
link of the conformance maps, and ``trains_faster`` on that of 100 Mbit/s. ``jitter`` repeats one
CUBIC and two BBRs beside the kernel's on the former with more and less jitter between sender and
queue, and ``phase`` with paths that are longer by up to a frame as well. ``bursts`` repeats them on
a link of 1 BDP that sends several frames back to back, and ``segmentation`` four senders there with
and without UDP segmentation offload. ``granularity`` repeats lsquic at 100 Mbit/s with a pacer that
acts more often, and ``pacing`` msquic's CUBIC without pacing, and the kernel's with it.
``extra_rtt`` gives one of two flows a path that is longer by up to a frame. ``receivers`` lets five
senders talk to another stack's receiver instead of their own, and ``acks`` infers C of a CUBIC that
is acknowledged more often. ``samples`` compares the sample programs of five stacks
(sample_programs.py) with our drivers. ``late`` repeats picoquic's CUBIC with a receiver that
acknowledges a little later. ``lateness`` measures how late quic-go, aioquic and the kernel react on
the machine's clock, and gives them that lateness in virtual time. ``packet_sizes`` has those of
quiche's CUBIC on both clocks. ``settled`` takes parts of long trials in a deep buffer. Stored runs
are not run again.
``python benchmarks/physical_time.py --out data/checks`` writes the tables of physical time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from lateness import lateness, packet_sizes
from network import (
    bursts,
    extra_rtt,
    granularity,
    jitter,
    pacing,
    segmentation,
    trains,
    trains_faster,
)
from phase import phase
from programs import samples
from receivers import acks, late, receivers
from settled import settled

from qbkit.errors import StackNotReady
from qbkit.files import write_whole
from qbkit.store.index import name_in_index
from qbkit.studies.reproduction import Precision, Recipe, Table, made_with, recipe_of

HERE = Path(__file__).parent
RECIPES = {
    "trains": trains,
    "trains_faster": trains_faster,
    "jitter": jitter,
    "phase": phase,
    "bursts": bursts,
    "segmentation": segmentation,
    "granularity": granularity,
    "pacing": pacing,
    "extra_rtt": extra_rtt,
    "receivers": receivers,
    "acks": acks,
    "settled": settled,
}
BUILDING = {"samples": samples, "late": late}
"""Recipes that build programs first."""
MEASURES = {"lateness": lateness, "packet_sizes": packet_sizes}
"""Rows with runs in physical time."""
PHYSICAL = "it has runs in physical time, which differ each time"
REPRODUCIBLE = {f"{name}.csv": Table(Precision(digits=4)) for name in RECIPES}
OTHER = {
    **{f"{name}.csv": PHYSICAL for name in (*MEASURES, "physical-time", "physical-time-points")},
    **{
        f"{name}.csv": f"python data/checks/make.py {name} builds its programs and measures all"
        for name in BUILDING
    },
}


def again(table: str, row: dict[str, Any]) -> Recipe:
    """How a row is made."""
    return recipe_of(known(table.removesuffix(".csv"), row["seeds"]), row)


@cache
def known(name: str, seeds: int) -> list[Recipe]:
    """The recipes of all rows of a table."""
    return list(RECIPES[name](seeds))


def rows(name: str, seeds: int) -> Iterator[tuple[dict[str, Any], list[xr.Dataset]]]:
    """The rows of a table, each with its runs, without stacks that are not ready here."""
    if name in MEASURES:
        yield from ((row, []) for row in MEASURES[name](seeds))
        return
    for recipe in (RECIPES | BUILDING)[name](seeds):
        try:
            runs = recipe.runs()
            yield recipe.made(runs), runs
        except StackNotReady as error:
            print(error)


def main() -> None:
    """Measure one table and write it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=[*RECIPES, *BUILDING, *MEASURES])
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    made, attributes = [], []
    for row, runs in rows(args.what, args.seeds):
        made.append(row)
        attributes += [run.attrs for run in runs]
        print(pd.DataFrame([row]).to_string(index=False), flush=True)
    table = pd.DataFrame(made).assign(seeds=args.seeds)
    content = table.to_csv(index=False, float_format="%.4g")
    path = HERE / f"{args.what}.csv"
    write_whole(path, content.encode())
    if attributes:
        name_in_index(path, made_with(attributes))


if __name__ == "__main__":
    main()
