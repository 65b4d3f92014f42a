"""Makes what notebooks/08_fq_detection.ipynb opens where no engine works.

python data/fq_detection/make.py verdicts fq fifo --competitor tcp:cubic --seeds 1
python data/fq_detection/make.py means --rates 5 16
python data/fq_detection/make.py interleaving|figures

``verdicts`` writes verdicts.csv, or with ``--regular`` regular.csv, whose flows are paced at
regular intervals. The networks are those of the paper's own code, which rounds its five evenly
spaced values; with ``--coarse`` the least, middle and greatest of them, with ``--corners`` only
networks of least and greatest values, and the one in the middle. With ``--missing``, only what the
table does not have. ``means`` compares CUBIC with detection + delay-based, 30 s each on a link with
fair queuing: the paper's table (section VI-D) has all 125 networks, this the least, middle and
greatest RTT and buffer at the rates asked for. ``interleaving`` takes packets of both connections
at a shared queue by the way they are paced, and ``figures`` the paper's figures 2 to 7.
What was run before is loaded. Tables are written after every queue or rate, and keep their rows.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.studies.fair_queuing import detection_experiment
from qbkit.studies.reproduction import Precision, Recipe, Table
from qbkit.traces.run.pcap import read_packets

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
CELL = ("rate_mbps", "rtt_ms", "buffer_packets")
KEYS = ("qdisc", "competitor", "seed", *CELL)
MEAN_FLOWS, MEAN_S = ("tcp:cubic", "qbkit:fq-detect"), 30.0
SHARED_LINK = qb.Bottleneck(rate_mbps=5, rtt_ms=10, buffer_packets=26)
WINDOW_S = 0.03
"""The last part of a detection, before flow 2 is told to stop."""
DATA_BYTES = 1000
"""Least size of a packet with data."""
HEAD_START_S, ALONE_S, TOGETHER_S = 5.0, 15.0, 20.0
REPRODUCIBLE = {
    "verdicts.csv": Table(),
    "regular.csv": Table(),
    "means.csv": Table(),
    "interleaving.csv": Table(Precision(digits=5), by=("pacing",)),
}

Network = tuple[int, int, int]
"""Rate in Mbit/s, RTT in ms, buffer in packets."""


def again(table: str, row: dict[str, Any]) -> Recipe:
    """How a row is made."""
    if table == "interleaving.csv":
        return interleaving(row["pacing"])
    if table == "means.csv":
        return mean(row["flow"], *(row[name] for name in CELL))
    competitor = row["competitor"] if isinstance(row["competitor"], str) else ""
    network = tuple(row[name] for name in CELL)
    is_regular = table == "regular.csv"
    return verdict(row["qdisc"], competitor, row["seed"], network, is_regular=is_regular)


def verdict(
    qdisc: str, competitor: str, seed: int, network: Sequence[int], *, is_regular: bool
) -> Recipe:
    """What a detection in a network says."""
    experiment = detection_experiment(
        link(qdisc, *network),
        seed=seed,
        competitor=competitor or None,
        is_randomised=not is_regular,
    )
    values = (qdisc, competitor, seed, *network)
    keys = {**dict(zip(KEYS, values, strict=True)), "is_fair": qdisc in FAIR}
    return Recipe([[experiment]], verdict_of, keys)


def verdict_of(runs: list[xr.Dataset]) -> dict[str, Any]:
    """What the table says of a run."""
    found = qb.fair_queuing_of(runs[0])
    return {
        "found": {True: "fair", False: "shared", None: "nothing"}[found.is_fair],
        "loss_ratio": found.loss_ratio,
        **{f"round_{i}_loss_ratio": r for i, r in enumerate(found.round_loss_ratios, 1)},
        "probe_ms": found.probe_ms,
        **{f"sent_packets_{i}": n for i, n in enumerate(found.sent_packets, 1)},
        **{f"lost_packets_{i}": n for i, n in enumerate(found.lost_packets, 1)},
    }


def mean(flow: str, *network: int) -> Recipe:
    """Queueing delay and throughput of a controller in a network, as in `summary`."""
    experiment = qb.Experiment(bottleneck=link("fq", *network), flows=[flow], duration_s=MEAN_S)

    def measure(runs: list[xr.Dataset]) -> dict[str, Any]:
        (summary,) = qb.metrics.summary(runs[0]).to_dict("records")
        names = ("throughput_mbps", "rtt_mean_ms", "loss_percent")
        is_detected = flow != MEAN_FLOWS[0] and bool(qb.fair_queuing_of(runs[0]).is_fair)
        return {**{name: summary[name] for name in names}, "is_detected": is_detected}

    keys = {"flow": flow, **dict(zip(CELL, network, strict=True))}
    return Recipe([[experiment]], measure, keys)


def interleaving(pacing: str) -> Recipe:
    """Packets of both connections, without jitter of the sender, which would blur the pattern."""
    probing = detection_experiment(SHARED_LINK, is_randomised=pacing == "random")
    still = probing.model_copy(update={"jitter_ms": 0.0})

    def measure(runs: list[xr.Dataset]) -> list[dict[str, Any]]:
        packets = connections(runs[0])
        window = packets[packets.time_s >= packets.time_s.max() - WINDOW_S]
        columns = {
            "pacing": pacing,
            "time_ms": (window.time_s - window.time_s.min()) * 1e3,
            "connection": window.connection,
            "is_dropped": window.is_dropped,
            "loss_ratio": qb.fair_queuing_of(runs[0]).loss_ratio,
        }
        return pd.DataFrame(columns).to_dict("records")

    return Recipe([[still]], measure, keep="pcap")


def connections(run: xr.Dataset) -> pd.DataFrame:
    """Arrivals at the queue with their connection, 1 or 2; the run itself has both as one flow."""
    captured = read_packets(run.qb.kept_folder / "before.pcap")
    to_server = captured.destination_port == captured.destination_port[0]
    is_data = to_server & (captured.frame_bytes >= DATA_BYTES)
    senders = captured.source_port[is_data]
    ports = list(dict.fromkeys(senders.tolist()))
    fates = run.packet_fate.values[run.packet_size_bytes.values >= DATA_BYTES]
    return pd.DataFrame(
        {
            "time_s": captured.time_ns[is_data] / 1e9,
            "connection": [1 + ports.index(port) for port in senders.tolist()],
            "is_dropped": np.asarray(fates) != 0,
        }
    )


def publish_figures() -> None:
    """Two flows alone at 10 Mbit/s, two pairs at 50 Mbit/s; 10 ms and 100 packets."""
    slow, shared = link("fifo", 10, 10, 100), link("fifo", 50, 10, 100)
    experiments = {
        "figure-2": alone("tcp:cubic", slow),
        "figure-3": alone("qbkit:delay", slow),
        "figures-4-5": beside_cubic("qbkit:delay", shared),
        "figures-6-7": beside_cubic("qbkit:fq-detect", link("fq", 50, 10, 100)),
    }
    runs = {name: experiment.run() for name, experiment in experiments.items()}
    qb.publish_runs(runs, HERE / "figures", series=["throughput_mbps", "queue_delay_ms"])


def alone(flow: str, path: qb.Bottleneck) -> qb.Experiment:
    """A flow on an empty link."""
    return qb.Experiment(bottleneck=path, flows=[flow], duration_s=ALONE_S)


def beside_cubic(flow: str, path: qb.Bottleneck) -> qb.Experiment:
    """The flow joins a CUBIC flow that has had the link for 5 s."""
    return qb.Experiment(
        bottleneck=path,
        flows=["tcp:cubic", qb.Flow(flow, start_s=HEAD_START_S)],
        duration_s=TOGETHER_S,
        start_window_s=0,
    )


def link(qdisc: str, rate_mbps: float, rtt_ms: float, buffer_packets: int) -> qb.Bottleneck:
    """The buffer is a shared queue's, or with fq each flow's, as in the paper."""
    path = {"rate_mbps": rate_mbps, "rtt_ms": rtt_ms}
    if qdisc not in ("fq", "fq-2020"):
        return qb.Bottleneck(**path, qdisc=qdisc, buffer_packets=buffer_packets)
    options: dict[str, str | int] = {"flow_limit": buffer_packets}
    if qdisc == "fq-2020":
        options["maxrate"] = NO_FAST_PATH
    return qb.Bottleneck(**path, qdisc="fq", buffer_packets=LIMIT_PACKETS, qdisc_options=options)


def networks(args: argparse.Namespace) -> list[Network]:
    """All 125, 27, or the eight corners of the grid and its middle; at the rates asked for."""
    values = (RATES_MBPS, RTTS_MS, BUFFERS_PACKETS)
    if args.corners:
        ends = itertools.product(*((some[0], some[-1]) for some in values))
        chosen = [*ends, tuple(some[len(some) // 2] for some in values)]
    else:
        chosen = list(itertools.product(*(some[:: 2 if args.coarse else 1] for some in values)))
    return [one for one in chosen if one[0] in args.rates and one[2] in args.buffers]


def write_verdicts(args: argparse.Namespace) -> None:
    """Detect in each network, one queue after the other."""
    path = HERE / ("regular.csv" if args.regular else "verdicts.csv")
    for qdisc in args.qdiscs:
        cells = list(itertools.product(args.seeds, networks(args)))
        if args.missing:
            known = published(path, qdisc, args.competitor)
            cells = [cell for cell in cells if cell not in known]
        recipes = [
            verdict(qdisc, args.competitor, seed, network, is_regular=args.regular)
            for seed, network in cells
        ]
        rows = run_and_add(recipes, path, KEYS)
        right = sum(row["found"] == ("fair" if row["is_fair"] else "shared") for row in rows)
        print(f"{qdisc} {args.competitor or 'alone'}: {right}/{len(rows)}", flush=True)


def write_means(args: argparse.Namespace) -> None:
    """One rate after the other."""
    for rate_mbps in args.rates:
        cells = itertools.product(MEAN_FLOWS, RTTS_MS[::2], args.buffers)
        recipes = [mean(flow, rate_mbps, rtt_ms, buffer) for flow, rtt_ms, buffer in cells]
        run_and_add(recipes, HERE / "means.csv", ("flow", *CELL))


def write_interleaving(_: argparse.Namespace) -> None:
    """One run with random intervals, one with regular ones."""
    made = (recipe.made(recipe.runs()) for recipe in map(interleaving, ("random", "regular")))
    table = pd.concat(map(pd.DataFrame, made))
    table.to_csv(HERE / "interleaving.csv", index=False, float_format="%.5g")


def run_and_add(recipes: list[Recipe], table: Path, keys: Iterable[str]) -> list[dict[str, Any]]:
    """The rows of these recipes; also into the table, in place of those with the same keys."""
    rows = []
    outcomes = qb.run_all([recipe.specs[0] for recipe in recipes], progress=True)
    for recipe, outcome in zip(recipes, outcomes, strict=True):
        if outcome.run is None:
            print(f"{recipe.keys}: {outcome.error}")
            continue
        cost = {"run": outcome.run.attrs["hash"], "cpu_s": outcome.run.attrs["cpu_s"]}
        rows.append({**recipe.made([outcome.run]), **cost})
    if rows:
        add(rows, table, list(keys))
    return rows


def published(table: Path, qdisc: str, competitor: str) -> set[tuple[int, Network]]:
    """Seed and network of each row of the table with this queue and competitor."""
    if not table.exists():
        return set()
    rows = pd.read_csv(table, keep_default_na=False)
    rows = rows[(rows.qdisc == qdisc) & (rows.competitor == competitor)]
    return {(int(seed), (*map(int, network),)) for seed, *network in rows[[*KEYS[2:]]].to_numpy()}


def add(rows: list[dict[str, Any]], table: Path, keys: list[str]) -> None:
    """Write the rows into a table, in place of those with the same keys."""
    known = [pd.read_csv(table, keep_default_na=False)] if table.exists() else []
    whole = pd.concat([*known, pd.DataFrame(rows)]).drop_duplicates(keys, keep="last")
    written = table.with_suffix(".new")
    whole.sort_values(keys).map(shortened).to_csv(written, index=False)
    written.replace(table)


def shortened(value: object) -> object:
    """A number in six digits, as text: pandas rounds none in a column that also has words."""
    return f"{value:.6g}" if isinstance(value, float) and not math.isnan(value) else value


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser()
    make = parser.add_subparsers(required=True)
    verdicts = make.add_parser("verdicts")
    verdicts.add_argument("qdiscs", nargs="+")
    verdicts.add_argument("--competitor", default="")
    for flag in ("--coarse", "--corners", "--regular", "--missing"):
        verdicts.add_argument(flag, action="store_true")
    verdicts.add_argument("--seeds", type=int, nargs="+", default=[1])
    verdicts.set_defaults(write=write_verdicts, rates=RATES_MBPS, buffers=BUFFERS_PACKETS)
    means = make.add_parser("means")
    means.set_defaults(write=write_means, rates=[5, 16], buffers=BUFFERS_PACKETS[::2])
    for each in (verdicts, means):
        each.add_argument("--rates", type=int, nargs="+", help="only these")
        each.add_argument("--buffers", type=int, nargs="+", help="only these")
    make.add_parser("interleaving").set_defaults(write=write_interleaving)
    make.add_parser("figures").set_defaults(write=lambda _: publish_figures())
    args = parser.parse_args()
    args.write(args)


if __name__ == "__main__":
    main()
