"""netCDF-4 files, written by h5py: a tenth of what xarray and h5netcdf take for as many variables.

A dimension is an HDF5 dimension scale: the coordinate of its name, or a data set without values.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any
from uuid import uuid4

import h5py
import numpy as np
import xarray as xr
from h5py import h5a, h5s, h5t
from xarray.conventions import cf_encoder, encode_dataset_coordinates

SCALE, WITHOUT_VARIABLE = (
    b"DIMENSION_SCALE",
    b"This is a netCDF dimension but not a netCDF variable",
)
ENCODING = {"zlib": True, "complevel": 1, "shuffle": True}
"""How large variables are stored, in the words of xarray."""
SMALL_BYTES = 4096
"""Smaller arrays are not worth compressing: the index of a chunk is as large."""
CHUNK = 1 << 16
"""Most values in a chunk; each flow has chunks of its own."""
TEXT = h5py.string_dtype()
TEXT_ID = h5t.py_create(TEXT, logical=True)


def netcdf_bytes(ds: xr.Dataset) -> bytes:
    """The content of a netCDF-4 file that holds a dataset."""
    variables, attrs = encode_dataset_coordinates(ds.compute() if ds.chunks else ds)
    variables, attrs = cf_encoder(variables, attrs)
    # In memory: on a full disk HDF5 leaves the file open, and crashes later. Threads write runs at
    # once, and HDF5 takes two files of one name for the same.
    unique = f"run-{uuid4()}.nc"
    with h5py.File(unique, "w", driver="core", backing_store=False) as file:
        stored = {name: _stored(file, str(name), v) for name, v in variables.items()}
        scales = _scales(file, stored, ds.sizes)
        for name, variable in variables.items():
            if name not in scales:
                for axis, dim in enumerate(variable.dims):
                    stored[name].dims[axis].attach_scale(scales[dim])
        _describe(file, attrs)
        file.flush()
        content: bytes = file.id.get_file_image()
    return content


def _stored(file: h5py.File, name: str, variable: xr.Variable) -> h5py.Dataset:
    """Store the values and attributes of a variable."""
    values = variable.values
    how: dict[str, Any] = {}
    if values.dtype.kind in "UO":
        values = values.astype(object)
        how["dtype"] = TEXT
    elif values.nbytes > SMALL_BYTES:
        *rows, last = values.shape
        how = {"chunks": (*np.ones(len(rows), int), min(last, CHUNK)), "shuffle": True}
        how |= {"compression": "gzip", "compression_opts": ENCODING["complevel"]}
    fill = variable.attrs.get("_FillValue")
    found = file.create_dataset(name, data=values, fillvalue=fill, **how)
    _describe(found, variable.attrs)
    return found


def _scales(
    file: h5py.File, stored: Mapping[Hashable, h5py.Dataset], sizes: Mapping[Hashable, int]
) -> dict[Hashable, h5py.Dataset]:
    """The scale of each dimension, with its number."""
    scales = {}
    for number, (dim, size) in enumerate(sizes.items()):
        if dim in stored:
            scales[dim], name = stored[dim], str(dim).encode()
        else:
            scales[dim] = file.create_dataset(str(dim), (size,), ">f4")
            name = WITHOUT_VARIABLE + f".{size:10d}".encode()
        scales[dim].make_scale(name)
        scales[dim].attrs["_Netcdf4Dimid"] = np.int32(number)
    return scales


def _describe(found: h5py.HLObject, attrs: Mapping[Any, Any]) -> None:
    for name, value in attrs.items():
        if isinstance(value, str):
            # What `found.attrs` does, without its search for an attribute of that name.
            created = h5a.create(found.id, str(name).encode(), TEXT_ID, h5s.create(h5s.SCALAR))
            created.write(np.array(value, dtype=TEXT))
            continue
        array = np.atleast_1d(value)
        is_text = array.dtype.kind in "UO"
        found.attrs.create(
            name, array.astype(object) if is_text else array, dtype=TEXT if is_text else None
        )
