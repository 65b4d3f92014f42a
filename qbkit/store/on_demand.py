"""Read a netCDF file variable by variable, when their values are asked for.

The file is read as a whole, still compressed, so that it may change or vanish later, and a run can
be pickled. h5netcdf takes five times as long to say what is in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from qbkit.errors import StoreError
from qbkit.store.netcdf import ENCODING, SCALE, WITHOUT_VARIABLE

DIMENSIONS = "DIMENSION_LIST"
OF_FORMAT = {"CLASS", "NAME", DIMENSIONS, "REFERENCE_LIST", "_NCProperties"}
"""Attributes with which netCDF describes dimensions in HDF5; so do those that begin as follows."""
OF_NETCDF = "_Netcdf4"


class RunBackend(BackendEntrypoint):
    """An engine of ``xr.open_dataset`` for netCDF-4 files in one group, as `save_run` writes."""

    def open_dataset(  # type: ignore[override]
        self, filename_or_obj: Path, *, drop_variables: Iterable[str] | None = None
    ) -> xr.Dataset:
        """The dataset of a file, whose variables read their values later."""
        return of_content(filename_or_obj, filename_or_obj.read_bytes(), drop_variables or ())


def of_content(path: Path, content: bytes, skip: Iterable[str] = ()) -> xr.Dataset:
    """The dataset in the bytes of a file, without the variables to skip."""
    image = _Image(path, content)
    file, skipped = image.file, set(skip)
    variables = {
        name: _variable(image, name, found, described)
        for name, found in file.items()
        if name not in skipped and _is_variable(found, described := list(found.attrs))
    }
    return xr.decode_cf(xr.Dataset(variables, attrs=_attributes(file, list(file.attrs))))


class _Image:
    """The bytes of a file, and HDF5's view of them, which each process has for itself."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.path, self._content = path, content

    @cached_property
    def file(self) -> h5py.File:
        return h5py.File(h5py.h5f.open_file_image(self._content))

    def __reduce__(self) -> tuple[Any, ...]:
        return _Image, (self.path, self._content)


class _Stored(BackendArray):
    """The values of a variable in a file."""

    def __init__(self, image: _Image, name: str, found: h5py.Dataset) -> None:
        self.image, self.name = image, name
        self.shape, self.dtype = found.shape, found.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> np.ndarray[Any, Any]:
        # Slices alone, which NumPy refines: HDF5 takes minutes for many single rows.
        kind = indexing.IndexingSupport.BASIC
        found: np.ndarray[Any, Any] = indexing.explicit_indexing_adapter(
            key, self.shape, kind, self._read
        )
        return found

    def _read(self, key: tuple[Any, ...]) -> Any:
        try:
            return self.image.file[self.name][key]
        except Exception:  # h5py raises nearly anything on damaged files
            raise StoreError(
                f"{self.image.path} is damaged: its {self.name} cannot be read; delete it, and run "
                "or fetch it again"
            ) from None


def _variable(
    image: _Image, name: str, found: h5py.Dataset, described: Collection[str]
) -> xr.Variable:
    """A variable whose values are read later; texts, which are few, are read now.

    ``described`` are the names of its attributes.
    """
    values: Any = indexing.LazilyIndexedArray(_Stored(image, name, found))
    if found.dtype.kind == "O":
        values = np.asarray(found.asstr()[()]).astype(str)
    encoding = ENCODING if found.chunks else {}
    dimensions = [name] if found.ndim else []  # a coordinate has its own
    if DIMENSIONS in described:
        dimensions = _dimensions(image.file, found)
    return xr.Variable(dimensions, values, _attributes(found, described), encoding)


def _dimensions(file: h5py.File, found: h5py.Dataset) -> list[str]:
    """The names of a variable's dimensions, which HDF5 looks up without opening them."""
    names = (h5py.h5r.get_name(refs[0], file.id) for refs in found.attrs[DIMENSIONS])
    return [name.decode().lstrip("/") for name in names]


def _is_variable(found: h5py.HLObject, described: Collection[str]) -> bool:
    """Whether it is no group, and no dimension without values."""
    is_scale = "CLASS" in described and found.attrs["CLASS"] == SCALE
    is_dimension = is_scale and found.attrs["NAME"].startswith(WITHOUT_VARIABLE)
    return isinstance(found, h5py.Dataset) and not is_dimension


def _attributes(found: h5py.HLObject, described: Collection[str]) -> dict[str, Any]:
    """The attributes of a file or variable that are not of the format."""
    attrs = found.attrs
    names = [n for n in described if n not in OF_FORMAT and not n.startswith(OF_NETCDF)]
    return {name: _plain(attrs[name]) for name in names}


def _plain(value: Any) -> Any:
    """An attribute as h5netcdf gives it: arrays of one element are that element."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        return value.tolist()
    return value.decode() if isinstance(value, bytes) else value
