"""How much the network decides: packet trains, jitter, bursts, segmentation, a longer RTT."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np
import xarray as xr
from runs import (
    BESIDE_S,
    LONGER,
    SHORTER_S,
    Row,
    back_to_back_share,
    beside,
    compared,
    conformance,
    difference,
    lost_percent,
    share,
)

import qbkit as qb
from qbkit import stacks
from qbkit.metrics.flows.trains import TRAIN_GAP_MS
from qbkit.metrics.maps.families import kernel_counterpart
from qbkit.studies.reproduction import Recipe

LINK = qb.Bottleneck(rate_mbps=20, rtt_ms=10, buffer_bdp=0.5)
"""A queue of eight full frames."""
SLOWER = qb.Bottleneck(rate_mbps=10, rtt_ms=50, buffer_bdp=1)
"""That of most cells of ``benchmarks/physical_time.py``."""
FASTER = qb.Bottleneck(rate_mbps=100, rtt_ms=10, buffer_bdp=0.5)
"""That of the conformance maps at 100 Mbit/s: 41 full frames."""
FASTER_GAP_MS = 0.04
"""A third of the time of a full frame there, as `TRAIN_GAP_MS` is on the link of its paper."""
ALONE_S = 20
JITTERS_MS = (0.0, 0.1, 0.3, 0.6, 1.0)
BURSTS_PACKETS = (1, 2, 4, 8, 16)
BESIDE = ("quic-go:cubic", "quinn:bbr", "s2n-quic:bbr")
DELAYED = ("tcp:reno", "quic-go:reno", "quic-go:cubic", "quinn:bbr", "ngtcp2:bbr")
EXTRA_RTTS_MS = (0.0, 0.3, 0.6, 0.9, 1.2)
"""Up to the time of one full frame at 10 Mbit/s."""
SEGMENTED = ("quinn:bbr", "quinn:cubic", "s2n-quic:bbr", "s2n-quic:cubic")
WHOLE = "segmentation=false"
"""The option with which each packet is a system call."""
TIMED = ("lsquic:cubic", "lsquic:bbr")
FINER = "clock_granularity_us=100"
"""The option with which lsquic's pacer acts each 0.1 ms; its default is 1 ms."""
PACING = (
    ("msquic:cubic", "msquic:cubic?pacing=false"),
    ("tcp:cubic?pacing=true", "tcp:cubic"),
)
"""Flows that pace, and the same without."""
PACED_LINKS = ((20, 10), (20, 50), (100, 10))
"""Rate in Mbit/s and RTT in ms of links on which msquic's CUBIC is unlike the kernel's."""
FASTER_S = 60
"""As in the conformance maps at 100 Mbit/s."""
NOT_SURVEYED = ("qbkit",)
"""Our own controllers are no claim about somebody's software."""


def trains(seeds: int) -> Iterator[Recipe]:
    """A row for each implementation, alone on the shallowest link."""
    yield from _trains(LINK, TRAIN_GAP_MS, seeds)


def trains_faster(seeds: int) -> Iterator[Recipe]:
    """A row for each implementation, alone on the link of 100 Mbit/s."""
    yield from _trains(FASTER, FASTER_GAP_MS, seeds)


def _trains(link: qb.Bottleneck, train_gap_ms: float, seeds: int) -> Iterator[Recipe]:
    """A row for each implementation: its gaps and trains, mean over seeds."""
    for name in implementations():
        alone = [
            qb.Experiment(bottleneck=link, flows=[name], duration_s=ALONE_S, seed=seed, jitter_ms=0)
            for seed in range(1, seeds + 1)
        ]
        yield Recipe([alone], partial(_train_numbers, train_gap_ms), {"flow": name})


def _train_numbers(train_gap_ms: float, runs: list[xr.Dataset]) -> Row:
    rows = []
    for run in runs:
        found = qb.metrics.packet_trains(run, train_gap_ms=train_gap_ms)
        rows.append(
            {
                "back_to_back_share": found.back_to_back_share,
                **{f"train_packets_p{q}": found.train_quantile(q / 100) for q in (50, 95)},
                **{f"gap_ms_p{q}": np.percentile(found.gap_ms, q) for q in (5, 50, 95)},
                "loss_percent": float(qb.metrics.summary(run).loss_percent[0]),
            }
        )
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def implementations() -> list[str]:
    """All controllers that the surveys take, of all stacks."""
    return sorted(
        f"{stack.name}:{controller}"
        for stack in stacks.all_stacks()
        if stack.name not in NOT_SURVEYED
        for controller in stack.surveyed()
    )


def jitter(seeds: int) -> Iterator[Recipe]:
    """A row for each implementation and jitter: how it compares with the kernel's beside it."""
    for name, jitter_ms in product(BESIDE, JITTERS_MS):
        both = beside_the_kernels(name, seeds, LINK, BESIDE_S, jitter_ms)
        yield Recipe(both, compared, {"flow": name, "jitter_ms": jitter_ms})


def bursts(seeds: int) -> Iterator[Recipe]:
    """A row for each implementation and burst: how it compares with the kernel's beside it."""
    for name, burst_packets in product(BESIDE, BURSTS_PACKETS):
        link = qb.Bottleneck(**LONGER, buffer_bdp=1, burst_packets=burst_packets)
        both = beside_the_kernels(name, seeds, link, SHORTER_S)
        yield Recipe(both, compared, {"flow": name, "burst_packets": burst_packets})


def extra_rtt(seeds: int) -> Iterator[Recipe]:
    """A row for each implementation and delay: the flow on a path that is a little longer.

    The other flow's path is not.
    """

    def measure(ours: list[xr.Dataset], theirs: list[xr.Dataset]) -> Row:
        lost = {"lost_percent": lost_percent(ours, 0), "other_lost_percent": lost_percent(ours, 1)}
        return {**compared(ours, theirs), **lost}

    for name, extra_rtt_ms in product(DELAYED, EXTRA_RTTS_MS):
        flow = f"{name}?extra_rtt_ms={extra_rtt_ms:g}"
        both = beside_the_kernels(flow, seeds, SLOWER, SHORTER_S)
        yield Recipe(both, measure, {"flow": name, "extra_rtt_ms": extra_rtt_ms})


def beside_the_kernels(
    flow: str,
    seeds: int,
    link: qb.Bottleneck,
    duration_s: float,
    jitter_ms: float | None = None,
) -> list[list[qb.Experiment]]:
    """The flow beside the kernel's of its family, and the kernel's in its place."""
    reference = kernel_counterpart(flow)
    return [
        beside(first, reference, seeds, link, duration_s, jitter_ms) for first in (flow, reference)
    ]


def segmentation(seeds: int) -> Iterator[Recipe]:
    """A row for each sender: without segmentation offload, compared with itself with it.

    The flows compete with the kernel's of their family.
    """

    def measure(on: list[xr.Dataset], off: list[xr.Dataset]) -> Row:
        return {
            **changed(on, off, "on", "off"),
            **conformance(qb.metrics.assess(off, on)),
            "on_back_to_back_share": back_to_back_share(on),
            "off_back_to_back_share": back_to_back_share(off),
        }

    link = qb.Bottleneck(**LONGER, buffer_bdp=1)
    for name in SEGMENTED:
        both = without_and_with(WHOLE, name, seeds, link, SHORTER_S)
        yield Recipe(both, measure, {"flow": name})


def granularity(seeds: int) -> Iterator[Recipe]:
    """A row for each sender and buffer: with a finer clock, compared with itself without.

    The flows compete with the kernel's of their family at 100 Mbit/s.
    """
    measure = partial(changed, before="usual", after="finer")
    for name, buffer_bdp in product(TIMED, (0.5, 1.0)):
        link = FASTER.model_copy(update={"buffer_bdp": buffer_bdp})
        both = without_and_with(FINER, name, seeds, link, FASTER_S)
        yield Recipe(both, measure, {"flow": name, "buffer_bdp": buffer_bdp})


def pacing(seeds: int) -> Iterator[Recipe]:
    """A row for each flow and link with a queue of 1 BDP: without pacing, compared with pacing.

    The flows compete with the kernel's CUBIC, which does not pace.
    """
    measure = partial(changed, before="paced", after="unpaced")
    for flows, (rate_mbps, rtt_ms) in product(PACING, PACED_LINKS):
        link = qb.Bottleneck(rate_mbps=rate_mbps, rtt_ms=rtt_ms, buffer_bdp=1)
        both = [beside(flow, "tcp:cubic", seeds, link, SHORTER_S) for flow in flows]
        keys = {"flow": flows[0].partition("?")[0], "rate_mbps": rate_mbps, "rtt_ms": rtt_ms}
        yield Recipe(both, measure, keys)


def changed(usual: list[xr.Dataset], other: list[xr.Dataset], before: str, after: str) -> Row:
    """The share before and after a change, and the interval and p of the difference."""
    return {
        **share(usual, f"{before}_"),
        **share(other, f"{after}_"),
        **difference(qb.metrics.assess(other, usual)),
    }


def without_and_with(
    option: str, name: str, seeds: int, link: qb.Bottleneck, duration_s: float
) -> list[list[qb.Experiment]]:
    """A flow beside the kernel's of its family, without and with an option."""
    return [
        beside(flow, kernel_counterpart(name), seeds, link, duration_s)
        for flow in (name, f"{name}?{option}")
    ]
