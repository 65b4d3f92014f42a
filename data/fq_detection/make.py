"""Makes verdicts.csv, which notebooks/08_fq_detection.ipynb opens where no engine works.

python data/fq_detection/make.py fq fifo --competitor tcp:cubic --seeds 1

The networks are those of the paper's own code, which rounds its five evenly spaced values; with
``--coarse`` the least, middle and greatest of them, with ``--corners`` only networks of least and
greatest values, and the one in the middle. What was run before is loaded, and with ``--missing``
what the table has is left out. The table is written after every queue, and keeps the rows that it
has.
"""

from __future__ import annotations

import argparse
import itertools
import math
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.studies.fair_queuing import detection_experiment

HERE = Path(__file__).parent
RATES_MBPS = (5, 16, 28, 39, 50)
RTTS_MS = (10, 32, 55, 78, 100)
BUFFERS_PACKETS = (1, 26, 50, 75, 100)
FAIR = ("fq", "fq-2020", "fq_codel", "cake", "sfq")
LIMIT_PACKETS = 10_000
"""Of fq as a whole, its default; the buffer is that of one flow."""
NO_FAST_PATH = "34gbit"
"""A maximum rate, too high to matter. Since Linux 6.7 fq keeps up to eight packets of all flows in
one queue while no flow has a queue of its own, unless there is a maximum rate (fq_fastpath_check in
net/sched/sch_fq.c). The paper's kernels of 2020 knew no such queue: fq-2020."""
REPRODUCIBLE = ("verdicts.csv", "regular.csv")
KEYS = ["qdisc", "competitor", "seed", "rate_mbps", "rtt_ms", "buffer_packets"]

Network = tuple[int, int, int]
"""Rate in Mbit/s, RTT in ms, buffer in packets."""


def main() -> None:
    """Run what is asked for, one queue after the other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("qdiscs", nargs="+")
    parser.add_argument("--competitor", default="")
    parser.add_argument("--coarse", action="store_true")
    parser.add_argument("--corners", action="store_true")
    parser.add_argument("--rates", type=int, nargs="+", default=RATES_MBPS, help="only these")
    parser.add_argument(
        "--buffers", type=int, nargs="+", default=BUFFERS_PACKETS, help="only these"
    )
    parser.add_argument("--regular", action="store_true", help="pace at regular intervals")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--missing", action="store_true", help="only what the table does not have")
    parser.add_argument("--out", type=Path, default=HERE / "verdicts.csv")
    args = parser.parse_args()
    how = {"competitor": args.competitor or None, "is_randomised": not args.regular}
    chosen = corners() if args.corners else networks(is_coarse=args.coarse)
    links = [one for one in chosen if one[0] in args.rates and one[2] in args.buffers]
    for qdisc in args.qdiscs:
        cells = list(itertools.product(args.seeds, links))
        if args.missing:
            known = published(args.out, qdisc, args.competitor)
            cells = [cell for cell in cells if cell not in known]
        rows = verdicts(qdisc, cells, how)
        if not rows:
            continue
        add(rows, args.out, KEYS)
        right = sum(row["found"] == ("fair" if row["is_fair"] else "shared") for row in rows)
        print(f"{qdisc} {args.competitor or 'alone'}: {right}/{len(rows)}", flush=True)


def networks(*, is_coarse: bool) -> list[Network]:
    """All 125, or 27."""
    values = slice(None, None, 2 if is_coarse else 1)
    return list(itertools.product(RATES_MBPS[values], RTTS_MS[values], BUFFERS_PACKETS[values]))


def corners() -> list[Network]:
    """The eight corners of the grid and its middle."""
    values = (RATES_MBPS, RTTS_MS, BUFFERS_PACKETS)
    ends = itertools.product(*((some[0], some[-1]) for some in values))
    rate, rtt, buffer = (some[len(some) // 2] for some in values)
    return [*ends, (rate, rtt, buffer)]


def verdicts(
    qdisc: str, cells: list[tuple[int, Network]], how: dict[str, Any]
) -> list[dict[str, object]]:
    """A row for each seed and network in which a detection ran."""
    experiments = [
        detection_experiment(link(qdisc, *network), seed=seed, **how) for seed, network in cells
    ]
    rows = []
    outcomes = qb.run_all(experiments, progress=True)
    for (seed, network), outcome in zip(cells, outcomes, strict=True):
        if outcome.run is None:
            print(f"{qdisc} {network}, seed {seed}: {outcome.error}")
            continue
        rows.append(
            {
                "qdisc": qdisc,
                "competitor": how["competitor"] or "",
                "seed": seed,
                **dict(zip(KEYS[3:], network, strict=True)),
                "is_fair": qdisc in FAIR,
                **verdict(outcome.run),
                "run": outcome.run.attrs["hash"],
                "cpu_s": outcome.run.attrs["cpu_s"],
            }
        )
    return rows


def verdict(run: xr.Dataset) -> dict[str, Any]:
    """What the table says of a run."""
    found = qb.fair_queuing_of(run)
    return {
        "found": {True: "fair", False: "shared", None: "nothing"}[found.is_fair],
        "loss_ratio": found.loss_ratio,
        **{f"round_{i}_loss_ratio": r for i, r in enumerate(found.round_loss_ratios, 1)},
        "probe_ms": found.probe_ms,
        **{f"sent_packets_{i}": n for i, n in enumerate(found.sent_packets, 1)},
        **{f"lost_packets_{i}": n for i, n in enumerate(found.lost_packets, 1)},
    }


def again(table: str, row: dict[str, Any]) -> tuple[qb.Experiment, Any]:
    """The experiment of a row, and the row of its run, for ``qbkit reproduce``."""
    network = (row["rate_mbps"], row["rtt_ms"], row["buffer_packets"])
    competitor = row["competitor"] if isinstance(row["competitor"], str) else None
    experiment = detection_experiment(
        link(row["qdisc"], *network),
        seed=row["seed"],
        competitor=competitor,
        is_randomised=table != "regular",
    )
    return experiment, numbers


def numbers(run: xr.Dataset) -> dict[str, float]:
    """The numbers of a verdict."""
    return {k: float(v) for k, v in verdict(run).items() if isinstance(v, int | float)}


def published(table: Path, qdisc: str, competitor: str) -> set[tuple[int, Network]]:
    """Seed and network of each row of the table with this queue and competitor."""
    if not table.exists():
        return set()
    rows = pd.read_csv(table, keep_default_na=False)
    rows = rows[(rows.qdisc == qdisc) & (rows.competitor == competitor)]
    return {(int(seed), (*map(int, network),)) for seed, *network in rows[KEYS[2:]].to_numpy()}


def add(rows: list[dict[str, object]], table: Path, keys: list[str]) -> None:
    """Write the rows into a table, in place of those with the same keys."""
    known = [pd.read_csv(table, keep_default_na=False)] if table.exists() else []
    whole = pd.concat([*known, pd.DataFrame(rows)]).drop_duplicates(keys, keep="last")
    written = table.with_suffix(".new")
    whole.sort_values(keys).map(shortened).to_csv(written, index=False)
    written.replace(table)


def shortened(value: object) -> object:
    """A number in six digits, as text: pandas rounds none in a column that also has words."""
    return f"{value:.6g}" if isinstance(value, float) and not math.isnan(value) else value


def link(qdisc: str, rate_mbps: float, rtt_ms: float, buffer_packets: int) -> qb.Bottleneck:
    """The buffer is a shared queue's, or with fq each flow's, as in the paper."""
    path = {"rate_mbps": rate_mbps, "rtt_ms": rtt_ms}
    if qdisc not in ("fq", "fq-2020"):
        return qb.Bottleneck(**path, qdisc=qdisc, buffer_packets=buffer_packets)
    options: dict[str, str | int] = {"flow_limit": buffer_packets}
    if qdisc == "fq-2020":
        options["maxrate"] = NO_FAST_PATH
    return qb.Bottleneck(**path, qdisc="fq", buffer_packets=LIMIT_PACKETS, qdisc_options=options)


if __name__ == "__main__":
    main()
