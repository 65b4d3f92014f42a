"""aioquic's HTTP/3 client, with the connection and the loop of the stack aioquic's driver."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.stacks.aioquic import AioQuic
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.stacks.web.base import HOST, WebClient, register_client
from qbkit.stacks.web.beside_aioquic import BesideAioQuic

DRIVER = Path(__file__).parents[2] / "drivers/web_aioquic"


class _Driver(BesideAioQuic):
    """The interpreter, modules and byte code of the stack, and our client beside its driver."""

    name: ClassVar[str] = "web-aioquic"
    folder: ClassVar[Path] = DRIVER
    package: ClassVar[str] = DRIVER.name

    def version(self) -> str:
        """Version of the stack and of the client."""
        return f"{super().version()}, client {fingerprint(DRIVER.glob('*.py'))}"


class AioQuicClient(WebClient):
    """It verifies no certificates."""

    name: ClassVar[str] = "aioquic"
    source: ClassVar[str] = AioQuic.source
    protocols: ClassVar[tuple[str, ...]] = ("h3",)
    unlimited: ClassVar[tuple[str, ...]] = ("h3",)
    zero_rtt: ClassVar[bool] = True

    def version(self) -> str:
        """Versions of aioquic, its driver and the client."""
        return _Driver().version()

    def mounts(self) -> dict[str, Path]:
        """As for the stack."""
        return _Driver().mounts()

    def env(self) -> dict[str, str]:
        """As for the stack."""
        return _Driver().env()

    def argv(
        self, *, address: str, protocol: str, path: str, out: str, zero_rtt: bool
    ) -> list[str]:
        """The client, which writes load.json."""
        command = [*_Driver().program(), "--connect", address, "--host", HOST]
        early = ["--zero-rtt"] if zero_rtt else []
        return [*command, "--path", path, "--out", out, *early]


register_client(AioQuicClient())
