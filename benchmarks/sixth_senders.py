"""Senders with one known change each, for ``causes.py --sixth``: kept back, as the fourth set.

Their truths were written down, without the rules of `qbkit.metrics.parameters` at hand, and
committed before any of them was judged. That a change shows was seen in one run of each side:
in throughput, queue, losses, sizes of packets, or packets per ACK.
"""

from __future__ import annotations

import sixth_controllers  # noqa: F401  registers them
from sender_cases import (
    CAP,
    EXIT,
    MEMORY,
    SLOW,
    STARTUP_GAIN,
    STEEP,
    UP,
    Case,
    of,
)

from qbkit.metrics.parameters.relations import RECEIVERS
from qbkit.spec import Bottleneck

BBR, CUBIC = "qbkit:sixth-bbr", "qbkit:sixth-cubic"

LEAST = ("least_window_packets", "probe_rtt_bdp")
END = (*EXIT, "slow_start_exit_packets")
LIMITED = (*CAP, "limited_percent")
FIRST = ("initial_window_packets",)

SIXTH_MIDDLE = Bottleneck(rate_mbps=26, rtt_ms=48, buffer_bdp=1.6)
SIXTH_LONG = Bottleneck(rate_mbps=14, rtt_ms=70, buffer_bdp=4.2)
SIXTH_QUICK = Bottleneck(rate_mbps=32, rtt_ms=24, buffer_bdp=2.2)
SIXTH_DEEP = Bottleneck(rate_mbps=19, rtt_ms=34, buffer_bdp=4.6)
SIXTH_TIGHT = Bottleneck(rate_mbps=11, rtt_ms=58, buffer_bdp=1)
SIXTH_SLOW = Bottleneck(rate_mbps=11, rtt_ms=58, buffer_bdp=2.4)
SIXTH_SMALL = Bottleneck(rate_mbps=7, rtt_ms=42, buffer_bdp=3.6)
SIXTH_SHALLOW = Bottleneck(rate_mbps=7, rtt_ms=42, buffer_bdp=1.4)

SIXTH = [
    *of("bbr, sixth", BBR, {"headroom=0.5": ("cruise_part",)}, SIXTH_TIGHT),
    *of(
        "bbr, sixth",
        BBR,
        {
            "startup_window_gain=1.5": STARTUP_GAIN,
            "wait_s=0.2": ("probe_cycle_rtts",),
            "probe_rtt_every_s=1.3": ("probe_rtt_every_s", "probe_rtt_interval_s"),
            "averages=true": MEMORY,
            "margin_percent=20": SLOW,
        },
        SIXTH_SLOW,
    ),
    *of("bbr of stacks, sixth", "quiche:bbr2", {"bbr_probe_up_pacing_gain=1.6": UP}, SIXTH_MIDDLE),
    *of(
        "bbr of stacks, sixth",
        "google-quiche:bbr2",
        {"connection_options=BBQ2": STARTUP_GAIN},
        SIXTH_LONG,
    ),
    *of(
        "bbr of stacks, sixth",
        "s2n-quic:bbr",
        {"bbr_cwnd_gain_percent=105": ("window_gain",)},
        SIXTH_LONG,
    ),
    *of("bbr of stacks, sixth", "tquic:bbr", {"min_window_packets=50": LEAST}, SIXTH_QUICK),
    *of("bbr of stacks, sixth", "msquic:bbr", {"initial_window_packets=80": FIRST}, SIXTH_MIDDLE),
    *of(
        "bbr of stacks, sixth",
        "lsquic:bbr",
        {"read_mbps=13&receive_window_kb=150": LIMITED},
        SIXTH_QUICK,
    ),
    *of(
        "loss-based, sixth",
        CUBIC,
        {
            "css_rounds=1": END,
            "most_per_ack_packets=1": ("start_growth",),
            "beta=0.4": ("decrease_factor",),
        },
        SIXTH_SMALL,
    ),
    *of("loss-based, sixth", CUBIC, {"friendly_alpha=4": (*STEEP, "growth")}, SIXTH_SHALLOW),
    *of("stacks, sixth", "tcp:reno", {"initial_window_packets=2": FIRST}, SIXTH_LONG),
    *of("stacks, sixth", "quic-go:cubic", {"receive_window_kb=100": LIMITED}, SIXTH_QUICK),
    *of("stacks, sixth", "quiche:reno", {"hystart=false": END}, SIXTH_DEEP),
    *of("stacks, sixth", "neqo:newreno", {"hystart=true": END}, SIXTH_DEEP),
    *of("stacks, sixth", "google-quiche:cubic", {"initial_window_packets=3": FIRST}, SIXTH_MIDDLE),
    *of("stacks, sixth", "quinn:cubic", {"ack_every_packets=32": RECEIVERS}, SIXTH_MIDDLE),
    *of("stacks, sixth", "picoquic:newreno", {"pmtud=false": ("packet_bytes",)}, SIXTH_DEEP),
    *of(
        "stacks, sixth",
        "noq:newreno",
        {"read_mbps=11&receive_window_kb=120": LIMITED},
        SIXTH_MIDDLE,
    ),
    *(
        Case("unchanged, sixth", name, name, (), link)
        for name, link in (
            (BBR, SIXTH_SLOW),
            ("s2n-quic:bbr", SIXTH_LONG),
            ("google-quiche:bbr2", SIXTH_LONG),
            ("lsquic:bbr", SIXTH_QUICK),
            (CUBIC, SIXTH_SHALLOW),
            ("quic-go:cubic", SIXTH_QUICK),
            ("quiche:reno", SIXTH_DEEP),
            ("ngtcp2:reno", SIXTH_MIDDLE),
        )
    ),
]
