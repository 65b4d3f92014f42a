"""Sweeps elsewhere: results in an object store (S3's own protocol), workers of another cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest
import xarray as xr
from aiohttp import ClientPayloadError
from botocore.exceptions import EndpointConnectionError
from fsspec.implementations.local import LocalFileSystem
from s3fs import S3FileSystem
from test_cube import NAMES, SWEEP, plain_figures

import qbkit as qb
from qbkit.errors import RunFailed, StoreError
from qbkit.execution import sweeps
from qbkit.execution.sweeps import _run_into, put_cube, run_sweep
from qbkit.spec.sweep import Sweep
from qbkit.store.cube import cube
from qbkit.store.sweep_folder import Results, storage

BASE = {
    "bottleneck": {"rate_mbps": 10, "rtt_ms": 20},
    "flows": ["tcp:cubic", "tcp:bbr"],
    "duration_s": 2,
}


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A URL with nothing there, on a server of this process."""
    from moto.server import ThreadedMotoServer  # slow to load

    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("NO_PROXY", host)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "anyone")
    S3FileSystem.clear_instance_cache()
    yield f"s3://results/{tmp_path.name}"
    S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.mark.slow
def test_runs_and_cubes_in_an_object_store(place: str, tmp_path: Path):
    file = tmp_path / "run.nc"
    file.write_bytes(b"a run")
    before = Results(place)
    assert before.names() == set()
    found = plain_figures(5)
    for name, one in found.items():
        before.put(name, file, one)
    assert Results(place).figures(NAMES) == found  # though the listing from before is remembered
    assert S3FileSystem().cat(f"{place}/runs/{NAMES[0]}.nc") == b"a run"
    for mbps in (5, 6):  # the second cube takes the place of the first
        made = cube(SWEEP, NAMES, plain_figures(mbps))
        put_cube(made, place)
        xr.testing.assert_identical(qb.load_sweep(place), made)
    assert not [name for name in S3FileSystem().find(place) if ".part" in name]


@pytest.mark.slow
def test_an_object_store_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, place: str):
    with pytest.raises(StoreError, match=r"there is no cube in s3://.*; run the sweep first"):
        qb.load_sweep(place)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    S3FileSystem.clear_instance_cache()
    with pytest.raises(StoreError, match=r"cannot use s3://.* for results: Could not connect"):
        Results(place).names()


@pytest.mark.parametrize("use", [qb.load_sweep, Results])
def test_a_place_that_fsspec_does_not_know(use):
    with pytest.raises(StoreError, match=r"nope://x for results: Protocol not known: nope; give a"):
        use("nope://x")


def test_plain_xarray_opens_a_cube_and_writes_it_again(tmp_path: Path):
    put_cube(cube(SWEEP, NAMES, plain_figures(5)), str(tmp_path))
    opened = xr.open_zarr(tmp_path / "cube.zarr")  # without a warning
    loaded = qb.load_sweep(tmp_path)
    xr.testing.assert_identical(opened.load(), loaded)
    with warnings.catch_warnings(action="ignore"):  # of Zarr, on texts in its format 3
        loaded.to_zarr(tmp_path / "mine.zarr")
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "mine.zarr").load(), loaded)


def test_a_damaged_cube_is_not_a_missing_one(tmp_path: Path):
    with pytest.raises(StoreError, match=r"there is no cube in .*; run the sweep first"):
        qb.load_sweep(tmp_path)
    put_cube(cube(SWEEP, NAMES, plain_figures(5)), str(tmp_path))
    (tmp_path / "cube.zarr/done/.zarray").write_text("{")
    with pytest.raises(StoreError, match=r"cube\.zarr is damaged; start the sweep again"):
        qb.load_sweep(tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (None, "it is not valid JSON"),
        ({"labels": None}, "labels is null, not a list"),
        ({"figures": {"goodput_mbps": [1.0]}}, "figures has no throughput_mbps"),
        ({"points": [[[1, "2"]]]}, r"points\[0\]\[0\]\[1\] is a text, not a number"),
        ({"series": [[1.0]] * 3}, "series has 3 values, and labels 2"),
        ({"stack_versions": "0.11"}, "it must be a JSON object"),
    ],
)
def test_figures_that_were_damaged_or_edited_are_one_sentence(
    change: dict | None, sentence: str, tmp_path: Path
):
    (tmp_path / "runs").mkdir()
    whole = plain_figures(5)[NAMES[0]]
    text = "{" if change is None else json.dumps(whole | change)
    (tmp_path / f"runs/{NAMES[0]}.json").write_text(text)
    with pytest.raises(StoreError, match=rf"\.json of .* is damaged: {sentence}.*; delete it, th"):
        Results(str(tmp_path)).figures(NAMES)


def test_a_run_that_does_not_fit_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(_: object, __: str, part: str) -> None:
        Path(part).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LocalFileSystem, "put_file", full)
    with pytest.raises(StoreError, match="No space left on device; free space, then start the"):
        Results(str(tmp_path)).put("name", tmp_path / "run.nc", {})
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        TimeoutError("too slow"),
        EndpointConnectionError(endpoint_url="http://there"),
        ClientPayloadError("cut off"),
    ],
)
def test_errors_of_storage_are_one_sentence(error: Exception):
    with (
        pytest.raises(StoreError, match=r"^cannot write: .+; free space$"),
        storage("cannot write", "free space"),
    ):
        raise error


@pytest.mark.parametrize("error", [KeyError("digest"), TypeError("a bug"), AssertionError()])
def test_errors_of_programs_are_not_taken_for_errors_of_storage(error: Exception):
    with pytest.raises(type(error)), storage("there is no cube", "run the sweep first"):
        raise error


@pytest.mark.guest  # whose kernel is part of a run's name
def test_workers_get_the_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    given: list[tuple] = []
    monkeypatch.setattr(
        sweeps, "called", lambda calls, *_, **__: given.extend(calls.values()) or {}
    )
    run_sweep(Sweep(name="x", base=BASE, sweep={"seed": [1]}), "out")
    assert given[0][3] == str(tmp_path / "out")


@pytest.mark.guest
def test_a_sweep_into_an_object_store(place: str):
    made = Sweep(name="x", base=BASE, sweep={"seed": [1, 2]})
    first = run_sweep(made, place)
    assert (first.runs, first.ran, first.failures) == (2, 2, [])
    assert bool(first.cube.done.all())
    assert run_sweep(made, place).ran == 0
    xr.testing.assert_identical(qb.load_sweep(place), first.cube.load())


@pytest.mark.guest
def test_a_worker_with_other_versions_runs_nothing(tmp_path: Path):
    experiment = next(Sweep(name="x", base=BASE, sweep={"seed": [1]}).points()).experiment
    with pytest.raises(RunFailed, match="has another kernel, qbkit or version of a stack"):
        _run_into(experiment.to_json(), "name-by-others", str(tmp_path), None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.guest
def test_results_that_the_workers_do_not_share_are_no_success():
    # Each process has its own memory.
    outcome = run_sweep(Sweep(name="x", base=BASE, sweep={"seed": [1]}), f"memory://{os.getpid()}")
    (failure,) = outcome.failures
    assert "its result is not in memory://" in failure.reason
    assert not bool(outcome.cube.done.any())


@pytest.mark.guest  # whose kernel is part of a run's name
def test_a_scheduler_without_workers_that_ends(tmp_path: Path):
    programs = Path(sys.executable).parent
    (tmp_path / "s.yaml").write_text(
        json.dumps({"name": "x", "base": BASE, "sweep": {"seed": [1]}})
    )
    where = tmp_path / "scheduler.json"
    dask = f"{programs}/dask scheduler --host 127.0.0.1 --port 0 --no-dashboard"
    with (
        subprocess.Popen([*dask.split(), "--scheduler-file", where], stderr=DEVNULL) as scheduler,
        ExitStack() as at_the_end,
    ):
        at_the_end.callback(scheduler.kill)  # whatever fails before
        while not where.exists() or not where.read_text():
            time.sleep(0.1)
        address = json.loads(where.read_text())["address"]
        words = f"{programs}/qbkit sweep s.yaml --out out --json --scheduler {address}"
        with subprocess.Popen(words.split(), cwd=tmp_path, stdout=PIPE, stderr=PIPE) as sweep:
            assert b"waiting for a worker; start one: dask worker" in sweep.stderr.readline()
            scheduler.kill()
            report, complaints = sweep.communicate()
    assert sweep.returncode == 1
    assert "the scheduler is gone" in json.loads(report)["failures"][0]["reason"]
    assert complaints.count(b"\n") == 1
