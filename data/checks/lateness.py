"""How late three stacks react on the machine's clock, and what lateness does to their shares."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr
from runs import SHORTER_S, Row, beside, lost_percent, share

import qbkit as qb
from qbkit.execution.many import run_every
from qbkit.metrics.maps.families import kernel_counterpart

RTT_MS = 50
ONE_WAY_S = RTT_MS / 2e3
CELLS = (("quic-go:reno", 10), ("quic-go:cubic", 20), ("aioquic:reno", 10))
"""Flow under test and rate in Mbit/s, of the cells of ``benchmarks/physical_time.py``."""
ENDS, WHAT = ("flow", "other"), ("ack", "response")
SETTLED_S = 3
FILLS_ROOM = ("quiche:cubic", 5)
"""A sender that fills whatever room its window has with a packet, and the rate in Mbit/s."""
SMALL_BYTES = 500
CLOCKS = ("virtual", "physical")
PAUSE_S = 4e-3
"""Packets that leave after a pause this long were released by an ACK."""
EARLY_S = 0.65e-3
"""A packet can be early by the jitter of its sender's path, 0.6 ms at 10 Mbit/s and 0.3 at 20."""


def lateness(seeds: int) -> Iterator[Row]:
    """A row for each cell and clock, the flow beside the kernel's of its family.

    The last clock is virtual time with paths as much longer as both flows are late in physical
    time. Leave the machine idle: its load changes runs in physical time.
    """
    for name, rate_mbps in CELLS:
        link = qb.Bottleneck(rate_mbps=rate_mbps, rtt_ms=RTT_MS, buffer_bdp=1)
        flows = [name, kernel_counterpart(name)]
        cell = {"flow": name, "rate_mbps": rate_mbps}
        both = beside(*flows, seeds, link, SHORTER_S)
        virtual = reactions(run_every(both))
        yield {**cell, "clock": "virtual", **virtual}
        physical = reactions(run_every(both, engine="physical"))
        yield {**cell, "clock": "physical", **physical}
        late_ms = [sum(physical[f"{end}_{what}_ms"] for what in WHAT) for end in ENDS]
        longer = [
            qb.Flow(flow, extra_rtt_ms=round(ms, 2))
            for flow, ms in zip(flows, late_ms, strict=True)
        ]
        delayed = reactions(run_every(beside(*longer, seeds, link, SHORTER_S)))
        yield {**cell, "clock": "virtual, longer paths", **delayed}


def packet_sizes(seeds: int) -> Iterator[Row]:
    """A row for each clock: the sizes of the packets of a sender that fills whatever room it has.

    In virtual time it acts on each ACK at once, on the machine's clock on all that have come.
    """
    name, rate_mbps = FILLS_ROOM
    link = qb.Bottleneck(rate_mbps=rate_mbps, rtt_ms=RTT_MS, buffer_bdp=1)
    both = beside(name, kernel_counterpart(name), seeds, link, SHORTER_S)
    for clock in CLOCKS:
        runs = run_every(both, engine=clock)
        sizes_bytes = [run.packet_size_bytes[run.packet_flow == 0] for run in runs]
        yield {
            "flow": name,
            "clock": clock,
            "packet_bytes": np.mean([sizes.mean() for sizes in sizes_bytes]),
            "small_share": np.mean([(sizes < SMALL_BYTES).mean() for sizes in sizes_bytes]),
            "goodput_mbps": np.mean([qb.metrics.summary(run).goodput_mbps[0] for run in runs]),
            **share(runs),
        }


def reactions(runs: list[xr.Dataset]) -> Row:
    """Lateness of both ends of both flows (medians over all runs), the share, and the losses.

    A path that is longer than the link's RTT counts as lateness, half of it at each end.
    """
    row: Row = {}
    for index, end in enumerate(ENDS):
        row[f"{end}_ack_ms"] = median_ms([ack_delays_s(run, index) for run in runs])
        row[f"{end}_response_ms"] = median_ms([responses_s(run, index) for run in runs])
        row[f"{end}_lost_percent"] = lost_percent(runs, index)
    return {**row, **share(runs)}


def median_ms(parts_s: list[np.ndarray]) -> float:
    """Median of all parts, in ms."""
    return float(np.median(np.concatenate(parts_s)) * 1e3)


def ack_delays_s(run: xr.Dataset, flow: int) -> np.ndarray:
    """For each ACK, the time since the last packet reached the receiver.

    Packets reach it half an RTT after they leave the queue.
    """
    arrives_s = np.sort(run.packet_departure_s[run.packet_flow == flow].dropna("packet").values)
    sent_s = run.ack_time_s[run.ack_flow == flow].values - ONE_WAY_S
    last = np.searchsorted(arrives_s, sent_s, side="right") - 1
    return (sent_s - arrives_s[last])[last >= 0]


def responses_s(run: xr.Dataset, flow: int) -> np.ndarray:
    """For packets that one ACK alone can have released, the time from that ACK to the packet.

    Both are seen at the queue, so a one-way delay is subtracted. The path's jitter has mean zero.
    """
    times_s = np.sort(run.packet_time_s[run.packet_flow == flow].values)
    after = times_s[1:][(np.diff(times_s) > PAUSE_S) & (times_s[1:] > SETTLED_S)]
    due_s = run.ack_time_s[run.ack_flow == flow].values + ONE_WAY_S
    first = np.searchsorted(due_s, after - PAUSE_S + EARLY_S)
    alone = np.searchsorted(due_s, after + EARLY_S) - first == 1
    return after[alone] - due_s[first[alone]]
