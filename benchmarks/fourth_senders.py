"""Senders with one known change each, for ``causes.py --fourth`` and ``--fifth``: kept back.

Their truths were written down, without the rules of `qbkit.metrics.parameters` at hand, and
committed before any of them was judged.
"""

from __future__ import annotations

import fourth_controllers  # noqa: F401  registers them
from sender_cases import (
    AFTER_OUTAGE,
    AFTER_PAUSE,
    BATCHES,
    CAP,
    DOWN,
    EXIT,
    FAST,
    MEMORY,
    NEVER,
    SLOW,
    STARTUP_GAIN,
    STEEP,
    UP,
    Case,
    of,
)

from qbkit.metrics.parameters.relations import RECEIVERS
from qbkit.spec import Bottleneck
from qbkit.spec.over_time import Outages

BBR, RENO = "qbkit:fourth-bbr", "qbkit:fourth-reno"
OLDER_BBR, FURTHER_BBR, CHANGED_BBR = "qbkit:unseen-bbr", "qbkit:further-bbr", "qbkit:changed-bbr"
CUBIC, CHANGED_CUBIC = "qbkit:unseen-cubic", "qbkit:changed-cubic"
PAUSED_RENO = f"{RENO}?app=onoff on_s=4 off_s=2"

WINDOW = ("window_gain",)
DRAIN = ("startup_drain_gain", "left_in_flight_bdp")
EARLY = ("startup_hold_rtts", "slow_start_exit", "startup_reach_rtts", "startup_peak_bdp")
LEAST = ("probe_rtt_bdp", "least_window_packets")
UNPACED = ("pacing", "burst_packets", *BATCHES)
COARSE = ("burst_packets", *BATCHES)
END = (*EXIT, "slow_start_exit_packets")
LIMITED = (*CAP, "limited_percent")

FOURTH_QUICK = Bottleneck(rate_mbps=35, rtt_ms=28, buffer_bdp=1.5)
FOURTH_MIDDLE = Bottleneck(rate_mbps=20, rtt_ms=40, buffer_bdp=2.5)
FOURTH_LONG = Bottleneck(rate_mbps=15, rtt_ms=90, buffer_bdp=3)
FOURTH_SMALL = Bottleneck(rate_mbps=9, rtt_ms=25, buffer_bdp=5)
FOURTH_SLOW = Bottleneck(rate_mbps=7, rtt_ms=50, buffer_bdp=2)
FOURTH_DEEP = Bottleneck(rate_mbps=11, rtt_ms=36, buffer_bdp=4)
FOURTH_SHALLOW = Bottleneck(rate_mbps=9, rtt_ms=75, buffer_bdp=1)

FOURTH = [
    *of("bbr, fourth", BBR, {"startup_gain=1.6": STARTUP_GAIN}, FOURTH_SLOW),
    *of("bbr, fourth", BBR, {"quantum_packets=18": COARSE}, FOURTH_DEEP),
    *of(
        "bbr, fourth",
        BBR,
        {
            "up_rounds=4": ("probes_reach_bdp", "probe_cycle_rtts"),
            "probe_rtt_every_s=100000": ("probe_rtt", "probe_rtt_every_s", "probe_rtt_interval_s"),
        },
        FOURTH_SLOW,
    ),
    *of("bbr, fourth", OLDER_BBR, {"memory_rounds=25": MEMORY}, FOURTH_DEEP),
    *of("bbr, fourth", FURTHER_BBR, {"headroom=0.4": ("cruise_part",)}, FOURTH_SLOW),
    *of(
        "bbr of stacks, fourth",
        "quiche:bbr2",
        {
            "bbr_drain_pacing_gain=0.85": ("startup_drain_gain",),
            "max_pacing_rate_mbps=14": (*SLOW, "probe_rate", "limited_percent"),
        },
        FOURTH_MIDDLE,
    ),
    *of(
        "bbr of stacks, fourth",
        "google-quiche:bbr",
        {"connection_options=BBR3": ("left_in_flight_bdp", *DOWN)},
        FOURTH_LONG,
    ),
    *of(
        "bbr of stacks, fourth",
        "google-quiche:bbr",
        {"connection_options=MIN1": LEAST},
        FOURTH_SMALL,
    ),
    *of(
        "bbr of stacks, fourth", "tquic:bbr", {"bbr_probe_bw_cwnd_gain=1.25": WINDOW}, FOURTH_QUICK
    ),
    *of(
        "bbr of stacks, fourth", "s2n-quic:bbr", {"bbr_probe_up_gain_percent=300": UP}, FOURTH_LONG
    ),
    *of(
        "loss-based, fourth",
        RENO,
        {"start_part=0.35": ("start_growth",), "waits_rtts=60": NEVER},
        FOURTH_SLOW,
    ),
    *of("loss-based, fourth", RENO, {"packets_per_rtt=6": STEEP}, FOURTH_SHALLOW),
    *of("loss-based, fourth", PAUSED_RENO, {"restart_packets=4": AFTER_PAUSE}, FOURTH_SLOW),
    *of(
        "loss-based, fourth",
        CUBIC,
        {"c=0.05": ("cubic_c", "growth", "increase_packets_per_rtt")},
        FOURTH_SHALLOW,
    ),
    *of("loss-based, fourth", CHANGED_CUBIC, {"hystart_rise=8": END}, FOURTH_DEEP),
    *of(
        "stacks, fourth",
        "msquic:cubic",
        {"initial_window_packets=50": ("initial_window_packets",)},
        FOURTH_MIDDLE,
    ),
    *of("stacks, fourth", "tquic:cubic", {"pacing=false": UNPACED}, FOURTH_LONG),
    *of(
        "stacks, fourth",
        "quinn:newreno",
        {"read_mbps=9&receive_window_kb=90": LIMITED},
        FOURTH_MIDDLE,
    ),
    *of("stacks, fourth", "neqo:newreno", {"pmtud=true": ("packet_bytes",)}, FOURTH_QUICK),
    *of("stacks, fourth", "noq:cubic", {"ack_every_packets=14": RECEIVERS}, FOURTH_LONG),
    *of("stacks, fourth", "tcp:cubic", {"pacing=true": UNPACED}, FOURTH_QUICK),
    *(
        Case("unchanged, fourth", name, name, (), link)
        for name, link in (
            (BBR, FOURTH_SLOW),
            ("google-quiche:bbr", FOURTH_LONG),
            ("tquic:bbr", FOURTH_QUICK),
            ("quiche:bbr2", FOURTH_MIDDLE),
            (RENO, FOURTH_SHALLOW),
            ("quinn:newreno", FOURTH_MIDDLE),
            ("neqo:newreno", FOURTH_QUICK),
            ("tquic:cubic", FOURTH_LONG),
        )
    ),
]

FIFTH_QUICK = Bottleneck(rate_mbps=38, rtt_ms=22, buffer_bdp=1.3)
FIFTH_MIDDLE = Bottleneck(rate_mbps=24, rtt_ms=55, buffer_bdp=2)
FIFTH_LONG = Bottleneck(rate_mbps=13, rtt_ms=85, buffer_bdp=4)
FIFTH_DEEP = Bottleneck(rate_mbps=18, rtt_ms=30, buffer_bdp=5)
FIFTH_SLOW = Bottleneck(rate_mbps=10, rtt_ms=65, buffer_bdp=1.7)
FIFTH_SMALL = Bottleneck(rate_mbps=6, rtt_ms=32, buffer_bdp=4.5)
FIFTH_MODEST = Bottleneck(rate_mbps=12, rtt_ms=45, buffer_bdp=2.7)
FIFTH_OUTAGES = FIFTH_MODEST.model_copy(
    update={"outages": Outages(times=((18.0, 1.8), (38.0, 1.8)), drops=True)}
)

FIFTH = [
    *of(
        "bbr, fifth",
        BBR,
        {"loss_keeps=0.35": ("kept_after_burst",), "flat_rounds=10": ("startup_hold_rtts",)},
        FIFTH_SLOW,
    ),
    *of(
        "bbr, fifth",
        BBR,
        {"drain_rounds=1": (*DRAIN, *FAST), "rate_percent=135": (*FAST, "paced_part")},
        FIFTH_MODEST,
    ),
    *of("bbr, fifth", OLDER_BBR, {"up_gain=2": UP}, FIFTH_SLOW),
    *of("bbr, fifth", f"{BBR}?ack_every_packets=20", {"room=false": ("ack_room",)}, FIFTH_MODEST),
    *of(
        "bbr of stacks, fifth",
        "quiche:bbr2",
        {"bbr_probe_down_pacing_gain=0.3": DOWN},
        FIFTH_MIDDLE,
    ),
    *of("bbr of stacks, fifth", "tquic:bbr3", {"pacing=false": UNPACED}, FIFTH_QUICK),
    *of(
        "bbr of stacks, fifth",
        "tquic:bbr",
        {"bbr_probe_rtt_ms=1500": ("probe_rtt_duration_ms",)},
        FIFTH_MIDDLE,
    ),
    *of("bbr of stacks, fifth", "s2n-quic:bbr", {"bbr_cwnd_gain_percent=300": WINDOW}, FIFTH_LONG),
    *of(
        "bbr of stacks, fifth", "google-quiche:bbr2", {"connection_options=1RTT": EARLY}, FIFTH_LONG
    ),
    *of(
        "bbr of stacks, fifth",
        "noq:bbr3",
        {"initial_window_packets=60": ("initial_window_packets",)},
        FIFTH_MIDDLE,
    ),
    *of(
        "loss-based, fifth",
        RENO,
        {
            "pacing_percent=400": ("pacing_gain", *UNPACED),
            "first_ssthresh_packets=16": END,
            "most_packets=40": LIMITED,
        },
        FIFTH_SLOW,
    ),
    *of("loss-based, fifth", RENO, {"forgives=true": AFTER_OUTAGE}, FIFTH_OUTAGES),
    *of("loss-based, fifth", CUBIC, {"beta=0.9": ("decrease_factor",)}, FIFTH_MODEST),
    *of("loss-based, fifth", "qbkit:further-cubic", {"quantum_packets=14": COARSE}, FIFTH_SMALL),
    *of(
        "stacks, fifth",
        "quiche:cubic",
        {"initial_window_packets=45": ("initial_window_packets",)},
        FIFTH_QUICK,
    ),
    *of("stacks, fifth", "lsquic:cubic", {"clock_granularity_us=40000": COARSE}, FIFTH_MIDDLE),
    *of("stacks, fifth", "tcp:reno", {"receive_window_kb=110": LIMITED}, FIFTH_MIDDLE),
    *of(
        "stacks, fifth",
        "google-quiche:reno",
        {"mtu_discovery=true": ("packet_bytes",)},
        FIFTH_QUICK,
    ),
    *of("stacks, fifth", "picoquic:cubic", {"ack_frequency=false": RECEIVERS}, FIFTH_LONG),
    *of("stacks, fifth", "s2n-quic:cubic", {"hystart_plus_plus=true": END}, FIFTH_DEEP),
    *(
        Case("unchanged, fifth", name, name, (), link)
        for name, link in (
            (BBR, FIFTH_MODEST),
            ("noq:bbr3", FIFTH_MIDDLE),
            ("s2n-quic:bbr", FIFTH_LONG),
            ("google-quiche:bbr2", FIFTH_LONG),
            (CUBIC, FIFTH_MODEST),
            ("tcp:reno", FIFTH_MIDDLE),
            ("google-quiche:reno", FIFTH_QUICK),
            ("picoquic:cubic", FIFTH_LONG),
        )
    ),
]
