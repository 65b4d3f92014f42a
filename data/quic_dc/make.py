"""Publishes what notebooks/07_quic_dc.ipynb opens where no engine works.

python data/quic_dc/make.py FOLDER SPEC...

FOLDER holds a sweep of each SPEC.yaml of this folder, as the notebook or ``qbkit sweep`` ran it.
From the runs of seed 1, rtt.csv takes the percentiles of the RTT of all packets, spread.csv its
standard deviation, taken in several ways, and figure-5-*/ two runs over time.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.metrics.flows.lookup import delivered_packets

HERE = Path(__file__).parent
PERCENT = np.arange(0, 101)
DISTRIBUTIONS = ("quic-dc-4-bdp", "westwood", "others", "reno")
"""Of these the runs with 4 BDP are in the paper's figure 4; its figure 6 has four flows."""
OVER_TIME = {"quic-dc-2-bdp": "quic-dc", "westwood": "westwood"}


def main() -> None:
    """Each sweep, then what comes of its runs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("specs", nargs="+")
    args = parser.parse_args()
    for stem in args.specs:
        qb.publish_sweep(HERE / f"{stem}.yaml", args.folder / stem)
        cube = qb.load_sweep(HERE / f"{stem}.yaml")
        if stem in DISTRIBUTIONS or stem.startswith("four-"):
            add_distributions(stem, cube, args.folder / stem)
        if stem == "quic-dc-4-bdp":
            add_spread(cube, args.folder / stem)
        if stem in OVER_TIME:
            publish_over_time(OVER_TIME[stem], cube, args.folder / stem)


def rows_of(cube: xr.Dataset, folder: Path) -> list[tuple[dict[str, object], xr.Dataset]]:
    """The coordinates of each run of seed 1 that is done, and the run."""
    found = []
    first = cube.sel(seed=1).expand_dims("seed")
    stacked = first.stack(cell=list(first["run"].dims))
    for index in range(stacked.sizes["cell"]):
        cell = stacked.isel(cell=index)
        if bool(cell["done"]):
            where = dict(zip(first["run"].dims, cell["cell"].item(), strict=True))
            found.append((where, qb.load_run(folder / "runs" / f"{cell['run'].item()}.nc")))
    return found


def add_distributions(stem: str, cube: xr.Dataset, folder: Path) -> None:
    """Percentiles of the RTT over all packets of all flows."""
    path = HERE / "rtt.csv"
    known = [pd.read_csv(path, keep_default_na=False)] if path.exists() else []
    for where, run in rows_of(cube, folder):
        if where.get("bottleneck.buffer_bdp", 4.0) != 4.0:
            continue
        flows = range(run.sizes["flow"])
        rtts = [delivered_packets(run, i)[2] + float(run["base_rtt_ms"][i]) for i in flows]
        label = str(where.get("flows.0", stem.removeprefix("four-")))
        threshold = where.get("flows.0.options.delay_threshold_ms", "")
        columns = {
            "figure": 6 if stem.startswith("four-") else 4,
            "label": label if not threshold else f"quic-dc, {threshold:g} ms",
            "percent": PERCENT,
            "value": np.percentile(np.concatenate(rtts), PERCENT).round(2),
        }
        known.append(pd.DataFrame(columns))
    by_row = pd.concat(known).groupby(["figure", "label", "percent"], sort=False)
    by_row.last().reset_index().to_csv(path, index=False)


def add_spread(cube: xr.Dataset, folder: Path) -> None:
    """Mean and standard deviation of the RTT, taken in each way that a paper may take it."""
    rows = []
    for where, run in rows_of(cube, folder):
        left_s, _, waited_ms = delivered_packets(run, 0)
        every_ms = waited_ms + float(run["base_rtt_ms"][0])
        late = run["sample_time_s"].values > 5
        ways = {
            "every packet": every_ms,
            "every packet after 5 s": every_ms[left_s > 5],
            "the sender's latest RTT after 5 s": run["sample_latest_rtt_ms"].values[late],
            "the sender's smoothed RTT after 5 s": run["sample_srtt_ms"].values[late],
        }
        rows += [
            {
                "delay_threshold_ms": where["flows.0.options.delay_threshold_ms"],
                "rtt": way,
                "mean_ms": np.nanmean(rtt_ms).round(2),
                "std_ms": np.nanstd(rtt_ms).round(2),
                "most_ms": np.nanmax(rtt_ms).round(2),
            }
            for way, rtt_ms in ways.items()
        ]
    pd.DataFrame(rows).to_csv(HERE / "spread.csv", index=False)


def publish_over_time(name: str, cube: xr.Dataset, folder: Path) -> None:
    """The run with 2 BDP; of QUIC-DC that with the threshold of 80 %."""
    (run,) = (
        run
        for where, run in rows_of(cube, folder)
        if where.get("flows.0.options.delay_threshold_ms", 80) == 80
        and where.get("bottleneck.buffer_bdp", 2.0) == 2.0
    )
    qb.publish_runs(
        {name: run},
        HERE / f"figure-5-{name}",
        series=["throughput_mbps", "queue_delay_ms", "cwnd_bytes"],
    )


if __name__ == "__main__":
    main()
