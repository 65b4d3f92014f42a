"""quinn, with its CUBIC, NewReno and BBR, from its crate."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.spec.app import APPS
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains import preload
from qbkit.stacks.toolchains.rust import RustStack


class Quinn(RustStack):
    """Our small tokio driver of quinn."""

    name: ClassVar[str] = "quinn"
    source: ClassVar[str] = "crate quinn"
    controller_names: ClassVar[tuple[str, ...]] = ("cubic", "newreno", "bbr")
    crate: ClassVar[str] = "quinn"
    transport_crate: ClassVar[str] = "quinn-proto"
    most_window_bytes: ClassVar[int] = 1 << 30
    apps: ClassVar[tuple[str, ...]] = APPS
    reads_slowly: ClassVar[bool] = True
    offers_window: ClassVar[bool] = True
    options: ClassVar[dict[str, str]] = {
        "initial_window_packets": "initial congestion window in packets of 1200 bytes",
        "ack_every_packets": "the receiver acknowledges every n-th packet (ACK Frequency)",
        "packet_threshold": "a packet is lost when this many later ones were acknowledged",
        "segmentation": "false: no UDP segmentation offload, one system call per packet",
        "qlog": "write a full qlog",
    }

    def version(self) -> str:
        """Versions of the crate, our driver and the preloaded library."""
        return f"{super().version()}, {preload.EVENT_LOOP.version()}"

    def mounts(self) -> dict[str, Path]:
        """The folders of the compiled driver and of the preloaded library."""
        return {**super().mounts(), **preload.EVENT_LOOP.mounts()}

    def env(self) -> dict[str, str]:
        """The environment of every Rust stack, and the preloaded library."""
        return {**super().env(), **preload.EVENT_LOOP.env()}


register(Quinn())
