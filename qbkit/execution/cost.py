"""What runs will cost, guessed from the bits that they send."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qbkit.spec import Experiment
from qbkit.testbed.engines import named, runs_at_once

FIXED_CPU_S = 0.5
CPU_S_PER_MBIT = {
    "tcp": 0.001,
    "s2n-quic": 0.004,
    "tquic": 0.005,
    "quic-go": 0.006,
    "quinn": 0.006,
    "msquic": 0.01,
    "ngtcp2": 0.016,
    "ngtcp2-0.12": 0.016,
    "quiche-0.7": 0.017,
    "google-quiche": 0.018,
    "aioquic": 0.03,
    "neqo": 0.03,
    "qbkit": 0.035,
    "kwik": 0.05,
    "quiche": 0.055,
    "chromium": 0.06,
}
"""Processor seconds per Mbit sent, from benchmarks/README.md, "Speed": whole runs of 20 s."""
OTHER_CPU_S_PER_MBIT = 0.02


def cpu_s(experiment: Experiment) -> float:
    """Processor seconds of a run that fills its link all the time, with equal shares."""
    mbit = experiment.most_data_mbps * experiment.duration_s / len(experiment.flows)
    costs = [CPU_S_PER_MBIT.get(f.stack, OTHER_CPU_S_PER_MBIT) for f in experiment.flows]
    return FIXED_CPU_S + mbit * sum(costs)


def announcement(
    missing: Sequence[Experiment],
    total: int,
    engine: str | None = None,
    scheduler: str | None = None,
) -> str:
    """How many runs are stored, and how long the others take on how many processors."""
    head = f"{total - len(missing)} of {total} runs are stored, the others take about"
    chosen, processors = named(engine), min(runs_at_once(engine), max(len(missing), 1))
    seconds = sum(e.duration_s if chosen.real_time else cpu_s(e) for e in missing)
    if scheduler is not None:
        return f"{head} {math.ceil(seconds / 60)} processor min"
    where = f"{processors} processor{'s' * (processors != 1)}"
    return f"{head} {math.ceil(seconds / processors / 60)} min on {where}"
