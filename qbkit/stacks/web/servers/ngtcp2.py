"""ngtcp2's sample server: HTTP/3 alone. For the same files over HTTP/2, compare with nginx."""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.base import CERTIFICATE_MOUNT
from qbkit.stacks.toolchains.debian import DebianPrograms
from qbkit.stacks.web.base import WebServer, register_server
from qbkit.stacks.web.from_debian import FromDebian, serve
from qbkit.stacks.web.site import MOUNT, Site

PROGRAM = "usr/sbin/gtlsserver"


class Ngtcp2Server(FromDebian, WebServer):
    """``gtlsserver``, on GnuTLS."""

    name: ClassVar[str] = "ngtcp2"
    source: ClassVar[str] = "package ngtcp2-server of Debian trixie"
    protocols: ClassVar[tuple[str, ...]] = ("h3",)
    zero_rtt: ClassVar[bool] = True
    debian: ClassVar[DebianPrograms] = DebianPrograms(
        "ngtcp2", "trixie", ("ngtcp2-server",), (PROGRAM,)
    )

    def controllers(self) -> tuple[str, ...]:
        """Those of ngtcp2 1.11."""
        return ("cubic", "reno", "bbr")

    def argv(
        self, *, address: str, protocol: str, controller: str, site: Site, out: str
    ) -> list[str]:
        """The server of the site's files."""
        ip, _, port = address.rpartition(":")
        keys = [f"{CERTIFICATE_MOUNT}/browser-{word}.pem" for word in ("key", "cert")]
        how = ["--quiet", f"--cc={controller}", f"--htdocs={MOUNT}"]
        return serve(address, [*self.debian.command(PROGRAM), *how, ip, port, *keys])


register_server(Ngtcp2Server())
