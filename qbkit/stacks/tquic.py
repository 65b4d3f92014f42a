"""tquic, Tencent's QUIC, with its CUBIC, BBR, BBRv3 and Copa, from its crate."""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.rust import CMAKE, RustStack


class Tquic(RustStack):
    """Our small driver, which gives tquic a socket and a clock."""

    name = crate = "tquic"
    source = "crate tquic"
    controller_names = ("cubic", "bbr", "bbr3", "copa")
    """All of this version but the dummy."""
    certificate = "browser-"
    tools: ClassVar[dict[str, str]] = CMAKE
    minutes = 4
    options: ClassVar[dict[str, str]] = {
        "initial_window_packets": "initial congestion window in packets",
        "min_window_packets": "least congestion window in packets",
        "initial_ssthresh_packets": "initial slow start threshold in packets",
        "initial_rtt_ms": "RTT that is assumed until one is measured",
        "ack_every_packets": "the receiver acknowledges every n-th packet",
        "max_ack_delay_ms": "how long the receiver may hold back an ACK",
        "pacing": "false: no pacing",
        "pacing_granularity_ms": "how much may be sent at once, in time at the pacing rate",
        "bbr_probe_bw_cwnd_gain": "BBR's window gain in PROBE_BW",
        "bbr_min_rtt_window_ms": "how long BBR keeps a minimum RTT",
        "bbr_probe_rtt_ms": "how long BBR stays in PROBE_RTT",
        "bbr_probe_rtt_cwnd_gain": "BBR's window in PROBE_RTT as a part of the BDP",
        "copa_slow_start_delta": "Copa's delta in slow start",
        "copa_steady_delta": "Copa's delta afterwards",
        "copa_use_standing_rtt": "false: Copa takes the latest RTT for its queueing delay",
        "qlog": "write a full qlog",
    }

    counts_for: ClassVar[dict[str, tuple[str, ...]]] = {
        "initial_ssthresh_packets": ("cubic",),
        **dict.fromkeys((name for name in options if name.startswith("bbr_")), ("bbr",)),
        **dict.fromkeys((name for name in options if name.startswith("copa_")), ("copa",)),
    }


register(Tquic())
