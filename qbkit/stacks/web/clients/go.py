"""Go's own HTTP/2 client and quic-go's HTTP/3 client: one program with one TLS library."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.stacks.base import Say, Status
from qbkit.stacks.quic_go import QuicGo
from qbkit.stacks.registry import get
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.stacks.web.base import WebClient, register_client


class GoClient(WebClient):
    """The driver of the stack quic-go in its role ``web-load``; it verifies no certificates."""

    name: ClassVar[str] = "go"
    source: ClassVar[str] = "Go's net/http; Go module quic-go"
    protocols: ClassVar[tuple[str, ...]] = ("h2", "h3")
    unlimited: ClassVar[tuple[str, ...]] = ("h3",)

    def version(self) -> str:
        """Version of quic-go and its driver."""
        return f"quic-go {get(QuicGo.name).version()}, client {fingerprint([Path(__file__)])}"

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
        self, *, address: str, protocol: str, path: str, out: str, zero_rtt: bool
    ) -> list[str]:
        """The driver, which writes load.json."""
        command = [*get(QuicGo.name).program(), "web-load", "--connect", address]
        return [*command, "--protocol", protocol, "--path", path, "--out", out]


register_client(GoClient())
