"""Flows chosen from a run by isel and sel: as numbers, as labels, and what ``qb`` says of them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from synthetic import synthetic_run

import qbkit as qb
from qbkit.metrics.flows.selection import TABLES, chosen_flows
from qbkit.traces.flow_index import with_flow_index

FLOWS = ("quic-go:cubic", "tcp:bbr", "tcp:reno")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> xr.Dataset:
    """A run as it comes from a file."""
    path = tmp_path_factory.mktemp("runs") / "run.nc"
    qb.save_run(synthetic_run(flows=FLOWS), path)
    return qb.load_run(path)


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [0, 2, [1], [2, 0], slice(1, None)])
def test_chosen_flows_keep_their_numbers(run, chosen):
    labels = run["label"].isel(flow=chosen).values.reshape(-1).tolist()
    whole = run.qb.summary().set_index("label").loc[labels]
    some = run.isel(flow=chosen)
    pd.testing.assert_frame_equal(some.qb.summary().set_index("label"), whole)
    for place, label in enumerate(labels):
        points, same = some.qb.envelope(place).points, run.qb.envelope(label).points
        assert (points == same).all()
    some.qb.plot.timeline().to_dict()
    assert labels[0] in repr(some.qb)


def test_a_flow_is_found_by_its_label(run):
    assert run.sel(flow="tcp:bbr").qb.summary()["label"].tolist() == ["tcp:bbr"]
    both = run.sel(flow=["tcp:reno", "quic-go:cubic"])
    assert both["label"].values.tolist() == ["tcp:reno", "quic-go:cubic"]
    assert both.sel(flow="tcp:reno")["label"].item() == "tcp:reno"
    assert run.throughput_mbps.sel(flow="tcp:bbr").equals(run.throughput_mbps.sel(flow=1))
    span = run.sel(flow=slice("tcp:bbr", "tcp:reno"))
    assert span["label"].values.tolist() == ["tcp:bbr", "tcp:reno"]
    with pytest.raises(KeyError, match="no flow 'bbr'; the flows are quic-go:cubic, tcp:bbr, tcp:"):
        run.sel(flow="bbr")
    with pytest.raises(KeyError, match="no flow 'tcp:bbr'; the flows are quic-go:cubic, tcp:reno"):
        run.isel(flow=[0, 2]).sel(flow="tcp:bbr")


def test_the_index_does_what_an_index_does(run):
    plain = synthetic_run(flows=FLOWS)
    assert run.equals(plain)
    assert pickle.loads(pickle.dumps(run)).sel(flow="tcp:bbr")["label"].item() == "tcp:bbr"
    joined = xr.concat([run[["throughput_mbps"]]] * 2, "seed")
    assert joined.sel(flow="tcp:bbr").sizes["seed"] == 2
    assert (run.throughput_mbps + plain.throughput_mbps).sizes == run.throughput_mbps.sizes
    assert with_flow_index(run.isel(flow=0)).sizes == run.isel(flow=0).sizes
    assert run.sel(flow=slice(0, 1)).sizes["flow"] == 2


def test_flows_joined_again_are_found_by_their_labels(run):
    mbps = run[["throughput_mbps"]]
    joined = xr.concat([mbps.isel(flow=[2]), mbps.isel(flow=[1])], "flow")
    assert joined.sel(flow="tcp:bbr").equals(mbps.sel(flow="tcp:bbr"))
    other = mbps.assign_coords(label=("flow", ["tcp:bbr", "a", "b"])).drop_indexes("flow")
    other = with_flow_index(other.set_xindex("flow"))
    # Number 1 is tcp:bbr in one of them, number 0 in the other.
    with pytest.raises(KeyError, match="there is no flow 'tcp:bbr'"):
        xr.concat([mbps, other], "flow").sel(flow="tcp:bbr")


@pytest.mark.slow
def test_a_run_is_compared_and_reindexed(run, tmp_path):
    qb.save_run(run.copy(), tmp_path / "again.nc")
    xr.testing.assert_identical(qb.load_run(tmp_path / "again.nc"), run)
    run.to_netcdf(tmp_path / "plain.nc", engine="h5netcdf")
    plain = xr.load_dataset(tmp_path / "plain.nc", engine="h5netcdf")
    xr.testing.assert_equal(plain, run)
    numbered = run.drop_indexes("flow").set_xindex("flow")
    xr.testing.assert_identical(plain, numbered)
    turned = numbered[["throughput_mbps"]].reindex(flow=[1, 0])
    assert turned["label"].values.tolist() == ["tcp:bbr", "quic-go:cubic"]


@pytest.mark.parametrize("table", TABLES)
def test_rows_of_other_flows_are_left_out_of_every_table(table: str):
    ds = xr.Dataset(
        {f"{table}_flow": (table, np.array([0, 1, 1], np.uint16)), "start_s": ("flow", [0.0, 1.0])},
        coords={"flow": [0, 1]},
    )
    assert chosen_flows(ds.isel(flow=1))[f"{table}_flow"].values.tolist() == [0, 0]
