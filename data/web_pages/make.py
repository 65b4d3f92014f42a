"""Run the loads of notebooks/11_pages.ipynb and publish what it opens.

python data/web_pages/make.py run FOLDER [--cells N] [--seeds 15]
python data/web_pages/make.py publish FOLDER

``run`` writes FOLDER/HASH.nc for each load, named by its spec, cell after cell, and leaves out
those that are there; FOLDER/HASH.failed.json says why a load failed, and a further seed then takes
its place in the cell. ``publish`` takes all loads in the folder: a table of them, one of those that
failed, and a few whole loads.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.metrics.web.pages import loss_in_words
from qbkit.studies.reproduction import Precision, Recipe, Table

HERE = Path(__file__).parent
SIZES = ("medium", "small", "large")
LOSSES: dict[str, dict[str, object]] = {
    "none": {},
    "random": {"loss_percent": 1.0, "loss_direction": "both"},
    # The bad state loses all packets and lasts 10 of them on average; 1 % are lost in the long run.
    "bursts": {"loss_model": "gemodel 0.101 10", "loss_direction": "both"},
}
EXTRA_RTTS_MS = (0, 100)
BASE_RTT_MS, RATE_MBPS, BUFFER_PACKETS = 15, 10, 50
"""The paper's rate and base RTT, and the default queue of the shaper that it used (dummynet)."""
SERVER, CLIENT = "envoy:cubic", "headless-shell"
DEEP_PACKETS = 2000
"""A queue that drops nothing shows in which order a server sends."""
PROTOCOLS = ("h2", "h3")
IN_TABLE = (
    *("page_load_time_s", "first_contentful_paint_s", "largest_contentful_paint_s"),
    *("screenshot_time_s", "visual_progress_percent", "packet_fate", "queue_delay_ms"),
    *("resource_type", "resource_bytes", "resource_start_s", "resource_end_s", "resource_urgency"),
    *("chunk_time_s", "chunk_bytes", "chunk_new_bytes", "chunk_resource"),
)
"""What `qbkit.metrics.page_table` reads of a load."""
NOT_SHOWN = ("connect_s", "handshake_s", "first_byte_s")
OTHER_SERVER = "go:cubic"
STRATEGY_SERVERS = (SERVER, OTHER_SERVER)
FAILED = ".failed.json"
REPRODUCIBLE = {"tables/loads.csv": Table(Precision(digits=7))}
OTHER = {"tables/failed.csv": "it lists loads that failed, which have no numbers"}
OTHER_CLIENT, OTHER_CLIENT_SEEDS = "firefox", 15


def load(
    size: str, loss: str, extra_rtt_ms: float, protocol: str, seed: int, **more: object
) -> qb.WebLoad:
    """One load."""
    given = {"server": SERVER, "client": CLIENT, "buffer_packets": BUFFER_PACKETS, **more}
    link = qb.Bottleneck(
        rate_mbps=RATE_MBPS,
        rtt_ms=BASE_RTT_MS + extra_rtt_ms,
        buffer_packets=given.pop("buffer_packets"),
        **LOSSES[loss],
    )
    return qb.WebLoad(bottleneck=link, protocol=protocol, page=size, seed=seed, **given)


def cells() -> list[tuple[str, str, float]]:
    """All cells in the order in which they are run: page, loss, extra RTT in ms."""
    return [(size, loss, rtt) for rtt in EXTRA_RTTS_MS for size in SIZES for loss in LOSSES]


def single_loads() -> Iterator[qb.WebLoad]:
    """The loads outside the grid: the deep queue, the whole browser, and Firefox."""
    for server in STRATEGY_SERVERS:
        for protocol in PROTOCOLS:
            more = {"server": server, "buffer_packets": DEEP_PACKETS}
            yield load("medium", "none", 0, protocol, 1, **more)
    for protocol in PROTOCOLS:
        yield load("medium", "none", 0, protocol, 1, client="chromium")
    for seed in range(1, OTHER_CLIENT_SEEDS + 1):
        for protocol in PROTOCOLS:
            yield load("medium", "none", 0, protocol, seed, client=OTHER_CLIENT)


def again(_: str, row: dict[str, Any]) -> Recipe:
    """How a row is made."""
    words = {
        loss_in_words(qb.Bottleneck(rate_mbps=RATE_MBPS, **given).model_dump(mode="json")): name
        for name, given in LOSSES.items()
    }
    more = {name: row[name] for name in ("server", "client", "buffer_packets")}
    extra_rtt_ms = row["rtt_ms"] - BASE_RTT_MS
    wanted = load(
        row["page"], words[row["loss"]], extra_rtt_ms, row["protocol"], row["seed"], **more
    )
    return Recipe([[wanted]], numbers)


def numbers(runs: list[xr.Dataset]) -> dict[str, Any]:
    """What the table says of a load."""
    (row,) = qb.metrics.page_table(runs).to_dict("records")
    return row


def run_all(folder: Path, count: int, seeds: int) -> None:
    """Run what is missing: the single loads, the first cells of the grid, and the other server."""
    for wanted in single_loads():
        run_one(folder, wanted)
    for cell in cells()[:count]:
        run_cell(folder, seeds, cell)
    run_cell(folder, seeds, ("medium", "random", 0), server=OTHER_SERVER)


def run_cell(folder: Path, seeds: int, cell: tuple[str, str, float], **more: object) -> None:
    """Run seeds 1, 2, … until so many loads over each protocol have ended."""
    for protocol in PROTOCOLS:
        ended = 0
        for seed in range(1, 2 * seeds + 1):
            ended += run_one(folder, load(*cell, protocol, seed, **more))
            if ended == seeds:
                break


def run_one(folder: Path, wanted: qb.WebLoad) -> bool:
    """Run a load if it is missing, at most twice; whether it ended."""
    path, failed = (folder / f"{wanted.hash}{end}" for end in (".nc", FAILED))
    if path.exists() or failed.exists():
        return path.exists()
    for _ in range(2):
        try:
            qb.run_web(wanted, out=path)
            return True
        except qb.QbkitError as error:
            reason = str(error)
            print(f"{wanted.name}, seed {wanted.seed}: {reason}", flush=True)
    failed.write_text(json.dumps({"web_load": wanted.to_json(), "reason": reason}))
    return False


def publish(folder: Path) -> None:
    """Write the table of all loads, and the median and single loads themselves."""
    paths = sorted(folder.glob("*.nc"))
    runs = [_brief(path) for path in paths]
    table = qb.metrics.page_table(runs)
    keys = ["client", "server", "buffer_packets", "page", "loss", "rtt_ms", "protocol", "seed"]
    links = [json.loads(run.attrs["web_load"])["bottleneck"] for run in runs]
    table["buffer_packets"] = [link["buffer_packets"] for link in links]
    order = table.sort_values(keys).index
    facts = {
        "command": "python data/web_pages/make.py run FOLDER; make.py publish FOLDER",
        "published": datetime.now(UTC).date().isoformat(),
        "loads": len(runs),
        "processor_minutes": round(sum(run.attrs["cpu_s"] for run in runs) / 60, 1),
        "kernel_version": runs[0].attrs["kernel_version"],
        "qbkit_version": runs[0].attrs["qbkit_version"],
        "warnings": sum(run.attrs["warnings"] != "[]" for run in runs),
    }
    tables = {"loads": table.loc[order], "failed": _failed(folder)}
    qb.publish_tables(tables, HERE / "tables", facts=facts)
    whole = {name: run.drop_vars(NOT_SHOWN) for name, run in _whole(paths, table)}
    for run in whole.values():
        run.encoding.pop("unlimited_dims", None)  # of the tables that are not published
    qb.publish_runs(whole, HERE / "runs", series=("queue_delay_ms",), facts=facts)
    print(f"{len(runs)} loads, {len(whole)} of them whole")


def _failed(folder: Path) -> pd.DataFrame:
    """Loads that failed twice, with the reason of the second time."""
    rows = []
    for path in sorted(folder.glob(f"*{FAILED}")):
        found = json.loads(path.read_text())
        load = qb.WebLoad.from_json(found["web_load"])
        link = json.loads(load.to_json())["bottleneck"]
        rows.append(
            {
                **{name: getattr(load, name) for name in ("server", "client", "page")},
                "loss": loss_in_words(link),
                "rtt_ms": link["rtt_ms"],
                **{name: getattr(load, name) for name in ("protocol", "seed", "limit_s")},
                "reason": found["reason"],
            }
        )
    return pd.DataFrame(rows)


def _brief(path: Path) -> xr.Dataset:
    """What the table needs of a load: not its packets and pictures, which are most of it."""
    with xr.open_dataset(path, engine="h5netcdf") as run:
        return run[[name for name in IN_TABLE if name in run]].load()


def _whole(paths: list[Path], table: pd.DataFrame) -> Iterator[tuple[str, xr.Dataset]]:
    """The loads that the notebook opens, by name: each cell's median, and the deep queue's."""
    grid = (table.client == CLIENT) & (table.buffer_packets == BUFFER_PACKETS)
    grid &= table.server == SERVER
    for setting, cell in table[grid].groupby(["page", "loss", "rtt_ms", "protocol"]):
        page, loss, rtt_ms, protocol = setting
        name = f"{page}-{loss.split()[0].strip(',')}-{rtt_ms:g}ms-{protocol}"
        in_order = cell.sort_values("page_load_time_s", kind="stable").index
        yield name, qb.load_run(paths[in_order[(len(cell) - 1) // 2]])
    deep = table[table.buffer_packets == DEEP_PACKETS].sort_values(["server", "protocol"])
    for i, row in deep.iterrows():
        yield f"{row.server.partition(':')[0]}-deep-{row.protocol}", qb.load_run(paths[i])


def main() -> None:
    """Run or publish."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["run", "publish"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cells", type=int, default=len(cells()))
    parser.add_argument("--seeds", type=int, default=15)
    args = parser.parse_args()
    if args.what == "publish":
        publish(args.folder)
    else:
        run_all(args.folder, args.cells, args.seeds)


if __name__ == "__main__":
    main()
