"""Is a result made by virtual time? The same flows in the same guest on the machine's clock.

    python benchmarks/physical_time.py [FLOW ...] [--seeds 10] [--duration-s 30] [--out data/checks]

In each cell a flow competes with the kernel's, at 50 ms. The operating points of its trials in
physical time are compared with those in virtual time, as an implementation is with its reference:
conformance beside the noise floor (virtual time with itself), and the verdict. A run in physical
time whose guest needs more than half a processor is refused, and reported. Runs are stored, so the
benchmark can be stopped and started. Without a FLOW (``quinn:bbr``) all cells are measured.
``--out`` writes both tables to a folder, where the rows of other flows stay, and
``benchmarks/tables/physical_time.md`` from ``data/checks``. Leave the machine idle: its load
changes runs in physical time.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from markdown_tables import publish, table

import qbkit as qb
from qbkit.metrics.maps.families import kernel_counterpart
from qbkit.store.tables import replace_rows

AT_ONE_BDP = (
    *("msquic:cubic", "s2n-quic:cubic", "picoquic:cubic", "lsquic:cubic"),
    "google-quiche:cubic",
    *("tcp:reno", "x-net-quic:reno", "picoquic:newreno", "aioquic:reno"),
    *("nginx-1.26:reno", "quinn:newreno"),
    *("tcp:bbr", "google-quiche:bbr", "google-quiche:bbr2", "quiche:bbr2"),
    *("picoquic:bbr", "picoquic:bbr1", "noq:bbr3", "haproxy:bbr"),
    *("tquic:bbr", "lsquic:bbr", "ngtcp2-0.12:bbr2", "xquic:bbr2"),
)
"""Flows that are measured in one cell, at 10 Mbit/s."""
CELLS = (
    *(("tcp:cubic", 10, 1), ("quic-go:cubic", 5, 1), ("quic-go:cubic", 10, 1)),
    *(("quic-go:cubic", 10, 5), ("quic-go:cubic", 20, 1)),
    *(("quic-go:reno", 10, 1), ("quic-go:reno", 10, 5)),
    *(("ngtcp2:bbr", 10, 1), ("ngtcp2:bbr", 10, 5), ("ngtcp2-0.12:bbr", 10, 1)),
    *(("s2n-quic:bbr", 10, 1), ("quinn:bbr", 10, 1), ("msquic:bbr", 10, 1)),
    ("quiche:cubic", 5, 1),
    *((flow, 10, 1) for flow in AT_ONE_BDP),
)
"""Flow under test, rate in Mbit/s, buffer in BDP. It competes with the kernel's of its family."""
DATA = Path(__file__).parents[1] / "data/checks"
HEAD = (
    *("flow", "Mbit/s", "BDP", "share, virtual", "physical"),
    *("conformance", "noise floor", "p", "processor"),
)
KEYS = ["flow", "rate_mbps", "buffer_bdp"]
ENGINES = ("virtual", "physical")
FEWEST_RUNS = 2
"""Of each engine, for a row."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("flows", nargs="*", metavar="FLOW")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--duration-s", type=float, default=30)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    known = list(dict.fromkeys(flow for flow, *_ in CELLS))
    if unknown := [flow for flow in args.flows if flow not in known]:
        parser.error(f"no cell has {unknown[0]}; choose from {', '.join(known)}")
    chosen = args.flows or known
    rows, points = [], []
    for cell in (cell for cell in CELLS if cell[0] in chosen):
        both = {
            engine: trials(experiments(*cell, args.seeds, args.duration_s), engine)
            for engine in ENGINES
        }
        key = dict(zip(KEYS, cell, strict=True))
        if any(len(runs) < FEWEST_RUNS for runs in both.values()):
            print(f"{cell[0]}: too few runs, so this cell has no row", flush=True)
            continue
        rows.append({**key, **compared(both)})
        points += [table_of(run, engine).assign(**key) for engine in both for run in both[engine]]
        print(pd.DataFrame(rows[-1:]).to_string(index=False, float_format="%.3g"), flush=True)
    if args.out and rows:
        args.out.mkdir(parents=True, exist_ok=True)
        replace_rows(args.out / "physical-time.csv", pd.DataFrame(rows), "flow")
        replace_rows(args.out / "physical-time-points.csv", pd.concat(points), "flow")
        publish("physical_time", text())


def text() -> str:
    """The published cells as a table; shares are means and standard deviations."""
    cells = pd.read_csv(DATA / "physical-time.csv")
    return table(HEAD, (_cells(row) for row in cells.to_dict("records")))


def _cells(row: dict[str, Any]) -> list[object]:
    shares = [f"{row[f'{e}_share']:.2f} ± {row[f'{e}_share_sd']:.2f}" for e in ENGINES]
    numbers = (row["conformance"], row["noise_floor"], f"{row['p_value']:.4f}")
    return [*(row[key] for key in KEYS), *shares, *numbers, row["physical_processors"]]


def experiments(
    flow: str, rate_mbps: float, buffer_bdp: float, seeds: int, duration_s: float
) -> list[qb.Experiment]:
    """The flow beside the kernel's of its family, one experiment for each seed."""
    link = qb.Bottleneck(rate_mbps=rate_mbps, rtt_ms=50, buffer_bdp=buffer_bdp)
    flows = [flow, kernel_counterpart(flow)]
    return [
        qb.Experiment(bottleneck=link, flows=flows, duration_s=duration_s, seed=seed)
        for seed in range(1, seeds + 1)
    ]


def trials(wanted: list[qb.Experiment], engine: str) -> list[xr.Dataset]:
    """The runs that succeed; each other one is reported."""
    outcomes = qb.run_all(wanted, engine=engine)
    for outcome in outcomes:
        if outcome.run is None:
            print(f"{outcome.experiment.flows[0].name}, {engine}: {outcome.error}", flush=True)
    return [outcome.run for outcome in outcomes if outcome.run is not None]


def compared(both: dict[str, list[xr.Dataset]]) -> dict[str, object]:
    """How the flow did in each time, and how the two compare."""
    row: dict[str, object] = {}
    for engine, runs in both.items():
        shares = [qb.metrics.throughput_ratio(run, 0, 1) for run in runs]
        delays_ms = [float(np.mean(qb.metrics.operating_points(run).delay_ms)) for run in runs]
        row[f"{engine}_runs"] = len(runs)
        row[f"{engine}_share"], row[f"{engine}_share_sd"] = np.mean(shares), np.std(shares, ddof=1)
        row[f"{engine}_delay_ms"] = np.mean(delays_ms)
        row[f"{engine}_processors"] = np.mean(
            [run.attrs["cpu_s"] / run.attrs["wall_s"] for run in runs]
        )
    found = qb.metrics.assess(both["physical"], both["virtual"])
    row |= {"conformance": found.conformance, "noise_floor": found.noise_floor}
    row |= {"p_value": found.p_value, "outcome": found.outcome}
    for what in ("throughput_difference", "delay_difference"):
        row[f"{what}_low"], row[f"{what}_high"] = getattr(found, f"mean_{what}_ci")
    return row


def table_of(run: xr.Dataset, engine: str) -> pd.DataFrame:
    """The operating points of the flow under test in one run."""
    points = qb.metrics.operating_points(run)
    at = {"delay_ms": points.delay_ms, "throughput_mbps": points.throughput_mbps}
    return pd.DataFrame({"engine": engine, "seed": run.attrs["seed"], **at})


if __name__ == "__main__":
    main()
