"""quiche as a web server, HTTP/3 alone: our program on its crate, the version of the stack quiche.

For the same files over HTTP/2, compare with another server of the kernel's TCP. As in quiche's own
server, packets leave when quiche says (BBRv2 alone paces), and the priorities that a client asks
for (RFC 9218) decide which response comes first. Unlike it, this one sends no Retry, which would
cost a round trip that the other servers' handshakes do not have.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.stacks.base import CERTIFICATE_MOUNT
from qbkit.stacks.quiche import Quiche
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.stacks.toolchains.rust import RustProgram
from qbkit.stacks.web.base import WebServer, register_server
from qbkit.stacks.web.from_debian import with_file
from qbkit.stacks.web.site import File, Site


class QuicheServer(RustProgram, WebServer):
    """The member ``quiche-web`` of the workspace."""

    name: ClassVar[str] = "quiche"
    source: ClassVar[str] = "crate quiche"
    protocols: ClassVar[tuple[str, ...]] = ("h3",)
    hosts: ClassVar[bool] = True
    zero_rtt: ClassVar[bool] = True
    crate: ClassVar[str] = Quiche.crate
    tools: ClassVar[dict[str, str]] = Quiche.tools
    minutes: ClassVar[int] = Quiche.minutes

    def controllers(self) -> tuple[str, ...]:
        """Those of the stack quiche."""
        return Quiche().controllers()

    def version(self) -> str:
        """Versions of the crate, of our program and of this file."""
        return f"{super().version()}, server {fingerprint([Path(__file__)])}"

    def argv(
        self, *, address: str, protocol: str, controller: str, site: Site, out: str
    ) -> list[str]:
        """The program, after a shell has written the list of the site's files for it."""
        table = f"{out}/site.tsv"
        keys = [f"{CERTIFICATE_MOUNT}/browser-{word}.pem" for word in ("cert", "key")]
        start = [*self.program(), address, controller, *keys, table]
        return with_file(table, "\n".join(map(_line, site.files())), start)

    def _program(self) -> str:
        return "quiche-web"

    def _how(self) -> str:
        return f"qbkit web --build {self.name}"

    def _mount(self) -> str:
        return "/run/qb/stacks/quiche-web"


def _line(file: File) -> str:
    """Host, path, file, status, and all headers' names and values, as site.rs reads them."""
    headers = [("content-type", file.content_type), *file.headers]
    words = [word for pair in headers for word in pair]
    fields = [file.host, file.path, file.guest_path, str(file.status), *words]
    return "\t".join(" ".join(field.split()) for field in fields)


register_server(QuicheServer())
