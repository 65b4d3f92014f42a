"""quic-go's HTTP/3 server, the receiver of senders that only speak HTTP/3."""

from __future__ import annotations

from qbkit.stacks.base import CERTIFICATE_MOUNT, Stack

CERTIFICATE = "browser-"
"""Prefix of a test certificate that browsers can verify."""


def serve_argv(receiver: Stack, address: str, out: str) -> list[str]:
    """The command that takes uploads on ``IP:PORT``."""
    files = {name: f"{CERTIFICATE_MOUNT}/{CERTIFICATE}{name}.pem" for name in ("cert", "key")}
    keys = ["--cert", files["cert"], "--key", files["key"]]
    return [*receiver.program(), "serve", "--listen", address, *keys, "--out", out]
