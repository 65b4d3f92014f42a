"""Makes what notebooks/05_root_cause.ipynb opens where no engine works, about 10 processor minutes.

python data/root_cause/make.py
"""

from __future__ import annotations

from pathlib import Path

import xarray as xr

import qbkit as qb

HERE = Path(__file__).parent
LINK = qb.Bottleneck(rate_mbps=20, rtt_ms=50, buffer_bdp=1)
TEST, REFERENCE = "quinn:cubic", "tcp:cubic"
TRANSFERS, TRANSFER_BYTES, GAP_S = 24, 1_000_000, 6.0


def main() -> None:
    """Everything, into this folder."""
    for name, side in ((TEST, "test"), (REFERENCE, "reference")):
        run = qb.Experiment(bottleneck=LINK, flows=[name], duration_s=20).run()
        write(qb.flow_events(run, 0), side)
    write(handshake(), "handshake")
    lossy = LINK.model_copy(update={"loss_percent": 1.0})
    found = {name: transfers(name, lossy) for name in (TEST, REFERENCE, "tcp:bbr")}
    table = qb.metrics.transfer_table(found)
    table.to_csv(HERE / "transfers.csv", index=False, float_format="%.6g")


def handshake() -> xr.Dataset:
    """The sender's own log of the first second."""
    lone = qb.Experiment(bottleneck=LINK, flows=[TEST], duration_s=1)
    kept = lone.run(keep="qlog").qb.kept_folder
    logs = [qb.read_qlog(path) for path in kept.rglob("*.sqlog")]
    return max(logs, key=lambda log: float(log.sent_size_bytes.sum()))


def transfers(name: str, link: qb.Bottleneck) -> list[xr.Dataset]:
    """Equal transfers one after the other, with random loss."""
    flows = tuple(
        qb.Flow(name, bytes=TRANSFER_BYTES, start_s=GAP_S * i, label=f"transfer {i}")
        for i in range(TRANSFERS)
    )
    run = qb.Experiment(
        bottleneck=link, flows=flows, duration_s=GAP_S * TRANSFERS, start_window_s=0
    ).run()
    return [qb.flow_events(run, i) for i in range(TRANSFERS)]


def write(events: xr.Dataset, name: str) -> None:
    """Times rounded to a microsecond, compressed."""
    times = {n: events[n].round(6) for n in events.data_vars if str(n).endswith("_time_s")}
    small = events.assign(times)
    packed = {"zlib": True, "complevel": 9, "shuffle": True}
    encoding = {n: packed for n, v in small.variables.items() if v.dtype.kind in "fiu" and v.size}
    small.to_netcdf(HERE / f"{name}.nc", engine="h5netcdf", encoding=encoding)


if __name__ == "__main__":
    main()
