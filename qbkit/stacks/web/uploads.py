"""Senders that only speak HTTP/3: they upload to quic-go's server."""

from __future__ import annotations

from qbkit.stacks.base import CERTIFICATE_MOUNT, Options, Stack
from qbkit.stacks.quic_go import QuicGo

CERTIFICATE = "browser-"
"""Prefix of a test certificate that browsers can verify."""


class UploadingStack(Stack):
    """A stack whose receiver is quic-go's HTTP/3 server."""

    def __init__(self) -> None:
        self._receiver = QuicGo()

    def recv_argv(self, *, address: str, out: str, options: Options) -> list[str]:
        """The server, which takes uploads on ``IP:PORT``."""
        files = {name: f"{CERTIFICATE_MOUNT}/{CERTIFICATE}{name}.pem" for name in ("cert", "key")}
        keys = ["--cert", files["cert"], "--key", files["key"]]
        return [*self._receiver.program(), "serve", "--listen", address, *keys, "--out", out]
