"""Packages of Python's and Rust's registries of which only the C sources are used.

pip builds a package's metadata when it downloads its sources, which needs the package's tools and
its version of Python; cargo fetches all crates that a crate depends on. So these files come from
the registry by their address, and their hashes are checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.error import URLError
from urllib.parse import urljoin
from urllib.request import Request, urlopen

from qbkit.errors import StackNotReady
from qbkit.stacks.toolchains.build import build_once, built_folder, run_tool

PYTHON_INDEX = "https://pypi.org/simple"
FORMATS = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
CRATES = "https://static.crates.io/crates"
CRATE_INDEX = "https://index.crates.io"
LIMIT_S = 60


@dataclass(frozen=True)
class SourcePackage(ABC):
    """One release of a package, with the SHA-256 of its archive."""

    name: str
    version: str
    sha256: str
    suffix: ClassVar[str]

    def fetch(self) -> Path:
        """The folder of its unpacked files, in the cache; raises StackNotReady."""
        folder = build_once(*self._key, self._unpack)
        return folder / f"{self.name}-{self.version}"

    def fetched(self) -> list[Path]:
        """The same folder if it is there."""
        folder = built_folder(*self._key) / f"{self.name}-{self.version}"
        return [folder] if folder.exists() else []

    @property
    def _key(self) -> tuple[str, str]:
        return f"{self.name}-source", self.sha256[:12]

    @abstractmethod
    def address(self) -> str:
        """Where the archive is; raises StackNotReady."""

    @property
    def file(self) -> str:
        """Name of the archive."""
        return f"{self.name}-{self.version}{self.suffix}"

    def _unpack(self, folder: Path) -> None:
        content = fetch_checked(self.address(), self.file, self.sha256)
        (folder / self.file).write_bytes(content)
        run_tool(["tar", "-xzf", folder / self.file, "-C", folder], self.file)
        (folder / self.file).unlink()


class PythonSources(SourcePackage):
    """A source distribution in the package index that this machine's pip uses."""

    suffix = ".tar.gz"

    def address(self) -> str:
        """As the index lists it."""
        index = _python_index()
        page = f"{index.rstrip('/')}/{self.name}/"
        found = re.search(rf'"([^"]*/{re.escape(self.file)})["#]', _get(page).decode())
        if not found:
            raise StackNotReady(f"the package index {index} has no {self.file}")
        return urljoin(page, found[1])


class CrateSources(SourcePackage):
    """A crate of crates.io."""

    suffix = ".crate"

    def address(self) -> str:
        """As cargo finds it."""
        return f"{CRATES}/{self.name}/{self.file}"


def crate_index(name: str) -> str:
    """All releases of a crate in JSON, one a line, the oldest first; raises StackNotReady.

    The address is that of names with four letters or more.
    """
    return _get(f"{CRATE_INDEX}/{name[:2]}/{name[2:4]}/{name}").decode()


def crate_versions(name: str) -> list[str]:
    """The versions of a crate that nobody withdrew; raises StackNotReady."""
    crates = [json.loads(line) for line in crate_index(name).splitlines()]
    return [one["vers"] for one in crates if not one["yanked"]]


def fetch_checked(address: str, file: str, sha256: str) -> bytes:
    """The content of a file with that hash; raises StackNotReady."""
    content = _get(address)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise StackNotReady(f"{file} is another file than the one that qbkit expects")
    return content


def _get(address: str) -> bytes:
    try:
        with urlopen(Request(address, headers={"Accept": FORMATS}), timeout=LIMIT_S) as answer:
            content: bytes = answer.read()
    except (URLError, OSError) as error:
        raise StackNotReady(f"cannot fetch {address}: {error}") from error
    return content


def _python_index() -> str:
    if chosen := os.environ.get("PIP_INDEX_URL"):
        return chosen
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    configured = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return configured or PYTHON_INDEX
