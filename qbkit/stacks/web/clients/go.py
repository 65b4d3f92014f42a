"""Go's own HTTP/2 client and quic-go's HTTP/3 client: one program with one TLS library."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.stacks.quic_go import QuicGo
from qbkit.stacks.registry import get
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.stacks.web.base import OfStack, WebClient, register_client


class GoClient(OfStack, WebClient):
    """The driver of the stack quic-go in its role ``web-load``; it verifies no certificates."""

    name: ClassVar[str] = "go"
    stack: ClassVar[str] = QuicGo.name
    source: ClassVar[str] = "Go's net/http; Go module quic-go"
    protocols: ClassVar[tuple[str, ...]] = ("h2", "h3")
    unlimited: ClassVar[tuple[str, ...]] = ("h3",)

    def version(self) -> str:
        """Version of quic-go and its driver."""
        return f"quic-go {get(self.stack).version()}, client {fingerprint([Path(__file__)])}"

    def argv(
        self, *, address: str, protocol: str, path: str, out: str, zero_rtt: bool
    ) -> list[str]:
        """The driver, which writes load.json."""
        command = [*get(self.stack).program(), "web-load", "--connect", address]
        return [*command, "--protocol", protocol, "--path", path, "--out", out]


register_client(GoClient())
