"""Which differences explain others, and what belongs together: names of parameters and of rules.

A cause has consequences, which differ as well. Names of numbers in a source are explained in
`qbkit.metrics.parameters.estimates`, those of behaviours in `rules`.
"""

from __future__ import annotations

STARTUP = (
    "start_growth",
    "pacing_gain",
    "startup_peak_bdp",
    "startup_reach_rtts",
    "startup_hold_rtts",
    "startup_drain_gain",
    "slow_start_exit",
    "slow_start_exit_packets",
)
PROBES = ("probe_up_gain", "probe_down_gain", "probe_cycle_rtts")
QUEUES = (
    "standing_queue_bdp",
    "cruise_part",
    "probes_reach_bdp",
    "left_in_flight_bdp",
    "kept_after_burst",
    "probe_rate",
    "drain_rate",
    "paced_part",
)
PROBE_RTTS = (
    "probe_rtt",
    "probe_rtt_every_s",
    "probe_rtt_bdp",
    "probe_rtt_interval_s",
    "probe_rtt_duration_ms",
)
LOSS_BASED = (
    *("decrease_factor", "reverted_reductions_percent"),
    *("increase_packets_per_rtt", "cubic_c"),
)
"""What only a controller has whose window a loss reduces."""
LOSSES = (*LOSS_BASED, "growth")
OVERFLOWS = ("reverted_reductions_percent", "rounds_of_loss")
"""What a queue looks like that slow start overflows again and again."""
MODEL = ("window_gain", "ack_room", "bandwidth_memory_rounds")
EXPLAINS: dict[str, tuple[str, ...]] = {
    "back_to_back_packets": (
        "pacing",
        *STARTUP,
        *PROBES,
        *QUEUES,
        *PROBE_RTTS,
        *LOSSES,
        "back_at_loss_part",
    ),
    "pacing": (
        *STARTUP,
        *PROBES,
        *QUEUES,
        *PROBE_RTTS,
        *MODEL,
        "bandwidth_filter",
        "back_to_back_packets",
    ),
    "bandwidth_filter": (*STARTUP, *PROBES, *QUEUES, *PROBE_RTTS, *MODEL),
    "probe_up_gain": (
        "probe_down_gain",
        "probe_cycle_rtts",
        *(name for name in QUEUES if name != "paced_part"),
        *PROBE_RTTS,
    ),
    "probe_down_gain": (
        "probe_cycle_rtts",
        *(name for name in QUEUES if name not in ("cruise_part", "paced_part")),
        *PROBE_RTTS,
    ),
    "probe_cycle_rtts": (
        "kept_after_burst",
        "probes_reach_bdp",
        "probe_rate",
        "probe_up_gain",
        "probe_down_gain",
        "standing_queue_bdp",
    ),
    "standing_queue_bdp": (*STARTUP, *PROBES, *QUEUES, *PROBE_RTTS, *MODEL),
    "probes_reach_bdp": (*STARTUP, *QUEUES, *PROBE_RTTS, *MODEL),
    "cruise_part": (*PROBES, *QUEUES, *PROBE_RTTS, *MODEL),
    "paced_part": (*STARTUP, *PROBES, *QUEUES, *PROBE_RTTS, *MODEL),
    "bandwidth_memory_rounds": (*STARTUP, *PROBES, *QUEUES, *PROBE_RTTS),
    "probe_rate": (
        "probe_up_gain",
        "standing_queue_bdp",
        "probes_reach_bdp",
        "paced_part",
        "kept_after_burst",
    ),
    "drain_rate": ("probe_down_gain", "left_in_flight_bdp"),
    "ack_room": ("window_gain",),
    "window_gain": (
        "standing_queue_bdp",
        "probes_reach_bdp",
        "left_in_flight_bdp",
        "kept_after_burst",
        "bandwidth_memory_rounds",
    ),
    "left_in_flight_bdp": ("probe_rtt_interval_s", "probe_rtt_every_s"),
    "initial_window_packets": ("startup_reach_rtts", "slow_start_exit_packets"),
    "start_growth": (*STARTUP, *OVERFLOWS),
    "startup_hold_rtts": ("startup_peak_bdp", "startup_drain_gain"),
    "startup_peak_bdp": ("startup_hold_rtts", "startup_drain_gain", "slow_start_exit"),
    "startup_reach_rtts": ("startup_hold_rtts", "startup_drain_gain"),
    "startup_drain_gain": ("startup_hold_rtts",),
    "probe_rtt": (*PROBE_RTTS, "left_in_flight_bdp"),
    "probe_rtt_every_s": ("window_gain",),
    "probe_rtt_bdp": ("probe_rtt_duration_ms",),
    "probe_rtt_duration_ms": ("left_in_flight_bdp",),
    "steep_increase_packets_per_rtt": (*LOSSES, "rounds_of_loss", "back_at_loss_part"),
    "rounds_of_loss": (*LOSSES, "back_at_loss_part"),
    "reverted_reductions_percent": (*LOSSES, "back_at_loss_part"),
    "back_at_loss_part": LOSSES,
    "kept_after_mark": ("congestion_signal",),
    "congestion_signal": (*LOSSES, "slow_start_exit", "rounds_of_loss", "back_at_loss_part"),
    "window_cap_packets": (
        *STARTUP,
        *LOSSES,
        "back_to_back_packets",
        *PROBES,
        *QUEUES,
        *PROBE_RTTS,
        *MODEL,
        "bandwidth_filter",
    ),
    "packets_per_ack": (
        "slow_start_exit_packets",
        "startup_reach_rtts",
        "startup_hold_rtts",
        "back_to_back_packets",
        "receiver_wait_ms",
        "ack_delay_ms",
    ),
    "rate_after_pause": ("kept_after_pause",),
    "decrease_factor": ("growth", "increase_packets_per_rtt"),
    "receiver_wait_ms": ("packets_per_ack", "ack_delay_ms"),
}
"""Cause → what else differs because of it. A difference that another one explains comes after all
that none does; of two that explain each other, the first here comes first."""
DIRECTIONS = {
    ("probe_up_gain", "standing_queue_bdp"): 1,
    ("probe_up_gain", "probes_reach_bdp"): 1,
    ("probe_up_gain", "probe_rate"): 1,
    ("standing_queue_bdp", "probe_up_gain"): -1,
    ("standing_queue_bdp", "probe_rate"): -1,
    ("probe_cycle_rtts", "kept_after_burst"): -1,
    ("probe_cycle_rtts", "probes_reach_bdp"): -1,
    ("probe_cycle_rtts", "probe_rate"): -1,
    ("probe_rate", "standing_queue_bdp"): 1,
    ("probe_rate", "probes_reach_bdp"): 1,
    ("probe_rate", "probe_up_gain"): 1,
    ("probe_rate", "kept_after_burst"): 1,
    ("drain_rate", "probe_down_gain"): 1,
    ("drain_rate", "left_in_flight_bdp"): 1,
    ("probe_rtt_every_s", "window_gain"): -1,
    ("probe_rtt_duration_ms", "left_in_flight_bdp"): -1,
    ("startup_hold_rtts", "startup_peak_bdp"): 1,
    ("cruise_part", "window_gain"): 1,
    ("cruise_part", "paced_part"): 1,
}
"""(Cause, what it explains) → 1 if the greater the one is, the greater is the other, and -1 if the
smaller. A difference in the other direction is not explained."""
STRONGER = {("startup_hold_rtts", "startup_drain_gain")}
"""(Cause, what it explains) where the cause must differ by more than what it explains."""
GREATER_WITH = {("probe_rtt", "left_in_flight_bdp"): "never"}
"""(Cause that is a word, what it explains) → the word with which the other is greater."""
DECISIVE = {
    **dict.fromkeys(PROBES, 0.15),
    "probe_up_gain": 0.1,
    **dict.fromkeys(PROBE_RTTS, 0.4),
    "initial_window_packets": 0.25,
    "start_growth": 0.15,
    "slow_start_exit_packets": 0.5,  # chance and other causes do less
    "pacing_gain": 0.4,
    "packets_per_ack": 0.5,
    "reverted_reductions_percent": 0.5,  # a median comes of most
}
"""Parameter → the part by which it must differ to explain others."""
RECEIVERS = ("packets_per_ack", "ack_delay_ms", "receiver_wait_ms")
"""Properties of the receiver: no sender that models the path is judged by them first."""
ACK_CLOCK = 2.0
"""An ACK lets out at most so many times the packets that it acknowledges, in slow start. More that
leave together have waited for a timer, or until there were enough."""
AT_START = ("initial_window_packets", *STARTUP)
"""What a sender does in its first second. Of one that models the path, nothing of this is named
before a receiver that differs all the time."""
OF_LOSSES = (
    "steep_increase_packets_per_rtt",
    "rounds_of_loss",
    "back_at_loss_part",
    "window_cap_packets",
)
"""Rules for a window that losses reduce; the others are for a sender that models its path, except
what both have: `OF_ALL`."""
EVIDENCE = ("kept_two_rtts",)
"""Rules that are no cause: they say whether another one is."""
AFTER = ("kept_after_pause", "kept_after_outage")
INTERRUPTED = (*AFTER, "rate_after_pause")
"""What shows only where the study's application pauses, or its path has outages."""
OF_MARKS = ("congestion_signal", "kept_after_mark")
"""What shows only where the queue of the study marks packets."""
OF_ALL = ("back_to_back_packets", "receiver_wait_ms", *OF_MARKS, *AFTER)
