"""A newer curl than this machine's, over HTTP/2 and HTTP/3 (by ngtcp2)."""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.toolchains.debian import DebianPrograms
from qbkit.stacks.web.base import register_client
from qbkit.stacks.web.clients.curl import WAYS, Curl, options
from qbkit.stacks.web.from_debian import FromDebian

PROGRAM = "usr/bin/curl"


class CurlHttp3(FromDebian, Curl):
    """curl that never falls back from HTTP/3, with one TLS group, as in the client go."""

    name: ClassVar[str] = "curl-http3"
    source: ClassVar[str] = "package curl of Debian trixie-backports"
    protocols: ClassVar[tuple[str, ...]] = ("h2", "h3")
    debian: ClassVar[DebianPrograms] = DebianPrograms(
        "curl", "trixie-backports", ("curl",), (PROGRAM,)
    )
    tls: ClassVar[tuple[str, ...]] = ("--curves", "X25519")
    """Without a group for after quantum computers, the first flight is one packet."""

    def argv(
        self, *, address: str, protocol: str, path: str, out: str, zero_rtt: bool
    ) -> list[str]:
        """curl, which writes the report to stderr, that is to the log of the receiver."""
        how = [*WAYS[protocol], *self.tls, *options(address, path)]
        return [*self.debian.command(PROGRAM), *how]

    def command_here(self) -> list[str]:
        """The same program without the guest."""
        return self.debian.command(PROGRAM, root=self.debian.folder)


register_client(CurlHttp3())
