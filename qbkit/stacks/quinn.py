"""quinn, with its CUBIC, NewReno and BBR, from its crate."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.stacks import preload
from qbkit.stacks.registry import register
from qbkit.stacks.rust import RustStack


class Quinn(RustStack):
    """A small tokio program of ours around quinn."""

    name: ClassVar[str] = "quinn"
    source: ClassVar[str] = "crate quinn"
    crate: ClassVar[str] = "quinn"
    most_window_bytes: ClassVar[int] = 1 << 30
    options: ClassVar[dict[str, str]] = {
        "initial_window_packets": "initial congestion window in packets of 1200 bytes",
        "ack_every_packets": "the receiver acknowledges every n-th packet (ACK Frequency)",
        "packet_threshold": "a packet is lost when so many later ones were acknowledged",
        "segmentation": "false: no UDP segmentation offload, a system call a packet",
        "qlog": "write a full qlog",
    }

    def controllers(self) -> tuple[str, ...]:
        """All that quinn-proto has."""
        return ("cubic", "newreno", "bbr")

    def version(self) -> str:
        """Version of the crate, of our driver, and of what is preloaded."""
        return f"{super().version()}, {preload.version()}"

    def mounts(self) -> dict[str, Path]:
        """The folders of the compiled driver, and of what is preloaded."""
        return {**super().mounts(), **preload.mounts()}

    def env(self) -> dict[str, str]:
        """A crate's, and what is preloaded."""
        return {**super().env(), **preload.ENV}


register(Quinn())
