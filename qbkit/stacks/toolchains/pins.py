"""Pinned packages of Debian: `debian.lock` names each file that results depend on.

A pinned file comes from the folder for it, if that has it; from this machine's Debian archive while
a suite there has that version; and from Debian's snapshot archive later. Its SHA-256 is checked in
each case.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote

from qbkit.errors import StackNotReady
from qbkit.stacks.toolchains.apt import mirror, security_mirror

LOCK = Path(__file__).with_name("debian.lock")
SNAPSHOT = "http://snapshot.debian.org/archive/debian"
"""Debian's archive by date; ``QBKIT_DEBIAN_SNAPSHOT`` names a mirror of it."""
HELPER = "/usr/lib/apt/apt-helper"
LIMIT_S = 20
SYSTEM = "system"
"""The pin of the packages that are installed on this machine."""
KERNEL = "kernel"
"""The pin of the kernel's source."""


@dataclass(frozen=True)
class PinnedFile:
    """A package's file: its version, SHA-256, and path in a Debian archive."""

    package: str
    version: str
    sha256: str
    path: str

    @property
    def is_security_update(self) -> bool:
        """Whether it lies in the archive of Debian's security updates, which is one of its own."""
        return self.path.startswith("pool/updates/")

    @property
    def name(self) -> str:
        """The name that apt gives to the file; its name in archives lacks a version's epoch."""
        architecture = self.path.rpartition("_")[2]
        return f"{self.package}_{quote(self.version, safe='+~')}_{architecture}"

    def is_in(self, folder: Path) -> bool:
        """Whether the folder has this very file."""
        file = folder / self.name
        if not file.exists():
            return False
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == self.sha256


@dataclass(frozen=True)
class Pin:
    """Packages that are fetched together."""

    name: str
    suite: str
    date: str
    """When the snapshot archive has all of them: ``20261127T120000Z``."""
    files: tuple[PinnedFile, ...]

    @property
    def versions(self) -> dict[str, str]:
        """Package → version."""
        return {file.package: file.version for file in self.files}

    def fetch(self, folder: Path) -> bool:
        """Fetch all files into the folder; False if neither archive has one of them.

        Raises StackNotReady without an apt.
        """
        folder.mkdir(parents=True, exist_ok=True)
        for address in (_in_the_suite, self._in_the_snapshot):
            missing = [file for file in self.files if not file.is_in(folder)]
            if missing:
                _download({file: address(file) for file in missing}, folder)
        return all(file.is_in(folder) for file in self.files)

    def _in_the_snapshot(self, file: PinnedFile) -> str:
        """Where the snapshot archive has a file."""
        archive = os.environ.get("QBKIT_DEBIAN_SNAPSHOT", SNAPSHOT).rstrip("/")
        kind = "-security" if file.is_security_update else ""
        return f"{archive}{kind}/{self.date}/{file.path}"

    def by_source(self) -> list[Pin]:
        """The pin in parts: packages of one source depend on each other's very version."""
        folders = dict.fromkeys(file.path.rpartition("/")[0] for file in self.files)
        parts = [[f for f in self.files if f.path.startswith(f"{path}/")] for path in folders]
        return [Pin(part[0].package, self.suite, self.date, tuple(part)) for part in parts]

    def replaced(self) -> str:
        """What to say when the newest packages take the place of these."""
        return (
            f"no Debian archive that can be reached has the pinned files of {self.name} from "
            f"{self.date[:8]}: fetching the newest; results may differ from published ones"
        )


def _in_the_suite(file: PinnedFile) -> str:
    """Where this machine's archive has a file, if it still has it."""
    archive = security_mirror() if file.is_security_update else mirror()[0]
    return f"{archive.rstrip('/')}/{file.path}"


def _download(addresses: Mapping[PinnedFile, str], folder: Path) -> None:
    """Fetch the files that are at their addresses."""
    if not Path(HELPER).exists():
        raise StackNotReady("there is no apt here to fetch packages of Debian")
    wanted: list[str] = []
    for file, address in addresses.items():
        target = folder / file.name
        target.unlink(missing_ok=True)  # a damaged one would be continued
        wanted += [address, str(target), f"SHA256:{file.sha256}"]
    options = ["APT::Sandbox::User=root", "Acquire::Retries=0", f"Acquire::http::Timeout={LIMIT_S}"]
    argv = [HELPER, *(word for option in options for word in ("-o", option)), "download-file"]
    # Its status only says that a file is missing, which `fetch` sees by their hashes.
    subprocess.run([*argv, *wanted], capture_output=True, check=False)


@cache
def pins() -> dict[str, Pin]:
    """All pins of the lock file by name."""
    with LOCK.open("rb") as file:
        tables = tomllib.load(file)
    return {
        name: Pin(
            name,
            table["suite"],
            table["date"],
            tuple(PinnedFile(*line.split(" ")) for line in table["files"]),
        )
        for name, table in tables.items()
    }


def pin(name: str) -> Pin | None:
    """The pin of that name, if there is one."""
    return pins().get(name)
