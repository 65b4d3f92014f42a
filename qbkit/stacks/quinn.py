"""quinn, with its CUBIC, NewReno and BBR, from its crate."""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.preload import EVENT_LOOP, Preloading
from qbkit.stacks.toolchains.rust import RustStack


class Quinn(Preloading, RustStack):
    """Our small tokio driver of quinn."""

    name = crate = "quinn"
    source = "crate quinn"
    controller_names = ("cubic", "newreno", "bbr")
    serves = resumes = True
    transport_crate = "quinn-proto"
    preloaded = EVENT_LOOP
    most_window_bytes = 1 << 30
    options: ClassVar[dict[str, str]] = {
        "initial_window_packets": "initial congestion window in packets of 1200 bytes",
        "ack_every_packets": "the receiver acknowledges every n-th packet (ACK Frequency)",
        "packet_threshold": "a packet is lost when this many later ones were acknowledged",
        "segmentation": "false: no UDP segmentation offload, one system call per packet",
        "qlog": "write a full qlog",
    }


register(Quinn())
