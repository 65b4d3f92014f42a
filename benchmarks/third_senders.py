"""Senders with one known change each, for ``causes.py --third``: a third set, out of sample.

Their truths were written down, without the rules of `qbkit.metrics.parameters` at hand, and
committed before the first of them was run. No rule had been corrected by them when their tables
were written.
"""

from __future__ import annotations

from sender_cases import (
    AFTER_PAUSE,
    BATCHES,
    CAP,
    DOWN,
    EXIT,
    MEMORY,
    NEVER,
    SLOW,
    STARTUP_GAIN,
    UP,
    Case,
    of,
)

from qbkit.metrics.parameters.relations import RECEIVERS
from qbkit.spec import Bottleneck

CHANGED_BBR, BBR = "qbkit:changed-bbr", "qbkit:unseen-bbr"
CUBIC, RENO = "qbkit:unseen-cubic", "qbkit:unseen-reno"
PAUSED_CUBIC = f"{CUBIC}?app=onoff on_s=5 off_s=3"
DRAIN = ("left_in_flight_bdp", "startup_drain_gain", *DOWN)
FAST = ("standing_queue_bdp", "paced_part")

SMALL = Bottleneck(rate_mbps=6, rtt_ms=45, buffer_bdp=4)
SLOWER = Bottleneck(rate_mbps=8, rtt_ms=60, buffer_bdp=1.5)
MIDDLE = Bottleneck(rate_mbps=16, rtt_ms=70, buffer_bdp=3)
SHALLOW = Bottleneck(rate_mbps=30, rtt_ms=35, buffer_bdp=1.2)
LONG = Bottleneck(rate_mbps=25, rtt_ms=80, buffer_bdp=3.5)
QUICK = Bottleneck(rate_mbps=40, rtt_ms=32, buffer_bdp=2.5)

THIRD = [
    *of(
        "bbr, third",
        BBR,
        {
            "up_gain=1.12": UP,
            "burst_keeps=0.6": ("kept_after_burst",),
            "rate_percent=75": SLOW,
        },
        SLOWER,
    ),
    *of(
        "bbr, third",
        BBR,
        {
            "drains_to_bdp=1.35": DRAIN,
            "probe_rtt_ms=900": ("probe_rtt_duration_ms",),
            "cruise_bdp=0.55": ("cruise_part",),
        },
        MIDDLE,
    ),
    *of("bbr, third", BBR, {"memory_cycles=500": MEMORY}, SMALL),
    *of("bbr, third", CHANGED_BBR, {"bandwidth_rounds=22": MEMORY}, SLOWER),
    *of(
        "bbr, third",
        f"{CHANGED_BBR}?ack_every_packets=20",
        {"aggregation=false": ("ack_room",)},
        SLOWER,
    ),
    *of("bbr, third", CHANGED_BBR, {"pacing_gain_percent=130": FAST}, MIDDLE),
    *of(
        "bbr of stacks, third", "quiche:bbr2", {"bbr_startup_pacing_gain=2": STARTUP_GAIN}, SHALLOW
    ),
    *of(
        "bbr of stacks, third",
        "google-quiche:bbr",
        {"connection_options=2RTT": ("startup_hold_rtts",)},
        LONG,
    ),
    *of(
        "bbr of stacks, third",
        "tquic:bbr",
        {"bbr_min_rtt_window_ms=1000000": ("probe_rtt",)},
        SHALLOW,
    ),
    *of(
        "bbr of stacks, third",
        "tquic:bbr",
        {"bbr_probe_rtt_cwnd_gain=0.12": ("probe_rtt_bdp",)},
        QUICK,
    ),
    *of(
        "bbr of stacks, third",
        "s2n-quic:bbr",
        {"bbr_cwnd_gain_percent=130": ("window_gain",)},
        LONG,
    ),
    *of("bbr of stacks, third", "s2n-quic:bbr", {"pacing=false": ("pacing",)}, SHALLOW),
    *of("bbr of stacks, third", "lsquic:bbr", {"clock_granularity_us=20000": BATCHES}, LONG),
    *of(
        "loss-based, third",
        CUBIC,
        {
            "beta=0.8": ("decrease_factor",),
            "undoes_below=8": ("reverted_reductions_percent", *NEVER),
        },
        SLOWER,
    ),
    *of("loss-based, third", CUBIC, {"c=1.5": ("cubic_c",)}, MIDDLE),
    *of("loss-based, third", PAUSED_CUBIC, {"restarts=true": AFTER_PAUSE}, SLOWER),
    *of(
        "loss-based, third",
        "qbkit:changed-reno",
        {"increase=1.6": ("increase_packets_per_rtt",)},
        SLOWER,
    ),
    *of(
        "loss-based, third",
        RENO,
        {"most_packets=60": CAP, "quantum_packets=20": BATCHES},
        SLOWER,
    ),
    *of("loss-based, third", "qbkit:further-reno", {"recovery_s=12": NEVER}, SLOWER),
    *of("stacks, third", "quinn:cubic", {"receive_window_kb=180": CAP}, SHALLOW),
    *of("stacks, third", "s2n-quic:cubic", {"read_mbps=8&receive_window_kb=250": CAP}, SHALLOW),
    *of("stacks, third", "quiche:cubic", {"hystart=false": EXIT}, LONG),
    *of("stacks, third", "ngtcp2:cubic", {"ack_every_packets=12": RECEIVERS}, LONG),
    *of("stacks, third", "picoquic:cubic", {"pmtud=false": ("packet_bytes",)}, LONG),
    *(
        Case("unchanged, third", name, name, (), link)
        for name, link in (
            (CHANGED_BBR, MIDDLE),
            (BBR, SLOWER),
            ("quiche:bbr2", SHALLOW),
            ("lsquic:bbr", LONG),
            (RENO, SLOWER),
            ("picoquic:cubic", LONG),
        )
    ),
]
