"""golang.org/x/net/quic, the QUIC of Go's own extended library, with its one controller, Reno.

Its API is not stable, and HTTP/3 on top of it is not public yet. It sends datagrams of 1200 bytes,
looks for no larger ones, and acknowledges every tenth packet after the first hundred. Its pacer
refills only when one of its timers fires, so that a part of what follows a pause may wait 2 ms.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.spec.app import APPS
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.golang import GoStack


class XNetQuic(GoStack):
    """Our small Go driver of x/net/quic."""

    name = "x-net-quic"
    module = "golang.org/x/net"
    source = f"Go module {module}, its package quic; BSD licence"
    ip6 = True
    apps = APPS
    reads_slowly = offers_window = True
    controller_names = ("reno",)
    """The NewReno of RFC 9002."""
    sources = Path(__file__).parent / "drivers/x-net-quic"
    most_window_bytes = 32 << 20
    reports = (
        *("cwnd_bytes", "bytes_in_flight", "ssthresh_bytes"),
        *("srtt_ms", "latest_rtt_ms", "min_rtt_ms", "lost_packets"),
    )
    options: ClassVar[dict[str, str]] = {"qlog": "write a full qlog"}


register(XNetQuic())
