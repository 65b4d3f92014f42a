"""Publishes what notebooks/07_quic_dc.ipynb opens where no engine works.

python data/quic_dc/make.py FOLDER SPEC...

FOLDER holds a sweep of each SPEC.yaml of this folder, as the notebook or ``qbkit sweep`` ran it.
From the runs of seed 1, rtt.csv takes the percentiles of the RTT of all packets, spread.csv its
standard deviation, taken in several ways, and figure-5-*/ two runs over time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.metrics.flows.lookup import delivered_packets
from qbkit.studies.reproduction import Precision, Recipe, Table

HERE = Path(__file__).parent
PERCENT = np.arange(0, 101)
DISTRIBUTIONS = ("quic-dc-4-bdp", "westwood", "others", "reno")
"""Of these the runs with 4 BDP are in the paper's figure 4; its figure 6 has four flows."""
THRESHOLD = "flows.0.options.delay_threshold_ms"
SPREAD = "quic-dc-4-bdp"
OVER_TIME = {"quic-dc-2-bdp": "quic-dc", "westwood": "westwood"}


HUNDREDTHS = Precision(step=0.01)
REPRODUCIBLE = {
    "rtt.csv": Table(HUNDREDTHS, by=("figure", "label")),
    "spread.csv": Table(HUNDREDTHS, by=("delay_threshold_ms",)),
}
OTHER = {"paper*.csv": "it is copied from the paper"}

Place = dict[str, Any]
"""Value of each swept field of a run."""


def again(table: str, row: dict[str, Any]) -> Recipe:
    """How the rows of a run are made."""
    if table == "spread.csv":
        threshold_ms = row["delay_threshold_ms"]
        points = {place[THRESHOLD]: experiment for place, experiment in first_points(SPREAD)}
        return Recipe([[points[threshold_ms]]], lambda runs: spread(threshold_ms, runs[0]))
    figure, label = row["figure"], row["label"]
    return Recipe([[shown()[figure, label]]], lambda runs: distribution(figure, label, runs[0]))


@cache
def shown() -> dict[tuple[int, str], qb.Experiment]:
    """The experiment of each distribution."""
    stems = (*DISTRIBUTIONS, *(path.stem for path in sorted(HERE.glob("four-*.yaml"))))
    return {
        shown_as(stem, place): experiment
        for stem in stems
        for place, experiment in first_points(stem)
        if has_4_bdp(place)
    }


def first_points(stem: str) -> Iterator[tuple[Place, qb.Experiment]]:
    """The swept values and experiments of seed 1 of a sweep."""
    sweep = qb.Sweep.from_file(HERE / f"{stem}.yaml")
    for point in sweep.points():
        if point.experiment.seed == 1:
            values = zip(sweep.sweep.items(), point.index, strict=True)
            yield {field: found[i] for (field, found), i in values}, point.experiment


def has_4_bdp(place: Place) -> bool:
    """Whether a run has the buffer of the distributions."""
    return bool(place.get("bottleneck.buffer_bdp", 4.0) == 4.0)


def shown_as(stem: str, place: Place) -> tuple[int, str]:
    """The figure that shows the distribution of a run, and its label there."""
    label = str(place.get("flows.0", stem.removeprefix("four-")))
    threshold_ms = place.get(THRESHOLD, "")
    figure = 6 if stem.startswith("four-") else 4
    return figure, f"quic-dc, {threshold_ms:g} ms" if threshold_ms else label


def distribution(figure: int, label: str, run: xr.Dataset) -> list[dict[str, Any]]:
    """Percentiles of the RTT over all packets of all flows."""
    flows = range(run.sizes["flow"])
    rtts_ms = [delivered_packets(run, i)[2] + float(run["base_rtt_ms"][i]) for i in flows]
    values = np.percentile(np.concatenate(rtts_ms), PERCENT).round(2)
    columns = {"figure": figure, "label": label, "percent": PERCENT, "value": values}
    return pd.DataFrame(columns).to_dict("records")


def spread(threshold_ms: float, run: xr.Dataset) -> list[dict[str, Any]]:
    """Mean and standard deviation of the RTT, taken in each way that a paper may take it."""
    left_s, _, waited_ms = delivered_packets(run, 0)
    every_ms = waited_ms + float(run["base_rtt_ms"][0])
    late = run["sample_time_s"].values > 5
    ways = {
        "every packet": every_ms,
        "every packet after 5 s": every_ms[left_s > 5],
        "the sender's latest RTT after 5 s": run["sample_latest_rtt_ms"].values[late],
        "the sender's smoothed RTT after 5 s": run["sample_srtt_ms"].values[late],
    }
    return [
        {
            "delay_threshold_ms": threshold_ms,
            "rtt": way,
            "mean_ms": np.nanmean(rtt_ms).round(2),
            "std_ms": np.nanstd(rtt_ms).round(2),
            "most_ms": np.nanmax(rtt_ms).round(2),
        }
        for way, rtt_ms in ways.items()
    ]


def main() -> None:
    """Each sweep, then what comes of its runs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("specs", nargs="+")
    args = parser.parse_args()
    for stem in args.specs:
        qb.publish_sweep(HERE / f"{stem}.yaml", args.folder / stem)
        runs = list(rows_of(qb.load_sweep(HERE / f"{stem}.yaml"), args.folder / stem))
        if stem in DISTRIBUTIONS or stem.startswith("four-"):
            add_distributions(stem, runs)
        if stem == SPREAD:
            rows = [row for place, run in runs for row in spread(place[THRESHOLD], run)]
            pd.DataFrame(rows).to_csv(HERE / "spread.csv", index=False)
        if stem in OVER_TIME:
            publish_over_time(OVER_TIME[stem], runs)


def rows_of(cube: xr.Dataset, folder: Path) -> Iterator[tuple[Place, xr.Dataset]]:
    """The coordinates of each run of seed 1 that is done, and the run."""
    first = cube.sel(seed=1).expand_dims("seed")
    stacked = first.stack(cell=list(first["run"].dims))
    for index in range(stacked.sizes["cell"]):
        cell = stacked.isel(cell=index)
        if bool(cell["done"]):
            place = dict(zip(first["run"].dims, cell["cell"].item(), strict=True))
            yield place, qb.load_run(folder / "runs" / f"{cell['run'].item()}.nc")


def add_distributions(stem: str, runs: list[tuple[Place, xr.Dataset]]) -> None:
    """Write the distributions of a sweep in place of those with the same labels."""
    path = HERE / "rtt.csv"
    known = [pd.read_csv(path, keep_default_na=False)] if path.exists() else []
    for place, run in runs:
        if has_4_bdp(place):
            known.append(pd.DataFrame(distribution(*shown_as(stem, place), run)))
    by_row = pd.concat(known).groupby(["figure", "label", "percent"], sort=False)
    by_row.last().reset_index().to_csv(path, index=False)


def publish_over_time(name: str, runs: list[tuple[Place, xr.Dataset]]) -> None:
    """The run with 2 BDP; of QUIC-DC that with the threshold of 80 %."""
    (run,) = (
        run
        for place, run in runs
        if place.get(THRESHOLD, 80) == 80 and place.get("bottleneck.buffer_bdp", 2.0) == 2.0
    )
    qb.publish_runs(
        {name: run},
        HERE / f"figure-5-{name}",
        series=["throughput_mbps", "queue_delay_ms", "cwnd_bytes"],
    )


if __name__ == "__main__":
    main()
