"""Published runs stand in where nothing can run, and nowhere else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import xarray as xr

import qbkit as qb

DATA = Path(__file__).parents[1] / "data"
START = qb.Experiment(
    bottleneck=qb.Bottleneck(rate_mbps=20, rtt_ms=50, buffer_bdp=1),
    flows=["tcp:cubic", "tcp:bbr"],
    duration_s=30,
    seed=1,
)


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QBKIT_KERNEL", str(tmp_path / "no-kernel-here"))


def test_the_published_run_of_the_same_experiment_stands_in_and_a_line_says_so(capsys):
    run = START.run(engine="virtual", published=DATA / "start")
    (published,) = qb.load_runs(DATA / "start").values()
    assert run.identical(published)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"From {DATA / 'start'}: a published run, because this machine")
    assert "no-kernel-here" in said.err


@pytest.mark.parametrize("change", [{"seed": 2}, {"duration_s": 31}, {"flows": ("tcp:cubic",)}])
def test_a_published_run_of_another_experiment_does_not_stand_in(change):
    other = qb.Experiment(**{**dict(START), **change})
    with pytest.raises(qb.EngineError, match="no-kernel-here"):
        other.run(engine="virtual", published=DATA / "start")


def test_without_published_runs_the_error_stays():
    with pytest.raises(qb.EngineError, match="no-kernel-here"):
        START.run(engine="virtual")


def test_a_mistake_in_the_experiment_is_no_reason_for_a_stand_in():
    with pytest.raises(qb.SpecError, match="nonsense"):
        qb.run("tcp:nonsense", published=DATA / "start")


def test_a_folder_without_published_runs_is_named(tmp_path):
    with pytest.raises(qb.StoreError, match=f"no published runs in {tmp_path}"):
        START.run(engine="virtual", published=tmp_path)


def test_of_many_runs_those_that_are_published_stand_in(capsys):
    names = ["tcp:cubic", "tcp:bbr", "tcp:vegas"]
    lone = [qb.Experiment(bottleneck=START.bottleneck, flows=[n], duration_s=20) for n in names]
    cubic, bbr, vegas = qb.run_all(lone, engine="virtual", published=DATA / "gallery")
    assert [outcome.run.label.item() for outcome in (cubic, bbr)] == names[:2]
    assert cubic.error is bbr.error is None
    assert vegas.run is None
    assert "no-kernel-here" in vegas.reason
    assert "2 published runs" in capsys.readouterr().err


@pytest.mark.slow
def test_a_published_study_stands_in():
    study = qb.conformance_study(
        "quic-go:cubic", "tcp:cubic", engine="virtual", published=DATA / "envelope"
    )
    assert study.assess().to_dict() == qb.load_study(DATA / "envelope").assess().to_dict()


def of_before(run: xr.Dataset) -> xr.Dataset:
    """The run with a spec that knows no start window: its flows started at once."""
    spec = json.loads(run.attrs["spec"])
    del spec["start_window_s"]
    return run.assign_attrs(spec=json.dumps(spec))


def test_a_study_from_before_start_windows_does_not_stand_in_for_one_of_today(tmp_path):
    study = qb.load_study(DATA / "cases" / "ack-10")
    sides = {side: [*map(of_before, getattr(study, side))] for side in ("tests", "references")}
    qb.publish_study(replace(study, **sides), tmp_path)
    newreno = qb.Flow("quinn:newreno", options={"ack_every_packets": 10})
    with pytest.raises(qb.EngineError, match="no-kernel-here"):
        qb.conformance_study(
            *(newreno, "tcp:reno"),
            bottleneck=START.bottleneck,
            duration_s=60,
            seeds=4,
            engine="virtual",
            published=tmp_path,
        )


def test_implementations_that_are_not_ready_are_listed_on_request():
    ready, known = qb.list_implementations(), qb.list_implementations(ready=False)
    assert set(ready) < set(known)
    assert "mvfst:bbr" in known
