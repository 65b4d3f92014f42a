"""Structured fuzz of specs and results: other types, missing members and changed files."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic import synthetic_run
from words import OTHERS, changed, check_words, read_or_say_why

import qbkit as qb
from qbkit import store
from qbkit.errors import StoreError
from qbkit.spec.spec_file import read_fields
from qbkit.stacks.external import configured
from qbkit.store.tables import load_tables, publish_tables
from qbkit.traces.run.attributes import run_experiment, run_warnings

DATA = Path(__file__).parents[1] / "data"
PATIENT = {"suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
           "deadline": None}  # fmt: skip
LINK = {"rate_mbps": 10, "rtt_ms": 20, "buffer_bdp": 1.5, "qdisc": "fifo", "loss_percent": 0.1}
FLOW = {"stack": "tcp", "controller": "bbr", "start_s": 1, "options": {"x": 1}, "bytes": 1000}
EXPERIMENT = {"bottleneck": LINK, "flows": ["tcp:cubic", FLOW], "duration_s": 8, "seed": 1}
SWEEP = {"name": "x", "base": EXPERIMENT, "sweep": {"seed": [1, 2], "flows.0": ["tcp:reno"]},
         "unordered": None}  # fmt: skip
LOAD = {"server": "nginx:cubic", "client": "curl", "protocol": "h3", "bottleneck": LINK, "seed": 1,
        "object_bytes": 1000}  # fmt: skip
SPECS = {
    "experiment": (EXPERIMENT, qb.Experiment.from_file),
    "sweep": (SWEEP, lambda path: list(qb.Sweep.from_file(path).points())),
    "load": (LOAD, lambda path: qb.WebLoad(**read_fields(path, "a load"))),
}


def test_what_is_changed_here_is_right_as_it_is(tmp_path):
    for document, read in SPECS.values():
        (tmp_path / "spec.yaml").write_text(json.dumps(document))
        read(tmp_path / "spec.yaml")
    configured.from_table("mine", STACK, Path("stacks.toml"))


@pytest.mark.slow
@settings(max_examples=200, **PATIENT)
@given(
    data=st.data(), kind=st.sampled_from(list(SPECS)), ending=st.sampled_from([".json", ".yaml"])
)
def test_specs_of_other_types(tmp_path, data, kind, ending):
    document, read = SPECS[kind]
    path = tmp_path / f"spec{ending}"
    path.write_text(json.dumps(changed(data, document)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read_or_say_why(lambda: read(path))


@pytest.mark.parametrize("read", [qb.Experiment.from_json, qb.WebLoad.from_json])
@pytest.mark.parametrize("text", ["", "[]", "null", "[" * 100_000, '{"seed": 1' + "0" * 5000 + "}"])
def test_json_that_is_no_spec(read, text):
    assert read_or_say_why(lambda: read(text)) is None


@pytest.fixture(scope="module")
def run_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run.nc"
    store.save_run(synthetic_run(duration_s=3), path)
    return path


ATTRS = ("spec", "warnings", "format_version", "stack_versions", "seed", "rate_mbps", "engine")


@pytest.mark.slow
@settings(max_examples=60, **PATIENT)
@given(data=st.data())
def test_runs_whose_attributes_and_variables_are_others(tmp_path, run_file, data):
    path = tmp_path / "run.nc"
    shutil.copy(run_file, path)
    with h5py.File(path, "r+") as file:
        for _ in range(data.draw(st.integers(1, 3))):
            name = data.draw(st.sampled_from(ATTRS))
            if name in file.attrs:
                del file.attrs[name]
            value = data.draw(st.sampled_from([*OTHERS[:11], "{}", "[1]", '{"flows": 7}',
                                               np.zeros(3), np.array([b"x", b"y"])]))  # fmt: skip
            if value is not None and not isinstance(value, list) and data.draw(st.booleans()):
                try:
                    file.attrs[name] = value
                except (TypeError, OverflowError):  # HDF5 has no such number
                    file.attrs[name] = "x"
        if data.draw(st.booleans()):
            del file[data.draw(st.sampled_from(sorted(file)))]

    def read() -> None:
        ds = qb.load_run(path)
        run_warnings(ds)
        run_experiment(ds)

    read_or_say_why(read)
    for problem in store.list_runs(tmp_path).problem:
        assert not problem or check_words(problem) is None


@settings(max_examples=40, **PATIENT)
@given(data=st.data())
def test_runs_that_are_cut_off(tmp_path, run_file, data):
    content = run_file.read_bytes()
    (tmp_path / "run.nc").write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(StoreError) as raised:
        qb.load_run(tmp_path / "run.nc")
    check_words(raised.value)


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    """A study, tables and a sweep's cube, as they are published."""
    folder = tmp_path_factory.mktemp("published")
    runs = [synthetic_run(duration_s=6, flows=("tcp:cubic", "tcp:bbr"), seed=n) for n in (1, 2)]
    named = {
        f"{side}-seed-{n}": run for side in ("test", "reference") for n, run in enumerate(runs)
    }
    facts = {"test": "a:cubic", "reference": "tcp:cubic", "parameters": {}}
    qb.publish_runs(named, folder / "study", facts=facts)
    publish_tables({"a": pd.DataFrame({"x": [1.0, 2.0]})}, folder / "tables")
    for ending in (".yaml", ".json", ".nc"):
        shutil.copy(DATA / "conformance" / f"reno{ending}", folder / f"sweep{ending}")
    return folder


@pytest.mark.slow
@settings(max_examples=25, **PATIENT)
@given(data=st.data(), what=st.sampled_from(["study", "tables", "sweep"]))
def test_published_data_whose_index_has_other_types(tmp_path, published, data, what):
    folder = tmp_path / "published"
    if not folder.exists():
        shutil.copytree(published, folder)
    index = folder / ("sweep.json" if what == "sweep" else f"{what}/index.json")
    original = published / index.relative_to(folder)
    index.write_text(json.dumps(changed(data, json.loads(original.read_text()))))
    place = folder / ("sweep.yaml" if what == "sweep" else what)
    study = [qb.load_runs, qb.load_study, qb.load_explanation, qb.open_results]
    readers = {"tables": [load_tables], "sweep": [qb.load_sweep, qb.open_results],
               "study": study}  # fmt: skip
    for read in readers[what]:
        read_or_say_why(lambda read=read: read(place))
    shutil.copy(original, index)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"7", b"\xff", b"[" * 100_000])
def test_an_index_that_is_no_index(tmp_path, content):
    (tmp_path / "index.json").write_bytes(content)
    (tmp_path / "s.yaml").write_text("name: x\n")
    (tmp_path / "s.json").write_bytes(content)
    (tmp_path / "s.nc").write_bytes(content)
    for read in (qb.load_runs, qb.load_study, load_tables, qb.load_explanation, qb.open_results):
        with pytest.raises(StoreError) as raised:
            read(tmp_path)
        check_words(raised.value)
    with pytest.raises(StoreError) as raised:
        qb.load_sweep(tmp_path / "s.yaml")
    check_words(raised.value)


def test_a_published_file_that_is_what_was_published_but_no_run(tmp_path):
    content = b"hello"
    facts = {"name": "a", "sha256": hashlib.sha256(content).hexdigest()}
    for index, name in ((tmp_path / "index.json", "a.nc"), (tmp_path / "s.json", "s.nc")):
        index.write_text(json.dumps({"files": {"a.nc": facts}, **facts}))
        (tmp_path / name).write_bytes(content)
    for read, place in ((qb.load_runs, tmp_path), (qb.load_sweep, tmp_path / "s.yaml")):
        with pytest.raises(StoreError) as raised:
            read(place)
        check_words(raised.value)


@pytest.fixture(scope="module")
def cube(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    made = xr.load_dataset(DATA / "conformance/reno.nc", engine="h5netcdf")
    made[["done", "point_delay_ms"]].isel(time=slice(0, 3), missing_dims="ignore").to_zarr(
        folder / "cube.zarr", consolidated=False
    )
    return folder


@pytest.mark.slow
@settings(max_examples=30, **PATIENT)
@given(data=st.data())
def test_cubes_whose_description_has_other_types(tmp_path, cube, data):
    folder = tmp_path / "sweep"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(cube, folder)
    described = [p for p in (folder / "cube.zarr").rglob("*.json") if p.is_file()]
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(sorted(described)))
        if data.draw(st.booleans()):
            path.write_text(json.dumps(changed(data, json.loads(path.read_text()))))
        else:
            path.write_bytes(data.draw(st.sampled_from([b"", b"{", b"null", b"\xff", b"[]"])))
            break
    read_or_say_why(lambda: qb.load_sweep(folder))
    read_or_say_why(lambda: qb.open_results(folder))


STACK = {"program": "/bin/true", "controllers": {"cubic": "c", "bbr": "b"}, "sender": "connect",
         "connect": ["--cc={controller}", "{ip}", "{port}"],
         "listen": ["--port={port}", "--cert={cert}", "--key={key}"],
         "version_command": ["/bin/true"]}  # fmt: skip


@settings(max_examples=100, **PATIENT)
@given(data=st.data())
def test_own_stacks_of_other_types(data):
    table = changed(data, STACK)
    read_or_say_why(lambda: configured.from_table("mine", table, Path("stacks.toml")))


@pytest.mark.parametrize("content", [b"[stack", b"\xff", b"x = " + b"[" * 100_000, b"x = 1",
                                     b"stack = 7", b"[stack]\nmine = 1"])  # fmt: skip
def test_a_file_of_own_stacks_that_is_none(tmp_path, content):
    (tmp_path / "stacks.toml").write_bytes(content)
    assert read_or_say_why(lambda: configured.load(tmp_path / "stacks.toml")) is None
