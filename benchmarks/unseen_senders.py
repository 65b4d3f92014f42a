"""Changed senders that no rule of `qbkit.metrics.parameters` had seen, for ``causes.py --unseen``.

Their truths were written down before they were run.
"""

from __future__ import annotations

import unseen_controllers  # noqa: F401  registers it
import unseen_loss_based  # noqa: F401  likewise
from sender_cases import (
    AFTER_OUTAGE,
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
from qbkit.spec.over_time import Outages

BBR, CUBIC, RENO = "qbkit:unseen-bbr", "qbkit:unseen-cubic", "qbkit:unseen-reno"
LINK = Bottleneck(rate_mbps=12, rtt_ms=40, buffer_bdp=2)
STACKS = Bottleneck(rate_mbps=20, rtt_ms=30, buffer_bdp=2)
DEEP = LINK.model_copy(update={"buffer_bdp": 4.0})
DEEP_STACKS = STACKS.model_copy(update={"buffer_bdp": 4.0})
SHALLOW = STACKS.model_copy(update={"buffer_bdp": 1.0})
OUTAGES = LINK.model_copy(update={"outages": Outages(times=((20.0, 1.5), (40.0, 1.5)), drops=True)})
DRAIN = ("left_in_flight_bdp", "startup_drain_gain", *DOWN)
EARLY = ("startup_hold_rtts", "slow_start_exit", "startup_reach_rtts", *MEMORY)

UNSEEN = [
    *of(
        "gains",
        BBR,
        {
            "startup_gain=2.2": STARTUP_GAIN,
            "up_gain=1.6": UP,
            "down_gain=0.45": DOWN,
            "window_gain=1.3": ("window_gain",),
            "window_gain=4": ("window_gain",),
        },
        LINK,
    ),
    *of(
        "startup and drain",
        BBR,
        {
            "startup_rounds=9": ("startup_hold_rtts",),
            "drain_gain=0.7": ("startup_drain_gain",),
            "drains_to_bdp=1.5": DRAIN,
        },
        LINK,
    ),
    *of(
        "filters and rounds",
        BBR,
        {
            "memory_cycles=1000": MEMORY,
            "memory_rounds=4": MEMORY,
            "acks_a_round=8": EARLY,
            "probe_s=4": ("probe_cycle_rtts",),
        },
        LINK,
    ),
    *of(
        "ProbeRTT",
        BBR,
        {
            "probe_rtt_every_s=100000": ("probe_rtt",),
            "probe_rtt_every_s=2": ("probe_rtt_every_s", "probe_rtt_interval_s"),
            "probe_rtt_bdp=0.05": ("probe_rtt_bdp",),
        },
        LINK,
    ),
    *of(
        "room and loss",
        BBR,
        {"cruise_bdp=0.7": ("cruise_part",), "burst_keeps=0.4": ("kept_after_burst",)},
        LINK,
    ),
    *of(
        "room and loss",
        f"{BBR}?ack_every_packets=24",
        {"aggregation=false": ("ack_room",)},
        LINK,
    ),
    *of(
        "pacing",
        BBR,
        {
            "paced=false": ("pacing",),
            "rate_percent=82": SLOW,
            "rate_percent=122": ("standing_queue_bdp",),
            "timer_ms=14": BATCHES,
        },
        LINK,
    ),
    *of("pacing", CUBIC, {"quantum_packets=12": BATCHES}, LINK),
    *of("pacing of stacks", "tquic:bbr", {"pacing_granularity_ms=10": BATCHES}, STACKS),
    *of("pacing of stacks", "lsquic:bbr", {"clock_granularity_us=12000": BATCHES}, STACKS),
    *of(
        "bbr of other stacks",
        "google-quiche:bbr",
        {
            "connection_options=1RTT": ("startup_hold_rtts",),
            "initial_window_packets=50": ("initial_window_packets",),
        },
        STACKS,
    ),
    *of(
        "windows and growth",
        CUBIC,
        {
            "beta=0.45": ("decrease_factor",),
            "k_part=0.1": ("back_at_loss_part", "cubic_c"),
            "friendly=false": ("increase_packets_per_rtt", "growth", "cubic_c"),
            "most_packets=45": CAP,
        },
        LINK,
    ),
    *of(
        "windows and growth",
        RENO,
        {
            "packets_per_rtt=0.3": ("increase_packets_per_rtt",),
            "undoes_below=30": ("reverted_reductions_percent", *NEVER),
            "recovery_s=15": NEVER,
        },
        LINK,
    ),
    *of("slow start", CUBIC, {"hystart=false": EXIT}, DEEP),
    *of("slow start", "tquic:cubic", {"initial_ssthresh_packets=16": EXIT}, STACKS),
    *of("slow start", "neqo:cubic", {"search=true": EXIT}, DEEP_STACKS),
    *of(
        "receivers and caps",
        "tcp:cubic",
        {
            "receive_window_kb=70": CAP,
            "read_mbps=12&receive_window_kb=300": CAP,
            "receiver=withholds every_ms=50": RECEIVERS,
        },
        STACKS,
    ),
    *of("receivers and caps", "tquic:cubic", {"ack_every_packets=20": RECEIVERS}, STACKS),
    *of("receivers and caps", "picoquic:newreno", {"ack_frequency=false": RECEIVERS}, SHALLOW),
    *of("interrupted", RENO, {"persistent=false": AFTER_OUTAGE}, OUTAGES),
    *(
        Case("unchanged, unseen", name, name, (), link)
        for name, link in (
            (BBR, LINK),
            (CUBIC, LINK),
            (RENO, LINK),
            (RENO, OUTAGES),
            ("tquic:bbr", STACKS),
            ("google-quiche:bbr", STACKS),
            ("tquic:cubic", STACKS),
            ("tcp:cubic", STACKS),
            ("picoquic:newreno", SHALLOW),
        )
    ),
]
