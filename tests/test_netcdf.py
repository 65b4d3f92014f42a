"""Our netCDF-4 files are what xarray's own writer makes, only cheaper."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from synthetic import synthetic_run

import qbkit as qb
from qbkit.errors import StoreError
from qbkit.netcdf import to_netcdf

DIMS = ("flow", "time", "packet")
DTYPES = [np.dtype(t) for t in ("f8", "f4", "i8", "u2", "i1", "?", "U5")]
ATTRS = st.dictionaries(
    st.sampled_from(["units", "long_name", "flag_values"]),
    st.one_of(st.text(max_size=8), st.integers(-9, 9), st.lists(st.floats(0, 1), min_size=2)),
)


@st.composite
def datasets(draw) -> xr.Dataset:
    """Up to five variables over up to three dimensions, some of which have a coordinate."""
    sizes = {dim: draw(st.integers(0, 700)) for dim in DIMS}
    variables = {}
    for number in range(draw(st.integers(0, 5))):
        dims = draw(st.lists(st.sampled_from(DIMS), unique=True, max_size=2))
        dtype = draw(st.sampled_from(DTYPES))
        text = st.text("aß☃", max_size=5) if dtype.kind == "U" else None
        fill = draw(npst.from_dtype(dtype, allow_nan=True) if text is None else text)
        values = np.full([sizes[dim] for dim in dims], fill, dtype)
        variables[f"v{number}"] = (dims, values, draw(ATTRS))
    coords = {dim: np.arange(sizes[dim]) for dim in draw(st.sets(st.sampled_from(DIMS)))}
    return xr.Dataset(variables, coords, draw(ATTRS))


@settings(max_examples=20)
@given(datasets())
def test_reads_as_what_xarray_writes(ds):
    expected = xr.load_dataset(BytesIO(bytes(ds.to_netcdf(engine="h5netcdf"))), engine="h5netcdf")
    found = xr.load_dataset(BytesIO(to_netcdf(ds)), engine="h5netcdf")
    assert found.identical(expected)
    assert list(found.data_vars) == list(expected.data_vars)
    for name, variable in expected.variables.items():
        assert found[name].dtype == variable.dtype


def test_large_variables_are_compressed_and_exact():
    values = np.arange(300_000, dtype=np.float64).reshape(3, 100_000)
    content = to_netcdf(xr.Dataset({"a": (("flow", "time"), values)}))
    assert len(content) < values.nbytes / 3
    assert np.array_equal(xr.load_dataset(BytesIO(content), engine="h5netcdf").a, values)


def test_what_netcdf_cannot_hold_is_one_sentence(tmp_path):
    with pytest.raises(StoreError, match=r"cannot write .*run.nc: "):
        qb.save(synthetic_run().assign_attrs(other={"a": 1}), tmp_path / "run.nc")
    assert not list(tmp_path.iterdir())
