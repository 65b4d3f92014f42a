"""Go's own HTTP/2 server and quic-go's HTTP/3 server, with the same handler and TLS library."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.stacks.base import CERTIFICATE_MOUNT
from qbkit.stacks.quic_go import QuicGo
from qbkit.stacks.registry import get
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.stacks.web.base import OfStack, WebServer, register_server
from qbkit.stacks.web.site import MOUNT, Site


class GoServer(OfStack, WebServer):
    """The driver of the stack quic-go in its role ``web-serve``."""

    name: ClassVar[str] = "go"
    stack: ClassVar[str] = QuicGo.name
    source: ClassVar[str] = "Go's net/http; Go module quic-go"
    protocols: ClassVar[tuple[str, ...]] = ("h2", "h3")

    def controllers(self) -> tuple[str, ...]:
        """Those of quic-go."""
        return get(self.stack).controllers()

    def version(self) -> str:
        """Version of quic-go and its driver."""
        return f"quic-go {get(self.stack).version()}, server {fingerprint([Path(__file__)])}"

    def argv(
        self, *, address: str, protocol: str, controller: str, site: Site, out: str
    ) -> list[str]:
        """The driver; over HTTP/2 it does not use the controller."""
        command = [*get(self.stack).program(), "web-serve", "--listen", address]
        command += ["--controller", controller]
        keys = [f"{CERTIFICATE_MOUNT}/browser-{word}.pem" for word in ("cert", "key")]
        return [*command, "--cert", keys[0], "--key", keys[1], "--site", MOUNT]


register_server(GoServer())
