"""Senders that only speak HTTP/3: they upload to quic-go's server."""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.base import CERTIFICATE_MOUNT, Options, Stack
from qbkit.stacks.quic_go import QuicGo

CERTIFICATE = "browser-"
"""Prefix of a test certificate that browsers can verify."""


class ReadingServer(QuicGo):
    """The same server, whose `for_app` reads as applications do, and writes down each read."""

    name = "quic-go-uploads"
    more_above = ("uploads",)

    def _how(self) -> str:
        return "qbkit stacks build jdk"


class UploadingStack(Stack):
    """A stack whose receiver is quic-go's HTTP/3 server."""

    _receiver: ClassVar[Stack] = QuicGo()

    def recv_argv(self, *, address: str, out: str, options: Options) -> list[str]:
        """The server, which takes uploads on ``IP:PORT``."""
        files = {name: f"{CERTIFICATE_MOUNT}/{CERTIFICATE}{name}.pem" for name in ("cert", "key")}
        keys = ["--cert", files["cert"], "--key", files["key"]]
        return [*self._receiver.program(), "serve", "--listen", address, *keys, "--out", out]
