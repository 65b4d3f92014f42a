"""Go's own HTTP/2 server and quic-go's HTTP/3 server, with the same handler and TLS library."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.stacks.base import CERTIFICATE_MOUNT, Say, Status
from qbkit.stacks.quic_go import QuicGo
from qbkit.stacks.registry import get
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.stacks.web.base import WebServer, register_server
from qbkit.stacks.web.site import MOUNT, Site


class GoServer(WebServer):
    """The driver of the stack quic-go in its role ``web-serve``."""

    name: ClassVar[str] = "go"
    source: ClassVar[str] = "Go's net/http; Go module quic-go"
    protocols: ClassVar[tuple[str, ...]] = ("h2", "h3")

    def controllers(self) -> tuple[str, ...]:
        """Those of quic-go."""
        return get(QuicGo.name).controllers()

    def version(self) -> str:
        """Version of quic-go and its driver."""
        return f"quic-go {get(QuicGo.name).version()}, server {fingerprint([Path(__file__)])}"

    def status(self) -> Status:
        """Ready when quic-go is built."""
        return get(QuicGo.name).status()

    def build(self, say: Say = lambda _: None) -> None:
        """Build quic-go."""
        get(QuicGo.name).build(say)

    def mounts(self) -> dict[str, Path]:
        """The folder of the driver."""
        return get(QuicGo.name).mounts()

    def env(self) -> dict[str, str]:
        """As for quic-go."""
        return get(QuicGo.name).env()

    def argv(
        self, *, address: str, protocol: str, controller: str, site: Site, out: str
    ) -> list[str]:
        """The driver; over HTTP/2 it does not use the controller."""
        command = [*get(QuicGo.name).program(), "web-serve", "--listen", address]
        command += ["--controller", controller]
        keys = [f"{CERTIFICATE_MOUNT}/browser-{word}.pem" for word in ("cert", "key")]
        return [*command, "--cert", keys[0], "--key", keys[1], "--site", MOUNT]


register_server(GoServer())
