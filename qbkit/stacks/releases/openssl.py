"""Releases of OpenSSL, counted by its own versions; the crate of each has a number beside it.

3.4 and earlier are left out: they have no QUIC server.
"""

from __future__ import annotations

import json

from qbkit.stacks.openssl import OPENSSL, OpenSsl
from qbkit.stacks.registry import register_releases
from qbkit.stacks.release import ALL_ABOVE, Generation, LockedRelease, Releases
from qbkit.stacks.toolchains.source_packages import CrateSources, crate_index


class OpenSslRelease(LockedRelease, OpenSsl):
    """A release of OpenSSL.

    Its folder in the cache has the number and the hash of its crate, which the first build looks
    up.
    """

    origin = f"C sources of OpenSSL {{version}} in the crate {OPENSSL.name}; Apache 2.0 licence"
    lock_name = "crate.lock"

    def released(self) -> list[str]:
        """The versions of OpenSSL that a crate carries."""
        return list(crates_by_openssl(crate_index(OPENSSL.name)))

    def crate(self) -> CrateSources:
        """The crate in the lock file."""
        return CrateSources(OPENSSL.name, *self._lock_file().read_text().split())

    def _choose(self) -> None:
        """Note number and hash of the crate."""
        crates = crates_by_openssl(crate_index(OPENSSL.name))
        if self.number not in crates:
            raise self.of.unknown(self.number, crates)
        self._write_lock_file(f"{crates[self.number]}\n")


def crates_by_openssl(index: str) -> dict[str, str]:
    """Number and hash of the newest crate of each OpenSSL, as the index of crates lists them."""
    crates = [json.loads(line) for line in index.splitlines()]
    return {one["vers"].partition("+")[2]: f"{one['vers']} {one['cksum']}" for one in crates}


RELEASES = Releases(
    name=OpenSsl.name,
    package=f"crate {OPENSSL.name}'s OpenSSL",
    generations=(Generation("3.5.0", (), OpenSsl().controllers(), above=ALL_ABOVE),),
    built=("3.5.0", "3.5.4", "3.5.5", "3.6.2", "4.0.1", "4.0.2", "4.0.3"),
    make=OpenSslRelease.make,
)

register_releases(RELEASES)
