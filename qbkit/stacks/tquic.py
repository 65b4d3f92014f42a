"""tquic, Tencent's QUIC, with its CUBIC, BBR, BBRv3 and Copa, from its crate."""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.registry import register
from qbkit.stacks.rust import RustStack


class Tquic(RustStack):
    """A small program of ours that gives tquic a socket and a clock."""

    name: ClassVar[str] = "tquic"
    color: ClassVar[str] = "#008080"
    source: ClassVar[str] = "crate tquic"
    crate: ClassVar[str] = "tquic"
    certificate: ClassVar[str] = "browser-"
    tools: ClassVar[dict[str, str]] = {"cmake": "cmake", "c++": "g++"}
    minutes: ClassVar[int] = 4
    options: ClassVar[dict[str, str]] = {
        "initial_window_packets": "initial congestion window in packets",
        "min_window_packets": "least congestion window in packets",
        "ack_every_packets": "the receiver acknowledges every n-th packet",
        "pacing": "false: no pacing",
        "bbr_probe_bw_cwnd_gain": "BBR's window gain in PROBE_BW",
        "qlog": "write a full qlog",
    }

    def controllers(self) -> tuple[str, ...]:
        """All of this version but the dummy."""
        return ("cubic", "bbr", "bbr3", "copa")


register(Tquic())
