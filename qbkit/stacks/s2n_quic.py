"""s2n-quic, of AWS, with its CUBIC and its BBR (version 2), from its crate."""

from __future__ import annotations

from typing import ClassVar

from qbkit.spec.app import APPS
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.rust import RustStack


class S2nQuic(RustStack):
    """Our small tokio driver of s2n-quic."""

    name = crate = "s2n-quic"
    source = "crate s2n-quic"
    controller_names = ("cubic", "bbr")
    serves = True
    transport_crate = "s2n-quic-transport"
    tools: ClassVar[dict[str, str]] = {"cc": "gcc"}
    # aws-lc would seed itself by timing the processor, and abort because virtual time is regular.
    build_env: ClassVar[dict[str, str]] = {"AWS_LC_SYS_NO_JITTER_ENTROPY": "1"}
    minutes = 4
    most_window_bytes = 1 << 30
    apps = tuple(name for name in APPS if name != "onoff")
    """Not ``onoff``: how much is unsent when it is switched off cannot be limited."""
    options: ClassVar[dict[str, str]] = {
        "initial_window_packets": "initial congestion window in packets",
        "pacing": "false: no pacing",
        "hystart": "false: CUBIC's slow start ends at the first loss only",
        "hystart_plus_plus": "true: CUBIC's slow start ends by HyStart++, not Hybrid Slow Start",
        "max_ack_delay_ms": "how long the receiver may hold back an ACK",
        "segmentation": "false: no UDP segmentation offload",
        "bbr_cwnd_gain_percent": "BBR's window in ProbeBW, in percent of the estimated BDP",
        "bbr_probe_up_gain_percent": "BBR's pacing rate when it probes, in percent of its estimate",
        "bbr_loss_threshold_percent": "loss per round trip up to which BBR keeps probing",
    }

    counts_for: ClassVar[dict[str, tuple[str, ...]]] = {
        **dict.fromkeys(("hystart", "hystart_plus_plus"), ("cubic",)),
        **dict.fromkeys((name for name in options if name.startswith("bbr_")), ("bbr",)),
    }


register(S2nQuic())
