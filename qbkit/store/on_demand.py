"""Read a run file variable by variable, when their values are asked for.

The file is read as a whole, still compressed, so that it may change or vanish later, and a run can
be pickled. h5netcdf takes five times as long to say what is in it.
"""

from __future__ import annotations

from collections.abc import Iterable
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

OF_FORMAT = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_NCProperties"}
"""Attributes with which netCDF describes dimensions in HDF5; so do those that begin as follows."""
OF_NETCDF = "_Netcdf4"


class RunBackend(BackendEntrypoint):
    """An engine of ``xr.open_dataset`` for netCDF-4 files in one group, as `save_run` writes."""

    def open_dataset(  # type: ignore[override]
        self, filename_or_obj: Path, *, drop_variables: Iterable[str] | None = None
    ) -> xr.Dataset:
        """The dataset of a file, whose variables read their values later."""
        image = _Image(filename_or_obj, filename_or_obj.read_bytes())
        file = image.file
        skip = set(drop_variables or ())
        variables = {
            name: _variable(image, name, found)
            for name, found in file.items()
            if name not in skip and _is_variable(found)
        }
        return xr.decode_cf(xr.Dataset(variables, attrs=_attributes(file)))


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


def _variable(image: _Image, name: str, found: h5py.Dataset) -> xr.Variable:
    """A variable whose values are read later; texts, which are few, are read now."""
    values: Any = indexing.LazilyIndexedArray(_Stored(image, name, found))
    if found.dtype.kind == "O":
        values = found.asstr()[()].astype(str)
    encoding = ENCODING if found.chunks else {}
    return xr.Variable(_dimensions(name, found), values, _attributes(found), encoding)


def _dimensions(name: str, found: h5py.Dataset) -> list[str]:
    """The names of a variable's dimensions; a coordinate has its own."""
    if "DIMENSION_LIST" in found.attrs:
        scales = (found.file[refs[0]] for refs in found.attrs["DIMENSION_LIST"])
        return [str(scale.name).lstrip("/") for scale in scales]
    return [name] if found.ndim else []


def _is_variable(found: h5py.HLObject) -> bool:
    """Whether it is no group, and no dimension without values."""
    is_scale = found.attrs.get("CLASS") == SCALE
    is_dimension = is_scale and found.attrs["NAME"].startswith(WITHOUT_VARIABLE)
    return isinstance(found, h5py.Dataset) and not is_dimension


def _attributes(found: h5py.HLObject) -> dict[str, Any]:
    """The attributes of a file or variable that are not of the format."""
    names = (n for n in found.attrs if n not in OF_FORMAT and not n.startswith(OF_NETCDF))
    return {name: _plain(found.attrs[name]) for name in names}


def _plain(value: Any) -> Any:
    """An attribute as h5netcdf gives it: arrays of one element are that element."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        return value.tolist()
    return value.decode() if isinstance(value, bytes) else value
