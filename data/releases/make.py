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
from pathlib import Path

import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit import stacks
from qbkit.execution.many import datasets
from qbkit.metrics.maps.families import kernel_counterpart
from qbkit.metrics.parameters import observe
from qbkit.metrics.parameters.reductions import window_reductions_of
from qbkit.metrics.parameters.start import start_of
from qbkit.store.tables import replace_rows

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


def main() -> None:
    """Measure one release after the other, and write the table after each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=MEASURES)
    parser.add_argument("releases", nargs="*")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--out", type=Path, default=HERE)
    args = parser.parse_args()
    dates = pd.read_csv(HERE / "dates.csv", dtype=str)
    flows = dict(zip(dates.release, dates.release + ":" + dates.controller, strict=True))
    if args.what != "conformance":
        flows |= KERNEL
    seeds = args.seeds or SEEDS[args.what]
    for name in args.releases or flows:
        status = stacks.get(qb.Flow(flows[name]).stack).status()
        if status.ready:
            rows = MEASURES[args.what](flows[name], seeds).assign(release=name)
            replace_rows(args.out / f"{args.what}.csv", rows, "release")
        print(f"{name}: {'done' if status.ready else status.reason}", flush=True)


def alone(implementation: str, seeds: int) -> list[xr.Dataset]:
    """Runs of lone flows of the implementation."""
    return datasets(
        qb.run_all(
            [
                qb.Experiment(
                    bottleneck=LINK, flows=[implementation], duration_s=DURATION_S, seed=seed
                )
                for seed in range(1, seeds + 1)
            ]
        )
    )


def inferred(runs: list[xr.Dataset]) -> pd.DataFrame:
    """A row for each parameter of the lone flows."""
    table = qb.metrics.infer(runs).frame().reset_index().drop(columns="meaning")
    # pandas rounds no numbers in a column with words.
    rounded = [v if isinstance(v, str) or v != v else f"{v:.5g}" for v in table["value"]]
    return table.assign(value=rounded)


def parameters(implementation: str, seeds: int) -> pd.DataFrame:
    """A row for each parameter of lone flows of the release."""
    return inferred(alone(implementation, seeds)).assign(seeds=seeds)


def reductions(implementation: str, seeds: int) -> pd.DataFrame:
    """A row for each window reduction of lone flows of the release, after slow start.

    ``packet_bytes`` is the flow's: its full frame.
    """
    rows = []
    for run in alone(implementation, seeds):
        connection = observe(run)
        for reduction in window_reductions_of(connection, start_of(connection).settled_s):
            flow = {"seed": run.attrs["seed"], "packet_bytes": connection.packet_bytes}
            rows.append({**flow, **asdict(reduction)})
    return pd.DataFrame(rows)


def conformance(implementation: str, seeds: int) -> pd.DataFrame:
    """A row: how the release compares with the kernel's controller, and its share of the link."""
    reference = kernel_counterpart(implementation)
    study = qb.conformance_study(
        implementation, reference, bottleneck=LINK, duration_s=DURATION_S, seeds=seeds
    )
    numbers = study.assess().to_dict()
    row = {field: numbers[field] for field in NUMBERS}
    for field in INTERVALS:
        row[f"{field}_low"], row[f"{field}_high"] = numbers[f"{field}_ci"]
    mbps = [run.throughput_mbps.mean("time").values for run in study.tests]
    row["share"] = sum(mine / (mine + other) for mine, other in mbps) / len(mbps)
    return pd.DataFrame([row])


MEASURES = {"parameters": parameters, "reductions": reductions, "conformance": conformance}
SEEDS = {"parameters": 2, "reductions": 2, "conformance": 3}


if __name__ == "__main__":
    main()
