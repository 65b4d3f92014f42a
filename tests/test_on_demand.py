"""A stored run reads what is asked for, whatever becomes of its file, and xarray spares Dask."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
from synthetic import synthetic_run

import qbkit as qb
from qbkit.errors import StoreError
from qbkit.metrics import summary
from qbkit.store import on_demand
from qbkit.traces.flow_index import with_flow_index


@pytest.fixture
def path(tmp_path: Path) -> Path:
    qb.save_run(synthetic_run(), tmp_path / "run.nc")
    return tmp_path / "run.nc"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the variables that are read from files."""
    names: list[str] = []
    real = on_demand._Stored._read

    def noting(self: on_demand._Stored, key: tuple) -> object:
        names.append(self.name)
        return real(self, key)

    monkeypatch.setattr(on_demand._Stored, "_read", noting)
    return names


def test_only_what_is_asked_for_is_read_and_only_once(path, read):
    run = qb.load_run(path)
    assert set(read) <= set(run.dims)
    read.clear()
    assert (np.diff(run["packet_time_s"].values) >= 0).all() and run["packet_time_s"].any()
    assert run.isel(packet=slice(3, 5))["packet_flow"].size == 2
    assert read == ["packet_time_s"]
    qb.save_run(run, path)
    assert {"packet_flow", "sample_cwnd_bytes", "queue_delay_ms"} <= set(read)


def test_rows_that_a_mask_chooses_are_those_of_the_whole(path):
    run, whole = qb.load_run(path), qb.load_run(path).load()
    chosen = {"packet": np.arange(whole.sizes["packet"]) % 3 == 1, "flow": [1]}
    xr.testing.assert_identical(run.isel(chosen).load(), whole.isel(chosen))


@pytest.mark.parametrize("fate", ["deleted", "renamed", "another run", "damaged"])
def test_a_run_outlives_its_file(path, fate):
    run = qb.load_run(path)
    if fate == "deleted":
        path.unlink()
    elif fate == "renamed":
        path.rename(path.with_name("other.nc"))
    elif fate == "damaged":
        path.write_bytes(b"not a run")
    else:
        qb.save_run(synthetic_run(seed=2), path)
    xr.testing.assert_identical(run, with_flow_index(synthetic_run()))


def test_a_run_is_saved_over_itself_and_changed(path):
    run = qb.load_run(path)
    run["queue_delay_ms"].values[0, 0] = 42.0
    qb.save_run(run, path)
    again = qb.load_run(path)
    assert again["queue_delay_ms"].values[0, 0] == 42.0
    xr.testing.assert_identical(again, run)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda ds: pickle.loads(pickle.dumps(ds))])
def test_copies_and_pickles_read_without_the_file(path, copied):
    run = qb.load_run(path)
    run["ack_flow"].values  # noqa: B018  # one variable is in memory, the others are not
    other = copied(run)
    path.unlink()
    xr.testing.assert_identical(other, with_flow_index(synthetic_run()))


def test_a_chunked_run_is_stored_with_its_values(path):
    run = qb.load_run(path)
    qb.save_run(run.chunk(packet=1000), path.with_name("chunked.nc"))
    xr.testing.assert_identical(qb.load_run(path.with_name("chunked.nc")), run)


def test_damage_inside_a_variable_is_one_sentence_when_it_is_read(path):
    with h5py.File(path) as file:
        place = file["packet_departure_s"].id.get_chunk_info(0).byte_offset
    content = bytearray(path.read_bytes())
    content[place : place + 64] = bytes(64)
    path.write_bytes(content)
    run = qb.load_run(path)
    assert np.isfinite(run["packet_time_s"].values).all()
    for read in (lambda: summary(run), run.load, lambda: qb.save_run(run, path)):
        words = r"run\.nc is damaged: its packet_departure_s cannot be read; delete it, and run"
        with pytest.raises(StoreError, match=words) as caught:
            read()
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


SPARING = """
import sys
import numpy as np
import qbkit as qb
import xarray as xr
run = qb.load_run(sys.argv[1])
qb.save_run(run.load(), sys.argv[1])
xr.Dataset({"a": ("x", np.arange(3))}).mean()
assert "dask.array" not in sys.modules and "distributed" not in sys.modules
chunked = run.chunk(packet=100)
assert "dask.array" in sys.modules and chunked.chunks["packet"][0] == 100
assert (chunked["packet_size_bytes"].mean().compute() == run["packet_size_bytes"].mean())
assert xr.Variable("x", chunked["packet_time_s"].data).chunks
"""


@pytest.mark.slow
def test_dask_is_imported_for_its_arrays_and_not_before(path):
    subprocess.run([sys.executable, "-c", SPARING, path], check=True)


def test_a_file_is_what_other_readers_of_netcdf_take_it_for(tmp_path):
    made = with_flow_index(synthetic_run()).assign(
        is_odd=("bottleneck_of_three", [True, False, True]),
        nothing=("row_of_none", np.empty(0)),
        word=("row_of_two", np.array(["é", ""])),
        number=((), 7, {"flag_values": [1, 2], "flag_meanings": "one two", "names": ["a", "bc"]}),
    )
    qb.save_run(made, tmp_path / "run.nc")
    plain = made.drop_indexes("flow").set_xindex("flow")
    with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as opened:
        xr.testing.assert_identical(opened.load(), plain)
        assert {n: v.dtype for n, v in opened.variables.items() if v.dtype.kind != "U"} == {
            n: v.dtype for n, v in made.variables.items() if v.dtype.kind != "U"
        }
        assert opened["packet_time_s"].encoding["complevel"] == 1
    xr.testing.assert_identical(qb.load_run(tmp_path / "run.nc"), made)
