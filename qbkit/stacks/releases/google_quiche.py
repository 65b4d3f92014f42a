"""Releases of Google QUICHE, counted by Envoy, whose program has it.

The oldest wheel on PyPI is that of 1.36.2.
"""

from __future__ import annotations

import json
import sys

from qbkit.errors import StackNotReady
from qbkit.stacks.base import Say, Status
from qbkit.stacks.build import run_tool
from qbkit.stacks.envoy_wheel import PACKAGE, requirement
from qbkit.stacks.google_quiche import FLAGS, MOUNT, GoogleQuiche, fetch_version
from qbkit.stacks.registry import register_releases
from qbkit.stacks.release import (
    Generation,
    Release,
    Releases,
    make_release,
)


class GoogleQuicheRelease(Release, GoogleQuiche):
    """A release of Envoy; `_make` makes the class of one.

    Its folder in the cache has the hash of its wheel, which the first build looks up.
    """

    def status(self) -> Status:
        """Ready when the wheel is locked and unpacked, and its client is built."""
        if not self._lock_file().exists():
            return Status(False, f"qbkit stacks build {self.name}")
        return super().status()

    def _fetch(self, say: Say) -> None:
        if not self._lock_file().exists():
            self._write_lock_file(f"{self._found()}\n")
        fetch_version(self.number, self._lock_file().read_text().strip(), say)

    def _found(self) -> str:
        """The release with its hash, as a line for pip."""
        words = ["--no-deps", "--dry-run", "--ignore-installed", "--report", "-"]
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", *words]
        try:
            report = json.loads(run_tool([*pip, f"{PACKAGE}=={self.number}"], self.name))
        except StackNotReady as error:
            if "Could not find a version" in str(error):
                raise self.of.unknown(self.number) from None
            raise
        (wheel,) = report["install"]
        return requirement(self.number, wheel["download_info"]["archive_info"]["hashes"]["sha256"])


def _make(releases: Releases, version: str, generation: Generation) -> GoogleQuicheRelease:
    return make_release(
        GoogleQuicheRelease,
        releases,
        version,
        generation,
        source=f"Envoy {version}'s HTTP/3 server, PyPI wheel {PACKAGE}",
        mount=f"{MOUNT}@{version}",
    )


RELEASES = Releases(
    name=GoogleQuiche.name,
    package=f"wheel {PACKAGE}",
    generations=(Generation("1.36.0", (), tuple(FLAGS)),),
    built=("1.36.2", "1.37.0", "1.38.2", "1.39.0", "1.40.0"),
    make=_make,
)

register_releases(RELEASES)
