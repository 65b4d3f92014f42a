"""Flows chosen from a run by isel and sel: as numbers, as labels, and what ``qb`` says of them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from chart_words import tables_of
from synthetic import synthetic_run

import qbkit as qb
from qbkit.chosen_flows import TABLES, chosen_flows
from qbkit.errors import TraceError
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
    ours = some.qb.summary().set_index("label")
    # What none of these reports, but another flow does, is a column of NaN in the whole table.
    pd.testing.assert_frame_equal(ours, whole.dropna(axis="columns", how="all"))
    for place, label in enumerate(labels):
        points, same = some.qb.envelope(place).points, run.qb.envelope(label).points
        assert (points == same).all()
    some.qb.plot.timeline().to_dict()
    assert labels[0] in repr(some.qb)


@pytest.mark.parametrize("chosen", [0, 1, [0], [2, 0]])
def test_plain_functions_are_about_the_chosen_flows_too(run, chosen):
    some, label = run.isel(flow=chosen), str(run["label"].isel(flow=chosen).values.reshape(-1)[0])
    pd.testing.assert_frame_equal(qb.metrics.summary(some), some.qb.summary())
    assert (qb.metrics.envelope(some, 0).points == run.qb.envelope(label).points).all()
    assert qb.flow_events(some, 0).sizes["sent"] == run.qb.events(label).sizes["sent"]
    qb.compare(some, run.isel(flow=[1])).frame()


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
def test_joined_runs_are_no_run(run, tmp_path):
    some = run.drop_dims(["packet", "ack", "sample"])
    for twice in (run.isel(flow=[0, 0]), xr.concat([some, some], "flow", data_vars="minimal")):
        with pytest.raises(qb.TraceError, match=r"a flow is there twice.*xr.concat\(runs, 'run'\)"):
            qb.metrics.jain_index(twice)
    joined = xr.concat([some, some], "run", data_vars="all")
    with pytest.raises(qb.TraceError, match=r"no dimension 'run'; select one run .*isel\(run=0\)"):
        qb.compare(joined, run)
    with pytest.raises(qb.StoreError, match=r"no dimension 'run'; select one run .*isel\(run=0\)"):
        qb.save_run(joined, tmp_path / "joined.nc")


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


CUT = {
    "summary": lambda run: run.qb.summary(),
    "balance": lambda run: run.qb.packet_balance(),
    "envelope": lambda run: run.qb.envelope(0),
    "events": lambda run: run.qb.events(0),
    "linked": lambda run: run.qb.plot.linked(),
    "distribution": lambda run: run.qb.plot.distribution(),
    "jain_index": qb.metrics.jain_index,
    "link_share": lambda run: qb.metrics.link_share(run, [0]),
    "throughput_ratio": lambda run: qb.metrics.throughput_ratio(run, 0, 1),
    "quicbench_points": qb.metrics.quicbench_points,
    "packet_trains": qb.metrics.packet_trains,
    "loss_response": qb.metrics.loss_response,
    "infer": qb.metrics.infer,
}
"""What is of a whole run: from all its packets and totals, over the time of its flows."""


@pytest.mark.parametrize("of_all", CUT)
def test_what_is_of_a_whole_run_refuses_a_part_of_its_time_or_packets(of_all: str):
    run = synthetic_run()
    words = (
        r"the time is cut to 5–9.9 s \(50 of 200 bins\), but the packets and totals are of the "
        r"whole run \(20 s\); .* run\.throughput_mbps\.sel\(time=slice\(5, 9\.9\)\)\.mean\("
    )
    with pytest.raises(qb.TraceError, match=words):
        CUT[of_all](run.sel(time=slice(5, 9.95)))
    with pytest.raises(qb.TraceError, match="cut to nothing"):
        CUT[of_all](run.sel(time=slice(50, 60)))
    if of_all != "balance":
        with pytest.raises(
            qb.TraceError, match="packets is cut to 1000, but the series of the run"
        ):
            CUT[of_all](run.isel(packet=slice(1000)))


def test_without_packets_a_part_of_the_time_is_refused_as_well():
    run = synthetic_run().drop_dims(["packet", "ack", "sample"])
    assert len(run.qb.summary()) == 2
    with pytest.raises(qb.TraceError, match="the time is cut to 5–9"):
        run.sel(time=slice(5, 9.95)).qb.summary()


def test_charts_over_time_follow_the_time_that_was_chosen():
    some = synthetic_run().sel(time=slice(5, 9.95))
    rows = next(t for t in tables_of(some.qb.plot.timeline()) if "throughput_mbps" in t[0])
    assert {float(r["time_s"]) for r in rows} == set(np.round(some.time.values + 0.05, 3))
    drawn = tables_of(some.qb.plot.distribution("throughput_mbps"))[0]
    most = max(float(r["value"]) for r in drawn if r["label"] == "tcp:cubic")
    assert most == pytest.approx(float(some.throughput_mbps[1].max()), abs=1e-3)


def light(seed: int = 1) -> xr.Dataset:
    return synthetic_run(seed=seed).drop_dims(["packet", "ack", "sample"])


NO_RUNS = {
    "a cube": (
        lambda: light().assign_attrs(sweep="{}"),
        r"^this is the cube of a sweep, .* cube\.throughput_mbps, .* qb\.load_run\(",
    ),
    "joined": (
        lambda: xr.concat([light(1), light(2)], dim="seed"),
        r"^a run has no dimension 'seed'; select one run of it first: \.isel\(seed=0\)$",
    ),
    "where": (
        lambda: light().where(light().time < 5, drop=True),
        r"^this is no run any more, for its start_s has a dimension 'time'",
    ),
    "one time": (
        lambda: light().isel(time=3),
        "it has no dimension 'time'; choose a span, run.sel",
    ),
    "a mean": (lambda: light().mean("time"), "it has no dimension 'time'; choose a span, run.sel"),
    "bare": (lambda: light().drop_attrs(deep=False), r"lost its attributes, .*keep_attrs=True"),
}


@pytest.mark.parametrize("kind", NO_RUNS)
@pytest.mark.parametrize(
    "use",
    [
        lambda ds: ds.qb.summary(),
        lambda ds: ds.qb.packet_balance(),
        lambda ds: ds.qb.plot.timeline(),
        lambda ds: ds.qb.plot.distribution(),
        lambda ds: repr(ds.qb),
        qb.metrics.jain_index,
        qb.metrics.envelope,
    ],
    ids=["summary", "balance", "timeline", "distribution", "repr", "jain_index", "envelope"],
)
def test_what_xarray_made_of_runs_says_what_to_use(use, kind: str):
    made, words = NO_RUNS[kind]
    with pytest.raises(qb.TraceError, match=words):
        use(made())
    assert len(xr.concat([light(1), light(2)], dim="seed").isel(seed=0).qb.summary()) == 2


def test_a_log_is_no_run_and_says_what_draws_it():
    log = xr.Dataset({"sent_time_s": ("sent", [0.0])})
    with pytest.raises(TraceError, match=r"this is the log of a connection.*root_cause_chart"):
        log.qb.plot.timeline()
    with pytest.raises(TraceError, match=r"this is no run; give a dataset that qb.run returns"):
        xr.Dataset().qb.summary()
