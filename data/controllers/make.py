"""Publishes how the built-in controllers conform with the kernel's, and prints it as a table.

python data/controllers/make.py [FOLDER SPEC...]

FOLDER holds a sweep of each SPEC.yaml of this folder (``qbkit sweep SPEC.yaml --out FOLDER/SPEC``).
Without them, the table of what is published.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import xarray as xr

import qbkit as qb
from qbkit.metrics.maps.interactions import FIRST

HERE = Path(__file__).parent
RTT, BUFFER = "bottleneck.rtt_ms", "bottleneck.buffer_bdp"
TRIALS = ["done", "point_delay_ms", "point_throughput_mbps"]
HEADING = (
    "| controller | RTT | buffer | conformance | noise floor | p | throughput "
    "| queueing delay | trials |\n|---|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    """Publish, if there is a folder; then the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("specs", nargs="*")
    args = parser.parse_args()
    for stem in args.specs:
        qb.publish_sweep(HERE / f"{stem}.yaml", args.folder / stem)
    published = sorted(path.with_suffix(".yaml") for path in HERE.glob("*.json"))
    print(HEADING, *(row for spec in published for row in rows(spec)), sep="\n")


def rows(spec: Path) -> Iterator[str]:
    """A row per network: conformance with its interval beside the noise floor, and the means."""
    reference = qb.Sweep.from_file(spec).base["flows"][1]
    found = qb.metrics.conformance_map(trials(spec, reference), reference)
    settings = found.stack(cell=[RTT, BUFFER]).squeeze(FIRST)
    for index in range(settings.sizes["cell"]):
        cell = settings.isel(cell=index)
        if cell.trials.isnull():
            continue  # a network of the reference's sweep only
        low, high = (_text(cell[f"conformance_{end}"], ".2f") for end in ("low", "high"))
        yield (
            f"| {spec.stem.replace('-', ' ')} | {cell[RTT].item():g} ms "
            f"| {cell[BUFFER].item():g} BDP "
            f"| {_text(cell.conformance, '.2f')} [{low}, {high}] "
            f"| {_text(cell.noise_floor, '.2f')} | {_text(cell.p_value, '.3f')} "
            f"| {_text(cell.mean_throughput_difference_mbps, '+.2f')} Mbit/s "
            f"| {_text(cell.mean_delay_difference_ms, '+.1f')} ms "
            f"| {int(cell.trials)} + {int(cell.reference_trials)} |"
        )


def _text(value: xr.DataArray, form: str) -> str:
    """A dash where the trials are too few for the number."""
    return "–" if value.isnull() else format(float(value), form)


def trials(spec: Path, reference: str) -> xr.Dataset:
    """The trials of a sweep, and of its reference, which another sweep may hold."""
    cube = qb.load_sweep(spec)[TRIALS]
    if reference in cube[FIRST]:
        return cube
    known = qb.load_sweep(HERE / f"{reference.partition(':')[2]}.yaml")[TRIALS]
    both = [known.sel({FIRST: [reference]}), cube]
    return xr.concat(both, FIRST, join="outer", fill_value={"done": False})


if __name__ == "__main__":
    main()
