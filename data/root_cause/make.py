"""Makes what notebooks/05_root_cause.ipynb opens where no engine works, in a minute.

python data/root_cause/make.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.store.index import name_in_index
from qbkit.studies.reproduction import Recipe, Table, made_with

HERE = Path(__file__).parent
LINK = qb.Bottleneck(rate_mbps=20, rtt_ms=50, buffer_bdp=1)
TEST, REFERENCE = "quinn:cubic", "tcp:cubic"
SIDES = {"test.nc": TEST, "reference.nc": REFERENCE}
TRANSFERS, TRANSFER_BYTES, GAP_S = 24, 1_000_000, 6.0
REPRODUCIBLE = {
    **dict.fromkeys((*SIDES, "handshake.nc"), Table()),
    "transfers.csv": Table(by=("label",)),
}


def again(file: str, row: dict[str, Any]) -> Recipe:
    """How a file, or the rows of a label, are made."""
    if file in SIDES:
        lone = qb.Experiment(bottleneck=LINK, flows=[SIDES[file]], duration_s=20)
        return Recipe([[lone]], lambda runs: rounded(qb.flow_events(runs[0], 0)))
    return handshake() if file == "handshake.nc" else transfers(row["label"])


def handshake() -> Recipe:
    """The sender's own log of the first second."""
    lone = qb.Experiment(bottleneck=LINK, flows=[TEST], duration_s=1)

    def measure(runs: list[xr.Dataset]) -> xr.Dataset:
        logs = [qb.read_qlog(path) for path in runs[0].qb.kept_folder.rglob("*.sqlog")]
        return rounded(max(logs, key=lambda log: float(log.sent_size_bytes.sum())))

    return Recipe([[lone]], measure, keep="qlog")


def transfers(name: str) -> Recipe:
    """Equal transfers one after the other, with random loss."""
    flows = tuple(
        qb.Flow(name, bytes=TRANSFER_BYTES, start_s=GAP_S * i, label=f"transfer {i}")
        for i in range(TRANSFERS)
    )
    lossy = LINK.model_copy(update={"loss_percent": 1.0})
    in_turn = qb.Experiment(
        bottleneck=lossy, flows=flows, duration_s=GAP_S * TRANSFERS, start_window_s=0
    )

    def measure(runs: list[xr.Dataset]) -> list[dict[str, Any]]:
        events = [qb.flow_events(runs[0], i) for i in range(TRANSFERS)]
        return qb.metrics.transfer_table({name: events}).to_dict("records")

    return Recipe([[in_turn]], measure)


def rounded(events: xr.Dataset) -> xr.Dataset:
    """The events with times rounded to a microsecond."""
    times = {n: events[n].round(6) for n in events.data_vars if str(n).endswith("_time_s")}
    return events.assign(times)


def main() -> None:
    """Everything, into this folder."""
    for file in (*SIDES, "handshake.nc"):
        recipe = again(file, {})
        runs = recipe.runs()
        small = recipe.made(runs)
        packed = {"zlib": True, "complevel": 9, "shuffle": True}
        numbers = [n for n, v in small.variables.items() if v.dtype.kind in "fiu" and v.size]
        encoding = dict.fromkeys(numbers, packed)
        small.to_netcdf(HERE / file, engine="h5netcdf", encoding=encoding)
        name_in_index(HERE / file, made_with(run.attrs for run in runs))
    tables, attributes = [], []
    for name in (TEST, REFERENCE, "tcp:bbr"):
        recipe = transfers(name)
        runs = recipe.runs()
        tables.append(pd.DataFrame(recipe.made(runs)))
        attributes += [run.attrs for run in runs]
    path = HERE / "transfers.csv"
    pd.concat(tables).to_csv(path, index=False, float_format="%.6g")
    name_in_index(path, made_with(attributes))


if __name__ == "__main__":
    main()
