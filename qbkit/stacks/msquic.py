"""msquic, Microsoft's QUIC, with its CUBIC and BBR, from its crate, which carries the C sources."""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.rust import CMAKE, RustStack


class MsQuic(RustStack):
    """Our small Rust driver of msquic."""

    name = crate = "msquic"
    source = "crate msquic"
    controller_names = ("cubic", "bbr")
    tools: ClassVar[dict[str, str]] = {**CMAKE, "perl": "perl", "libnuma.a": "libnuma-dev"}
    minutes = 6
    ip6 = False
    options: ClassVar[dict[str, str]] = {
        "initial_window_packets": "initial congestion window in packets",
        "pacing": "false: no pacing",
        "ecn": "true: ECN",
        "initial_rtt_ms": "RTT that is assumed until one is measured",
        "max_ack_delay_ms": "how long the receiver may hold back an ACK",
    }


register(MsQuic())
