"""The storage of a sweep's runs: a folder, or any URL that fsspec knows.

Each run is one netCDF file, and one small JSON file with the figures for the cube. The JSON is
written last; a run without it counts as missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import fsspec
import xarray as xr
from fsspec import AbstractFileSystem

from qbkit import extras
from qbkit.errors import StoreError
from qbkit.json_words import object_of
from qbkit.store.figures import require_figures

CUBE = "cube.zarr"
"""The cube of all runs."""
USABLE = "give a writable folder, or a URL that fsspec knows"
OBJECT_STORES = ("botocore", "aiobotocore", "aiohttp", "gcsfs", "google", "azure")
"""Packages that fsspec's file systems use, and whose errors are not all OSErrors."""


@contextmanager
def storage(problem: str, advice: str) -> Iterator[None]:
    """Turn errors of file systems and object stores into StoreError; other errors pass."""
    try:
        yield
    except Exception as error:
        if not _is_storage_error(error):
            raise
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"{problem}: {reason}; {advice}") from None


def _is_storage_error(error: Exception) -> bool:
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return isinstance(error, OSError) or not packages.isdisjoint(OBJECT_STORES)


def opened(url: str) -> tuple[AbstractFileSystem, str]:
    """The file system of a path or URL, and the path in it, without a trailing slash.

    Raises StoreError for a protocol that fsspec does not know, or whose package is missing.
    """
    try:
        files, root = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise StoreError(f"cannot use {url} for results: {error}; {USABLE}", refused=True) from None
    return files, root.rstrip("/")


def load_cube(url: str) -> xr.Dataset:
    """The cube of a sweep's folder or URL; raises StoreError if it is missing or damaged."""
    extras.require("zarr", to="read the cube of a sweep")
    place = url.rstrip("/")
    opened(place)  # raises for an unknown protocol
    with storage(f"there is no cube in {url}", "run the sweep first"):
        try:
            stored = xr.open_zarr(f"{place}/{CUBE}", consolidated=False).load()
            return stored.drop_encoding()  # with it, xarray cannot write it as Zarr of format 3
        except Exception as error:  # Zarr raises nearly anything on a damaged description
            if _is_storage_error(error):
                raise
            advice = "start the sweep again: it writes the cube, and runs only what is missing"
            raise StoreError(f"{place}/{CUBE} is damaged; {advice}") from None


class Results:
    """The folder ``runs`` of a sweep at a path or URL."""

    def __init__(self, url: str) -> None:
        with self._usable(url):
            self._files, root = opened(url)
        self.url = url if "://" in url else root or "/"
        """Absolute."""
        self._folder = f"{root}/runs"
        self._known: set[str] | None = None

    def make(self) -> None:
        """Create the folder; raises StoreError where that is impossible."""
        with self._usable(self.url):
            self._files.makedirs(self._folder, exist_ok=True)

    def names(self) -> set[str]:
        """Names of the stored runs; looked up once."""
        if self._known is None:
            with self._usable(self.url):
                self._files.invalidate_cache(self._folder)  # workers may have written since
                found = self._files.find(self._folder, maxdepth=1)
            self._known = {Path(f).stem for f in found if f.endswith(".json")}
        return self._known

    def put(self, name: str, file: Path, figures: dict[str, Any]) -> None:
        """Store a run's file and its figures; each is written beside its target, then renamed.

        What could not be written whole goes, since it would take the space that others need.
        """
        part = self._part(name)
        advice = "free space, then start the sweep again: it resumes where it stopped"
        with storage(f"cannot write to {self.url}", advice):
            self._files.makedirs(self._folder, exist_ok=True)
            try:
                self._files.put_file(str(file), part)
                self._files.mv(part, self.path(name))
                with self._files.open(part, "w") as out:
                    json.dump(figures, out)
                self._files.mv(part, f"{self._folder}/{name}.json")
            except OSError:
                with suppress(OSError):
                    self._files.rm(part)
                raise

    def figures(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The figures of the stored runs among ``names``, by name."""
        found = {}
        with self._usable(self.url):
            for name in self.names().intersection(names):
                found[name] = self._read(f"{self._folder}/{name}.json")
        return found

    def _read(self, path: str) -> dict[str, Any]:
        with self._files.open(path) as file:
            try:
                require_figures(figures := object_of(file.read()))
            except ValueError as error:
                words = "delete it, then start the sweep again: it repeats this run"
                raise StoreError(f"{path} of {self.url} is damaged: {error}; {words}") from None
        return figures

    def path(self, name: str) -> str:
        """The path of a run's dataset, stored or not."""
        return f"{self._folder}/{name}.nc"

    @staticmethod
    def _usable(url: str) -> AbstractContextManager[None]:
        return storage(f"cannot use {url} for results", USABLE)

    def _part(self, name: str) -> str:
        return f"{self._folder}/.{name}.part"
