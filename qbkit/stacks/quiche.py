"""quiche, Cloudflare's QUIC, with its CUBIC, Reno and BBRv2, from its crate.

quiche 0.30 paces with BBRv2 only: with CUBIC and Reno a packet leaves as soon as the window allows.
Its name ``bbr`` means the same BBRv2. With CUBIC and Reno it also fills whatever room the window
has with a packet, however small (its issue 1400): CUBIC's packets are 400 bytes on average, so that
a full link carries 16 instead of 19 Mbit/s of application bytes.
"""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.rust import CMAKE, RustStack


class Quiche(RustStack):
    """Our small driver, which gives quiche a socket and a clock."""

    name = crate = "quiche"
    source = "crate quiche"
    controller_names = ("cubic", "reno", "bbr2")
    certificate = "browser-"
    tools: ClassVar[dict[str, str]] = {**CMAKE, "libclang": "libclang-dev"}
    minutes = 5
    reports = ("cwnd_bytes", "srtt_ms", "lost_packets")
    reads_slowly = offers_window = False
    serves = resumes = True
    options: ClassVar[dict[str, str]] = {
        "initial_window_packets": "initial congestion window in packets",
        "pacing": "false: BBRv2 does not pace",
        "max_pacing_rate_mbps": "upper limit of BBRv2's pacing rate, whole Mbit/s",
        "hystart": "false: CUBIC and Reno without HyStart++",
        "bbr_startup_pacing_gain": "BBRv2's pacing gain in STARTUP",
        "bbr_drain_pacing_gain": "BBRv2's pacing gain in DRAIN",
        "bbr_probe_up_pacing_gain": "BBRv2's pacing gain in PROBE_UP",
        "bbr_probe_down_pacing_gain": "BBRv2's pacing gain in PROBE_DOWN",
        "qlog": "write a full qlog",
    }

    counts_for: ClassVar[dict[str, tuple[str, ...]]] = {
        "hystart": ("cubic", "reno"),
        **dict.fromkeys(("pacing", "max_pacing_rate_mbps"), ("bbr2",)),
        **dict.fromkeys((name for name in options if name.startswith("bbr_")), ("bbr2",)),
    }


register(Quiche())
