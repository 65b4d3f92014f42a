"""Releases of picoquic, counted by the number in its header, as its authors tag none.

1.1.49.2 is left out: it does not compile, as ``sockloop_qmux.c`` names a constant that no header
has. No source distribution of aiopquic carries an earlier one.
"""

from __future__ import annotations

from qbkit.stacks.picoquic import AIOPQUIC, VERSION, Picoquic
from qbkit.stacks.registry import register_releases
from qbkit.stacks.release import ALL_ABOVE, Generation, Release, Releases
from qbkit.stacks.toolchains.source_packages import PythonSources

PACKAGES = {
    "1.1.51.1": PythonSources(
        "aiopquic", "0.4.1", "038033c47bf97074312c7e0a8735facdc3ca916482d45269ad550e5b9ea28b84"
    ),
    VERSION: AIOPQUIC,
}
"""The newest source distribution with each picoquic, which no index names."""


class PicoquicRelease(Release, Picoquic):
    """A release of picoquic."""

    origin = "C sources of picoquic {version} in the PyPI package aiopquic; MIT licence"

    def released(self) -> list[str]:
        """The versions in `PACKAGES`."""
        return list(PACKAGES)

    def package(self) -> PythonSources:
        """As in `PACKAGES`; raises StackNotReady for a number that is not there."""
        if self.number not in PACKAGES:
            raise self.of.unknown(self.number, PACKAGES)
        return PACKAGES[self.number]

    def _choose(self) -> None:
        package = self.package()
        line = f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n"
        self._write_lock_file(line)

    def _key(self) -> str:
        """The same fingerprint as today's; none of a release that does not exist."""
        return super()._key() if self.number in PACKAGES else "unknown"


RELEASES = Releases(
    name=Picoquic.name,
    package="sources of picoquic in the wheel aiopquic",
    generations=(Generation("1.1.51.1", (), Picoquic().controllers(), above=ALL_ABOVE),),
    built=tuple(PACKAGES),
    make=PicoquicRelease.make,
)

register_releases(RELEASES)
