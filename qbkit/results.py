"""Where the runs of a sweep lie: a folder, or any URL that fsspec knows.

Each run is one netCDF file, and one small JSON file with what is gathered into the cube. The JSON
is written last, so a run without it is not there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import fsspec

from qbkit.errors import StoreError


class Results:
    """The folder ``runs`` of a sweep at a path or URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self._files, root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise StoreError(f"cannot use {url} for results: {error}") from None
        self._folder = f"{root.rstrip('/')}/runs"
        self._known: set[str] | None = None

    def names(self) -> set[str]:
        """Names of the runs that are there; looked up once."""
        if self._known is None:
            try:
                self._files.makedirs(self._folder, exist_ok=True)
                found = self._files.ls(self._folder, detail=False)
            except OSError as error:
                raise StoreError(f"cannot use {self.url} for results: {error}") from None
            self._known = {Path(f).stem for f in found if str(f).endswith(".json")}
        return self._known

    def put(self, name: str, file: Path, digest: dict[str, Any]) -> None:
        """Store a run's file and its digest, each beside its place and then renamed."""
        try:
            self._files.makedirs(self._folder, exist_ok=True)
            self._files.put_file(str(file), self._part(name))
            self._files.mv(self._part(name), self.path(name))
            with self._files.open(self._part(name), "w") as out:
                json.dump(digest, out)
            self._files.mv(self._part(name), f"{self._folder}/{name}.json")
        except OSError as error:
            raise StoreError(
                f"cannot write to {self.url}: {error.strerror or error}; free space, then start "
                "the sweep again: it goes on where it was"
            ) from None

    def digests(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The digests of those of the runs that are there, by name."""
        found = {}
        for name in self.names().intersection(names):
            with self._files.open(f"{self._folder}/{name}.json") as file:
                found[name] = json.load(file)
        return found

    def path(self, name: str) -> str:
        """Where a run's dataset is or will be."""
        return f"{self._folder}/{name}.nc"

    def _part(self, name: str) -> str:
        return f"{self._folder}/.{name}.part"
