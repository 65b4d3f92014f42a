"""Runs on disk: exact, whole or absent, and clear about what is wrong with a file."""

from __future__ import annotations

import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from synthetic import synthetic_run

import qbkit as qb
from qbkit import measurement, store
from qbkit.cli.runs import runs_command
from qbkit.errors import StoreError
from qbkit.settings import cache_folder
from qbkit.stacks.external.configured import stacks_file
from qbkit.store.published import load_published
from qbkit.testbed import kernel
from qbkit.traces.flow_index import with_flow_index


def test_round_trip_is_exact(tmp_path):
    ds = synthetic_run()
    ds["queue_delay_ms"].values[0, 0] = np.nan
    qb.save_run(ds, tmp_path / "run.nc")
    again = qb.load_run(tmp_path / "run.nc")
    assert again.identical(with_flow_index(ds))
    for name, variable in ds.variables.items():
        assert again[name].values.tobytes() == variable.values.tobytes(), name
    assert {type(value) for value in again.attrs.values()} <= {str, int, float}
    assert again.encoding["source"] == str(tmp_path / "run.nc")


@pytest.mark.slow
def test_threads_may_write_and_read_runs_at_once(tmp_path):
    ds = synthetic_run()

    def stored(number: int) -> float:
        path = tmp_path / f"{number}.nc"
        qb.save_run(ds.assign_attrs(rate_mbps=number), path)
        return qb.load_run(path).load().attrs["rate_mbps"]

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(stored, range(40))] == [*range(40)]


@pytest.mark.parametrize("damage", ["truncated", "flipped", "text", "empty"])
def test_damaged_file_is_one_sentence(tmp_path, damage):
    path = tmp_path / "run.nc"
    qb.save_run(synthetic_run(), path)
    data = bytearray(path.read_bytes())
    if damage == "truncated":
        del data[len(data) // 2 :]
    elif damage == "flipped":
        data[:64] = bytes(64)
    path.write_bytes({"text": b"not a run", "empty": b""}.get(damage, bytes(data)))
    with pytest.raises(StoreError, match=r"run.nc is damaged or no netCDF file") as caught:
        qb.load_run(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("magic", [b"\xd4\xc3\xb2\xa1", b"\n\r\r\n"])
def test_a_capture_is_no_run(magic, tmp_path):
    path = tmp_path / "mine.pcap"
    path.write_bytes(magic + bytes(20))
    with pytest.raises(StoreError, match=r"mine\.pcap is a capture, not a run; `qbkit imp"):
        qb.load_run(path)


@pytest.mark.slow
def test_stale_runs_are_those_of_another_measurement_version(tmp_path, monkeypatch):
    monkeypatch.setenv("QBKIT_RUNS", str(tmp_path))
    versions = {"now": measurement.VERSION, "old": 1, "next": measurement.VERSION + 1}
    for name, version in versions.items():
        run = synthetic_run().assign_attrs(measurement_version=version)
        qb.save_run(run, tmp_path / f"{name}.nc")
    unnamed = synthetic_run()
    unnamed.attrs.pop("measurement_version", None)
    qb.save_run(unnamed, tmp_path / "unnamed.nc")
    qb.save_run(synthetic_run().assign_attrs(spec=""), tmp_path / "imported.nc")
    done = CliRunner().invoke(runs_command, ["--stale", "--json"])
    listed = {Path(row["path"]).stem: row["measurement_version"] for row in json.loads(done.output)}
    assert listed == {"old": 1, "next": measurement.VERSION + 1, "unnamed": 1}
    shown = CliRunner().invoke(runs_command, ["--stale"])
    last = shown.output.splitlines()[-1]
    assert last.startswith(f"3 runs of another measurement version than {measurement.VERSION}")


@pytest.mark.slow
@pytest.mark.parametrize("version", ["two", 0, 1.5, True, None])
def test_a_measurement_version_that_is_none_is_damage(version, tmp_path):
    source = Path(__file__).parents[1] / "data/conformance_120_s/reno"
    for ending in (".yaml", ".nc", ".json"):
        shutil.copy(source.with_suffix(ending), tmp_path)
    index = tmp_path / "reno.json"
    facts = json.loads(index.read_text())
    assert load_published(tmp_path / "reno.yaml").attrs["measurement_version"] == 1
    index.write_text(json.dumps({**facts, "measurement_version": version}))
    with pytest.raises(StoreError, match="must be a whole number from 1 on; fetch it again"):
        load_published(tmp_path / "reno.yaml")
    del facts["measurement_version"]
    index.write_text(json.dumps(facts))
    assert load_published(tmp_path / "reno.yaml").attrs["measurement_version"] == 1


def test_foreign_newer_and_missing_files(tmp_path):
    foreign = tmp_path / "foreign.nc"
    xr.Dataset({"a": ("x", [1, 2])}).to_netcdf(foreign, engine="h5netcdf")
    with pytest.raises(StoreError, match="is no run of qbkit"):
        qb.load_run(foreign)
    newer = tmp_path / "newer.nc"
    qb.save_run(synthetic_run().assign_attrs(format_version=99), newer)
    with pytest.raises(StoreError, match="has format 99, this qbkit reads up to 2; update"):
        qb.load_run(newer)
    with pytest.raises(StoreError, match="is a folder; name a file of a run"):
        qb.load_run(tmp_path)
    with pytest.raises(StoreError, match="there is no run file"):
        qb.load_run(tmp_path / "none.nc")


def test_one_flow_without_its_dimension_and_what_is_no_run_are_refused(tmp_path):
    run = synthetic_run()
    one, path = run.isel(flow=1), tmp_path / "one.nc"
    words = r'is one flow of a run, without the dimension flow; .* run.sel\(flow=\["tcp:cubic"\]\)$'
    one.to_netcdf(path, engine="h5netcdf")
    with pytest.raises(StoreError, match=f"one.nc {words}"):
        qb.load_run(path)
    for chosen in (one, run.isel(flow=[1])):
        qb.save_run(chosen, path)
        saved = qb.load_run(path)
        assert saved.label.values.tolist() == ["tcp:cubic"]
        assert saved.sizes["packet"] == int((run.packet_flow == 1).sum())
    for other in (xr.Dataset(), run.drop_attrs()):
        with pytest.raises(StoreError, match="only a run can be saved as a run; give a dataset"):
            qb.save_run(other, tmp_path / "other.nc")
    assert not (tmp_path / "other.nc").exists()


def test_full_disk_leaves_nothing(tmp_path):
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path)]
    if subprocess.run(command, check=False).returncode:
        pytest.skip("only root can mount a small file system to fill")
    try:
        with pytest.raises(StoreError, match=r"cannot write .*run.nc") as caught:
            qb.save_run(synthetic_run(), tmp_path / "run.nc")
        assert "\n" not in str(caught.value)
        assert list(tmp_path.iterdir()) == []
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_unwritable_place(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write"):
        qb.save_run(synthetic_run(), tmp_path / "file/run.nc")


def test_index_lists_good_and_damaged_files(tmp_path):
    qb.save_run(synthetic_run(seed=7), tmp_path / "good.nc")
    (tmp_path / "bad.nc").write_bytes(b"rubbish")
    index = qb.list_runs(tmp_path).set_index("path")
    good, bad = index.loc[str(tmp_path / "good.nc")], index.loc[str(tmp_path / "bad.nc")]
    assert good.problem == ""
    assert good.seed == 7
    assert "tcp" in good.flows
    assert "damaged" in bad.problem
    assert len(qb.list_runs(tmp_path / "empty")) == 0
    with pytest.raises(StoreError, match=r"bad.nc is a file; give a folder of runs"):
        qb.list_runs(tmp_path / "bad.nc")


def test_the_index_has_the_options_of_flows_and_the_name_of_one_that_is_not_read(tmp_path):
    run = synthetic_run()
    flow = {"stack": "tcp", "controller": "cubic", "options": {"ecn": True}}
    run.attrs["spec"] = json.dumps({"flows": [flow, {**flow, "of_another_qbkit": 1}]})
    qb.save_run(run, tmp_path / "run.nc")
    assert qb.list_runs(tmp_path).flows[0] == "tcp:cubic?ecn=true + tcp:cubic"


def test_a_folder_of_the_environment_may_begin_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("QBKIT_RUNS", "QBKIT_CACHE", "QBKIT_STACKS", "QBKIT_KERNEL"):
        monkeypatch.setenv(variable, "~/there")
    assert store.default_folder() == cache_folder() == stacks_file() == tmp_path / "there"
    with pytest.raises(qb.EngineError, match=f"QBKIT_KERNEL names {tmp_path}/there, which is not"):
        kernel.find()


def test_default_folder_can_be_chosen(own_runs):
    assert store.path_of("abc") == own_runs / "abc.nc"
