"""Runs of the checks, and the numbers that their tables share."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import qbkit as qb

Row = dict[str, Any]
"""A row of a table, by column."""

LONGER = {"rate_mbps": 20, "rtt_ms": 50}
"""Rate and delay of the links with larger queues."""
BESIDE_S, SHORTER_S = 60, 30


def beside(
    flow: str | qb.Flow,
    other: str | qb.Flow,
    seeds: int,
    link: qb.Bottleneck,
    duration_s: float,
    jitter_ms: float | None = None,
) -> list[qb.Experiment]:
    """Experiments with two flows."""
    return [
        qb.Experiment(
            bottleneck=link,
            flows=[flow, other],
            duration_s=duration_s,
            seed=seed,
            jitter_ms=jitter_ms,
        )
        for seed in range(1, seeds + 1)
    ]


def longer(
    flows: list[str], buffer_bdp: float, duration_s: float, seeds: int
) -> list[qb.Experiment]:
    """Experiments at 20 Mbit/s and 50 ms."""
    link = qb.Bottleneck(**LONGER, buffer_bdp=buffer_bdp)
    return [
        qb.Experiment(bottleneck=link, flows=flows, duration_s=duration_s, seed=seed)
        for seed in range(1, seeds + 1)
    ]


def compared(ours: list[xr.Dataset], theirs: list[xr.Dataset]) -> dict[str, float]:
    """Conformance, noise floor and share of the first flow."""
    return {**share(ours), **conformance(qb.metrics.assess(ours, theirs))}


def share(runs: list[xr.Dataset], prefix: str = "") -> dict[str, float]:
    """Share of the first flow: mean and standard deviation over the runs."""
    shares = [qb.metrics.throughput_ratio(run, 0, 1) for run in runs]
    return {
        f"{prefix}share": float(np.mean(shares)),
        f"{prefix}share_sd": float(np.std(shares, ddof=1)),
    }


def conformance(found: qb.metrics.Assessment) -> dict[str, float]:
    """Conformance with its interval, and the noise floor."""
    return {
        "conformance": found.conformance,
        "conformance_low": found.conformance_ci[0],
        "conformance_high": found.conformance_ci[1],
        "noise_floor": found.noise_floor,
    }


def difference(found: qb.metrics.Assessment) -> dict[str, float]:
    """Interval of the difference of the throughputs (Mbit/s), and p of no difference."""
    low, high = found.mean_throughput_difference_ci
    return {
        "throughput_difference_low": low,
        "throughput_difference_high": high,
        "p_value": found.p_value,
    }


def lost_percent(runs: list[xr.Dataset], flow: int) -> float:
    """Packets that one of the flows lost, in percent; mean over the runs."""
    return float(np.mean([qb.metrics.summary(run).loss_percent[flow] for run in runs]))


def back_to_back_share(runs: list[xr.Dataset]) -> float:
    """Part of the first flow's packets that follow the one before at once, mean over the runs."""
    return float(np.mean([qb.metrics.packet_trains(run).back_to_back_share for run in runs]))


def ack_ratio(runs: list[xr.Dataset]) -> float:
    """Data packets of the first flow that arrived, for each acknowledgement; mean over the runs."""
    return float(
        np.mean(
            [
                ((run.packet_flow == 0) & run.packet_departure_s.notnull()).sum()
                / (run.ack_flow == 0).sum()
                for run in runs
            ]
        )
    )


def ack_gap_ms(runs: list[xr.Dataset]) -> float:
    """Median time from one acknowledgement of the first flow to the next."""
    times_s = [run.ack_time_s[run.ack_flow == 0].values for run in runs]
    return float(np.median(np.concatenate([np.diff(times) for times in times_s])) * 1e3)
