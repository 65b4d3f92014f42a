"""Runs the loads of notebooks/10_h2_vs_h3_objects.ipynb and publishes what it opens.

python data/web_objects/make.py run FOLDER [--seeds 40] [--at-once 2]
python data/web_objects/make.py publish FOLDER

``run`` writes FOLDER/HASH.nc for each load, named by its spec, and leaves out those that are there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.metrics.web.loads import SETTING
from qbkit.studies.reproduction import Precision, Recipe, Table

HERE = Path(__file__).parent
DIGITS = Precision(digits=7)
SIZES_BYTES = (100_000, 1_000_000, 5_000_000)
LOSSES_PERCENT = (0.0, 0.1, 1.0)
EXTRA_RTTS_MS = (0, 50, 100)
BASE_RTT_MS, RATE_MBPS, BUFFER_PACKETS = 15, 10, 50
OTHER_SERVERS = ("envoy:bbr", "go:cubic")
OTHER_SEEDS = 12
"""Seeds of other controllers and servers with the most loss."""
FEW_SEEDS = 3
"""Seeds where no loss is added: such loads differ by the jitter of packets alone."""
SAME_WINDOW_PACKETS = 32
"""QUICHE's and quic-go's initial window."""
POINTS = 150
"""Points of a published curve."""
CURVE = (*SETTING, "protocol", "seed")
REPRODUCIBLE = {"loads.csv": Table(DIGITS), "acked.csv": Table(DIGITS, by=CURVE)}


def grid(seed: int, server: str = "envoy:cubic", **more: Any) -> Iterator[qb.WebLoad]:
    """All cells of one seed, over both protocols."""
    for size, loss, extra in itertools.product(SIZES_BYTES, LOSSES_PERCENT, EXTRA_RTTS_MS):
        lost = {"loss_percent": loss, "loss_direction": "both"} if loss else {}
        link = qb.Bottleneck(
            rate_mbps=RATE_MBPS, rtt_ms=BASE_RTT_MS + extra, buffer_packets=BUFFER_PACKETS, **lost
        )
        for protocol in ("h2", "h3"):
            fields = {"client": "go", "object_bytes": size, "seed": seed, **more}
            yield qb.WebLoad(bottleneck=link, server=server, protocol=protocol, **fields)


def loads(seeds: int) -> Iterator[qb.WebLoad]:
    """The grid of Envoy's CUBIC; parts of it with other controllers, servers, windows, clients.

    The loads that vary most come first, so that what is done can be published at any time.
    """
    for seed in range(1, OTHER_SEEDS + 1):
        for server in OTHER_SERVERS:
            yield from with_loss(grid(seed, server), LOSSES_PERCENT[-1])
    for seed in range(1, FEW_SEEDS + 1):
        yield from same_window(seed)
        yield from other_clients(seed)
        yield from early_data(seed)
        for server in OTHER_SERVERS:
            yield from with_loss(grid(seed, server), 0)
    for loss_percent in reversed(LOSSES_PERCENT):
        for seed in range(1, seeds + 1):
            yield from with_loss(grid(seed), loss_percent)


def with_loss(chosen: Iterator[qb.WebLoad], loss_percent: float) -> Iterator[qb.WebLoad]:
    """The loads over links with this loss."""
    return (load for load in chosen if load.bottleneck.loss_percent == loss_percent)


def same_window(seed: int) -> Iterator[qb.WebLoad]:
    """H2 whose TCP starts with as many packets as QUICHE."""
    for load in with_loss(grid(seed, tcp_initial_window_packets=SAME_WINDOW_PACKETS), 0):
        if load.protocol == "h2":
            yield load


def other_clients(seed: int) -> Iterator[qb.WebLoad]:
    """The other clients of each protocol, on links without loss."""
    for protocol, client in (("h2", "curl"), ("h3", "aioquic"), ("h3", "ngtcp2")):
        for load in with_loss(grid(seed, client=client), 0):
            if load.protocol == protocol and load.object_bytes != SIZES_BYTES[-1]:
                yield load


def early_data(seed: int) -> Iterator[qb.WebLoad]:
    """H3 whose client resumes a session and sends its request as early data."""
    for load in with_loss(grid(seed, client="aioquic", zero_rtt=True), 0):
        if load.protocol == "h3" and load.object_bytes == SIZES_BYTES[0]:
            yield load


def again(table: str, row: dict[str, Any]) -> Recipe:
    """How a row, or a curve, is made."""
    lossy = {"loss_percent": row["loss_percent"], "loss_direction": "both"}
    link = qb.Bottleneck(
        rate_mbps=RATE_MBPS,
        rtt_ms=row["rtt_ms"],
        buffer_packets=BUFFER_PACKETS,
        **(lossy if row["loss_percent"] else {}),
    )
    names = ("server", "client", "protocol", "object_bytes", "seed", "zero_rtt")
    fields = {"client": "go", **{name: row[name] for name in names if name in row}}
    window = row.get("tcp_initial_window_packets")
    if window == SAME_WINDOW_PACKETS and row["protocol"] == "h2":
        fields["tcp_initial_window_packets"] = window
    measure = curve if table == "acked.csv" else numbers
    return Recipe([[qb.WebLoad(bottleneck=link, **fields)]], measure)


def numbers(runs: list[xr.Dataset]) -> dict[str, Any]:
    """What the table says of a load."""
    (row,) = qb.metrics.web_table(runs).to_dict("records")
    return row


def curve(runs: list[xr.Dataset]) -> list[dict[str, Any]]:
    """What the client had received, over time."""
    return qb.metrics.acked_table(runs[0], POINTS).to_dict("records")


def run_one(job: tuple[qb.WebLoad, Path]) -> str:
    """Run a load, unless it is there; the sentence that says why it failed, or ""."""
    load, folder = job
    path = folder / f"{load.hash}.nc"
    for _ in range(2):
        if path.exists():
            return ""
        try:
            qb.run_web(load, out=path)
        except qb.QbkitError as error:
            failure = f"{load.name}, seed {load.seed}: {error}"
    return "" if path.exists() else failure


def publish(folder: Path) -> None:
    """Write the table of all loads and the curves of the median ones."""
    runs = {path: qb.load_run(path) for path in sorted(folder.glob("*.nc"))}
    table = qb.metrics.web_table(list(runs.values())).assign(path=list(runs))
    keys = [*SETTING, "tcp_initial_window_packets", "client", "zero_rtt", "protocol", "seed"]
    table = table.sort_values(keys, ignore_index=True)
    plain = table[table.tcp_initial_window_packets < SAME_WINDOW_PACKETS]
    chosen = qb.metrics.median_loads(plain[plain.client == "go"])
    curves = pd.concat(
        [
            qb.metrics.acked_table(runs[row["path"]], POINTS).assign(
                **{name: row[name] for name in (*SETTING, "protocol", "seed")}
            )
            for _, row in chosen.iterrows()
        ]
    )
    first = next(iter(runs.values())).attrs
    versions: dict[str, str] = {}
    for run in runs.values():
        versions |= json.loads(run.attrs["stack_versions"])
    facts = {
        "command": "python data/web_objects/make.py run FOLDER; make.py publish FOLDER",
        "published": datetime.now(UTC).date().isoformat(),
        "loads": len(runs),
        "processor_hours": round(sum(run.attrs["cpu_s"] for run in runs.values()) / 3600, 3),
        "kernel_version": first["kernel_version"],
        "qbkit_version": first["qbkit_version"],
        "versions": versions,
        "warnings": sum(run.attrs["warnings"] != "[]" for run in runs.values()),
    }
    tables = {"loads": table.drop(columns="path"), "acked": curves}
    qb.publish_tables(tables, HERE, facts=facts)
    print(f"{len(runs)} loads, {len(curves)} points of {len(chosen)} curves")


def main() -> None:
    """Run or publish."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["run", "publish"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--at-once", type=int, default=2)
    args = parser.parse_args()
    if args.what == "publish":
        publish(args.folder)
        return
    jobs = ((load, args.folder) for load in loads(args.seeds))
    with multiprocessing.Pool(args.at_once) as pool:
        for failure in filter(None, pool.imap_unordered(run_one, jobs)):
            print(failure)


if __name__ == "__main__":
    main()
