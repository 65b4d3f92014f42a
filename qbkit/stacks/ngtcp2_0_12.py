"""ngtcp2 0.12.1 of 2023, as in Debian 12, with its CUBIC, its Reno and two BBRs.

The release after it, 1.0.0, supports the newer BBR alone ("Support latest bbr only").
"""

from __future__ import annotations

from qbkit.stacks.ngtcp2 import CLIENT, PACKAGES, RECEIVER, Ngtcp2
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.debian import DebianPrograms


class Ngtcp2012(Ngtcp2):
    """The same programs of an older release."""

    name = "ngtcp2-0.12"
    source = "packages ngtcp2-client and ngtcp2-server of Debian 12"
    debian = DebianPrograms("ngtcp2-0.12", "bookworm", PACKAGES, (CLIENT, RECEIVER))

    def controllers(self) -> tuple[str, ...]:
        """``bbr`` is the first version, ``bbr2`` the second."""
        return ("cubic", "reno", "bbr", "bbr2")


register(Ngtcp2012())
