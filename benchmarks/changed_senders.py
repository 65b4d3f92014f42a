"""The cases of ``benchmarks/causes.py``: senders with one known change each, and unchanged ones."""

from __future__ import annotations

import changed_controllers  # noqa: F401  registers them
import further_controllers  # noqa: F401  likewise
import interrupted_controllers  # noqa: F401  likewise
import limited_controllers  # noqa: F401  likewise
import unseen_controllers  # noqa: F401  likewise
from sender_cases import (
    AFTER_OUTAGE,
    AFTER_PAUSE,
    BATCHES,
    CAP,
    DOWN,
    EXIT,
    FAST,
    LINK,
    MEMORY,
    NEVER,
    SLOW,
    STARTUP_GAIN,
    STEEP,
    UP,
    Case,
    of,
)
from unseen_senders import LINK as FASTER_LINK

from qbkit.metrics.parameters.relations import RECEIVERS
from qbkit.spec import Bottleneck
from qbkit.spec.over_time import Outages

RELEASED = {bdp: Bottleneck(rate_mbps=20, rtt_ms=50, buffer_bdp=bdp) for bdp in (1, 3)}

BBR = "qbkit:changed-bbr"
OUR_BBRS = (
    BBR,
    "qbkit:further-bbr",
    "qbkit:interrupted-bbr",
    "qbkit:limited-bbr",
    "qbkit:unseen-bbr",
    "qbkit:fourth-bbr",
    "qbkit:sixth-bbr",
)
CUBIC, RENO = "qbkit:changed-cubic", "qbkit:changed-reno"


DEEP = LINK.model_copy(update={"buffer_bdp": 6.0})
"""At 1 BDP, HyStart of our CUBIC and of neqo's changes no byte: the queue overflows first."""
PAUSED = "app=onoff on_s=6 off_s=2"
REQUESTS = "app=requests kb=30 think_s=0.4"
"""Half of the path's BDP at a time: each delivery sample is limited by the application."""
TWICE = Outages(times=((15.0, 2.0), (35.0, 2.0)), drops=True)
OUTAGES = LINK.model_copy(update={"outages": TWICE})


CASES = [
    *of(
        "bbr",
        BBR,
        {
            "bandwidth_rounds=2": MEMORY,
            "bandwidth_rounds=40": MEMORY,
            "bandwidth_rounds=100": MEMORY,
            "bandwidth_rounds=1000000": MEMORY,
            "rounds_by_ack=true": MEMORY,
            "window_gain=1.2": ("window_gain",),
            "window_gain=1.5": ("window_gain",),
            "window_gain=3": ("window_gain",),
            "cruise_window_gain=0.5": ("cruise_part",),
            "cruise_window_gain=0.7": ("cruise_part",),
            "up_gain=1.1": UP,
            "up_gain=1.5": UP,
            "up_gain=2": UP,
            "down_gain=0.5": DOWN,
            "down_gain=0.9": DOWN,
            "cruises=2": ("probe_cycle_rtts",),
            "cruises=20": ("probe_cycle_rtts",),
            "drains_fully=true": ("left_in_flight_bdp",),
            "startup_gain=2": STARTUP_GAIN,
            "startup_gain=1.5": STARTUP_GAIN,
            "startup_rounds=1": ("startup_hold_rtts",),
            "startup_rounds=12": ("startup_hold_rtts",),
            "drain_gain=0.8": ("startup_drain_gain",),
            "min_rtt_s=2": ("probe_rtt_every_s", "probe_rtt_interval_s"),
            "min_rtt_s=100000": ("probe_rtt",),
            "probe_rtt_ms=50": ("probe_rtt_duration_ms",),
            "probe_rtt_ms=600": ("probe_rtt_duration_ms",),
            "probe_rtt_bdp=0.5": ("probe_rtt_bdp",),
            "loss_beta=0.3": ("kept_after_burst",),
            "loss_beta=0.5": ("kept_after_burst",),
            "pacing=false": ("pacing",),
            "pacing_gain_percent=125": FAST,
            "pacing_gain_percent=80": SLOW,
            "ack_every_packets=16": ("packets_per_ack",),
            "initial_window_packets=40": ("initial_window_packets",),
        },
    ),
    *of("bbr", f"{BBR}?ack_every_packets=30", {"aggregation=false": ("ack_room",)}),
    *of(
        "bbr of stacks",
        "tquic:bbr",
        {
            "pacing=false": ("pacing",),
            "bbr_probe_bw_cwnd_gain=3": ("window_gain",),
            "bbr_min_rtt_window_ms=3000": ("probe_rtt_every_s", "probe_rtt_interval_s"),
            "bbr_probe_rtt_ms=600": ("probe_rtt_duration_ms",),
        },
    ),
    *of(
        "bbr of stacks",
        "s2n-quic:bbr",
        {
            "bbr_cwnd_gain_percent=400": ("window_gain",),
            "bbr_probe_up_gain_percent=200": UP,
        },
    ),
    *of(
        "bbr of stacks",
        "quiche:bbr2",
        {
            "bbr_startup_pacing_gain=1.5": STARTUP_GAIN,
            "bbr_probe_up_pacing_gain=2": UP,
            "pacing=false": ("pacing",),
        },
    ),
    *of(
        "loss-based",
        CUBIC,
        {
            "beta=0.5": ("decrease_factor",),
            "beta=0.85": ("decrease_factor",),
            "c=0.1": ("cubic_c", "growth", "increase_packets_per_rtt"),
            "c=2": ("cubic_c",),
            "k_percent=1": ("back_at_loss_part",),
            "alpha=2": ("increase_packets_per_rtt", "growth"),
            "initial_window_packets=32": ("initial_window_packets",),
            "pacing=false": ("pacing",),
            "revert_every=1": ("reverted_reductions_percent", *NEVER),
            "revert_every=2": ("reverted_reductions_percent",),
            "reductions=2": ("decrease_factor",),
            "every_loss=true": ("decrease_factor",),
            "most_packets=30": CAP,
            "start_gain=0.5": ("start_growth",),
            "emulated_flows=2": ("decrease_factor",),
            "ack_every_packets=10": ("packets_per_ack",),
        },
    ),
    *of(
        "loss-based",
        RENO,
        {
            "beta=0.7": ("decrease_factor",),
            "increase=0.5": ("increase_packets_per_rtt",),
            "increase=2": ("increase_packets_per_rtt",),
            "increase=10": STEEP,
            "reductions=2": ("decrease_factor",),
            "least_packets=60": ("decrease_factor",),
            "pacing=false": ("pacing",),
            "initial_window_packets=32": ("initial_window_packets",),
        },
    ),
    *of(
        "loss-based of stacks",
        "tcp:cubic",
        {"hystart=false": ("slow_start_exit",), "receive_window_kb=40": CAP},
    ),
    *of(
        "loss-based of stacks",
        "tcp:reno",
        {
            "pacing=true": ("pacing",),
            "initial_window_packets=40": ("initial_window_packets",),
            "read_mbps=4&receive_window_kb=200": CAP,
        },
    ),
    *of("loss-based of stacks", "quinn:newreno", {"ack_every_packets=10": ("packets_per_ack",)}),
    *of(
        "loss-based of stacks",
        "quinn:cubic",
        {"initial_window_packets=40": ("initial_window_packets",), "receive_window_kb=40": CAP},
    ),
    *of(
        "loss-based of stacks",
        "s2n-quic:cubic",
        {
            "pacing=false": ("pacing",),
            "initial_window_packets=40": ("initial_window_packets",),
        },
    ),
    *of("loss-based of stacks", "s2n-quic:cubic", {"hystart=false": EXIT}, DEEP),
    *of("loss-based of stacks", "msquic:cubic", {"pacing=false": ("pacing",)}),
    *of(
        "loss-based of stacks",
        "ngtcp2:reno",
        {"pmtud=false": ("packet_bytes",), "ack_every_packets=16": ("packets_per_ack",)},
    ),
    *of(
        "bbr, later",
        BBR,
        {
            "pacing_gain_percent=90": SLOW,
            "pacing_gain_percent=115": FAST,
            "bandwidth_rounds=5": MEMORY,
            "bandwidth_rounds=30": MEMORY,
            "startup_gain=4": STARTUP_GAIN,
            "startup_gain=1.7": STARTUP_GAIN,
            "startup_rounds=6": ("startup_hold_rtts",),
            "drain_gain=0.6": ("startup_drain_gain",),
            "up_gain=1.35": UP,
            "down_gain=0.25": DOWN,
            "cruises=12": ("probe_cycle_rtts",),
            "window_gain=1": ("window_gain",),
            "window_gain=2.5": ("window_gain",),
            "cruise_window_gain=0.75": ("cruise_part",),
            "min_rtt_s=5": ("probe_rtt_every_s", "probe_rtt_interval_s"),
            "probe_rtt_ms=1000": ("probe_rtt_duration_ms",),
            "loss_beta=0.7": ("kept_after_burst",),
        },
    ),
    Case("bbr, later", BBR, f"{BBR}?probe_rtt_bdp=0.5", ("probe_rtt_bdp",)),
    *of(
        "bbr, later",
        "qbkit:further-bbr",
        {
            "timer_ms=8": BATCHES,
            "timer_ms=20": BATCHES,
            "quantum_packets=10": BATCHES,
            "quantum_packets=24": BATCHES,
            "round_ms=20": MEMORY,
            "round_ms=150": MEMORY,
            "headroom=0.85": ("cruise_part",),
            "headroom=0.6": ("cruise_part",),
            "counts_limited=true": ("app_limited_samples",),
        },
    ),
    *of(
        "bbr, one factor",
        BBR,
        {
            **{f"pacing_gain_percent={percent}": SLOW for percent in (70, 82, 85, 87)},
            **{f"pacing_gain_percent={percent}": FAST for percent in (103, 110, 117, 140)},
        },
    ),
    *of(
        "bbr, one factor",
        "qbkit:unseen-bbr",
        {
            **{f"rate_percent={percent}": SLOW for percent in (70, 75, 85, 87, 90, 95)},
            **{f"rate_percent={percent}": FAST for percent in (103, 105, 110, 115, 117, 128)},
            **{f"rate_percent={percent}": FAST for percent in (130, 140)},
        },
        FASTER_LINK,
    ),
    *of(
        "loss-based, later",
        CUBIC,
        {
            "beta=0.6": ("decrease_factor",),
            "c=1": ("cubic_c",),
            "k_percent=30": ("back_at_loss_part",),
            "alpha=3": (*STEEP, "growth"),
            "most_packets=50": CAP,
            "start_gain=0.25": ("start_growth",),
            "revert_every=3": ("reverted_reductions_percent",),
            "initial_window_packets=64": ("initial_window_packets",),
            "ack_every_packets=25": ("packets_per_ack",),
        },
    ),
    *of(
        "loss-based, later",
        RENO,
        {
            "beta=0.35": ("decrease_factor",),
            "increase=4": STEEP,
            "least_packets=40": ("decrease_factor",),
        },
    ),
    *of(
        "loss-based, later",
        "qbkit:further-reno",
        {
            "timer_ms=12": BATCHES,
            "quantum_packets=16": BATCHES,
            "collapses=true": ("decrease_factor",),
            "recovery_s=5": NEVER,
        },
    ),
    *of("loss-based, later", "qbkit:further-cubic", {"timer_ms=25": BATCHES}),
    *of(
        "stacks, later",
        "tcp:cubic",
        {
            "receive_window_kb=55": CAP,
            "read_mbps=7&receive_window_kb=64": CAP,
            "receiver=withholds every_ms=30": RECEIVERS,
        },
    ),
    *of("stacks, later", "tcp:reno", {"receiver=withholds every_ms=100": RECEIVERS}),
    *of("stacks, later", "quinn:cubic", {"read_mbps=3&receive_window_kb=100": CAP}),
    *of("stacks, later", "s2n-quic:cubic", {"max_ack_delay_ms=100": RECEIVERS}),
    *of(
        "stacks, later",
        "tquic:bbr",
        {
            "pacing_granularity_ms=20": BATCHES,
            "bbr_probe_rtt_cwnd_gain=0.25": ("probe_rtt_bdp",),
        },
    ),
    *of("stacks, later", "quiche:bbr2", {"bbr_probe_down_pacing_gain=0.5": DOWN}),
    *of(
        "stacks, later",
        "lsquic:cubic",
        {"clock_granularity_us=20000": BATCHES, "pmtud=false": ("packet_bytes",)},
    ),
    *of("loss-based, later", CUBIC, {"hystart=false": EXIT}, DEEP),
    *of("stacks, later", "neqo:cubic", {"hystart=true": EXIT}, DEEP),
    *(
        case
        for name, part in (("cubic", 0.4), ("reno", 0.4), ("bbr", 0.2))
        for case in of(
            "interrupted",
            f"qbkit:interrupted-{name}?{PAUSED}",
            {"restart_part=0.1": AFTER_PAUSE, f"restart_part={part}": AFTER_PAUSE},
        )
    ),
    *of(
        "interrupted",
        f"qbkit:limited-bbr?{REQUESTS}",
        {"counts_limited=true": ("rate_after_pause",)},
    ),
    *(  # of BBR it changes nothing that it sends: recovery allows one packet per ACK at first
        case
        for name in ("cubic", "reno")
        for case in of(
            "interrupted",
            f"qbkit:interrupted-{name}",
            {"collapses=false": AFTER_OUTAGE},
            OUTAGES,
        )
    ),
    Case("released", "tquic:bbr3", "tcp:bbr", ("cruise_part",), RELEASED[1]),
    Case("released", "msquic:bbr", "tcp:bbr", ("pacing",), RELEASED[1]),
    Case("released", "quinn:bbr", "tcp:bbr", ("bandwidth_filter",), RELEASED[3]),
    Case("released", "picoquic:bbr1", "tcp:bbr", ("left_in_flight_bdp",), RELEASED[3]),
    Case("released", "lsquic:bbr", "tcp:bbr", ("ack_room",), RELEASED[3]),
    Case("released", "ngtcp2:cubic", "tcp:cubic", ("back_at_loss_part",), RELEASED[3]),
    Case(
        "released", "nginx-1.26:reno", "tcp:reno", ("steep_increase_packets_per_rtt",), RELEASED[1]
    ),
    Case("released", "aioquic:reno", "tcp:reno", ("receiver_wait_ms",), RELEASED[1]),
    *(
        Case("unchanged", name, name)
        for name in (
            "tcp:bbr",
            BBR,
            "tquic:bbr",
            "s2n-quic:bbr",
            "quiche:bbr2",
            CUBIC,
            RENO,
            "tcp:cubic",
            "tcp:reno",
            "quinn:newreno",
            "quinn:cubic",
            "s2n-quic:cubic",
            "msquic:cubic",
            "ngtcp2:reno",
            "lsquic:cubic",
            "neqo:cubic",
        )
    ),
    *(
        Case("unchanged", name, name, (), link)
        for name, link in (
            (f"qbkit:interrupted-cubic?{PAUSED}", LINK),
            ("qbkit:interrupted-cubic", OUTAGES),
            (f"qbkit:limited-bbr?{REQUESTS}", LINK),
            (f"tcp:cubic?{PAUSED}", LINK),
            ("tcp:cubic", OUTAGES),
            (f"quinn:cubic?{PAUSED}", LINK),
            ("quinn:cubic", OUTAGES),
            ("s2n-quic:cubic", DEEP),
            (CUBIC, DEEP),
            ("tcp:cubic", DEEP),
        )
    ),
    *(
        Case("unchanged", name, name, (), RELEASED[bdp])
        for name, bdp in (
            ("tcp:bbr", 1),
            ("tcp:bbr", 3),
            ("tcp:cubic", 1),
            ("tcp:cubic", 3),
            ("tcp:reno", 1),
            ("tcp:reno", 3),
        )
    ),
]
