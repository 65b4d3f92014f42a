"""The rate of a link at every time: its capacity or constant rate, with its outages."""

from __future__ import annotations

import bisect
import itertools
import math
from dataclasses import dataclass

from qbkit.spec.bottleneck import Bottleneck
from qbkit.spec.over_time import OPPORTUNITY_BYTES


@dataclass(frozen=True)
class Part:
    """A part of a schedule: from when on, how fast, and whether what waits is dropped."""

    start_s: float
    mbps: float
    drops: bool = False


def parts(link: Bottleneck, until_s: float) -> list[Part]:
    """The parts that begin before ``until_s``, in order of time; the last one holds.

    The link must have no opportunities (`opportunities_until`).
    """
    found = _of_capacity(link, until_s)
    if link.outages:
        for start_s, length_s in link.outages.times:
            found = _with_outage(found, start_s, start_s + length_s, link.outages.drops)
    return [part for part in found if part.start_s < until_s]


def _of_capacity(link: Bottleneck, until_s: float) -> list[Part]:
    capacity = link.capacity
    if capacity is None:
        return [Part(0.0, link.rate_mbps)]
    found, length_s = [], capacity.length_s
    rounds = math.ceil(until_s / length_s) if capacity.at_end == "repeat" else 1
    for number in range(rounds):
        first_s = number * length_s if number else 0.0
        found += [Part(first_s + at_s, mbps) for at_s, mbps in capacity.at_times()]
    return [*found, Part(length_s, 0.0, drops=True)] if capacity.at_end == "cut" else found


def _with_outage(found: list[Part], start_s: float, end_s: float, drops: bool) -> list[Part]:
    """The parts with an outage in place of what was between its start and its end."""
    goes_on = found[bisect.bisect_right(found, end_s, key=lambda part: part.start_s) - 1]
    return [
        *(part for part in found if part.start_s < start_s),
        Part(start_s, 0.0, drops),
        Part(end_s, goes_on.mbps, goes_on.drops),
        *(part for part in found if part.start_s > end_s),
    ]


def opportunities_until(link: Bottleneck, until_s: float) -> list[int]:
    """The ms before ``until_s`` at which a frame may leave a link of mahimahi's kind."""
    assert link.capacity is not None
    once = link.capacity.opportunities_ms
    rounds = math.ceil(until_s * 1e3 / once[-1])
    found = (number * once[-1] + ms for number in range(rounds) for ms in once)
    return list(itertools.takewhile(lambda ms: ms < until_s * 1e3, found))


def mean_mbps(link: Bottleneck, edges_s: list[float]) -> list[float]:
    """Mean capacity in Mbit/s between each two neighbouring times, given in order."""
    carried = carried_bits(link, edges_s)
    return [
        (after - before) / 1e6 / (to_s - from_s)
        for (before, after), (from_s, to_s) in zip(
            itertools.pairwise(carried), itertools.pairwise(edges_s), strict=True
        )
    ]


def carried_bits(link: Bottleneck, times_s: list[float]) -> list[float]:
    """Bits of Ethernet frames that the link can have carried by each time, given in order."""
    if link.capacity is not None and link.capacity.opportunities_ms:
        found_ms = opportunities_until(link, times_s[-1] + 1e-3)
        return [
            bisect.bisect_right(found_ms, time_s * 1e3) * OPPORTUNITY_BYTES * 8.0
            for time_s in times_s
        ]
    found = parts(link, max(times_s[-1], 1e-9))
    starts_s = [part.start_s for part in found]
    lasted = (later - earlier for earlier, later in itertools.pairwise(starts_s))
    by_start = [
        0.0,
        *itertools.accumulate(p.mbps * 1e6 * s for p, s in zip(found[:-1], lasted, strict=True)),
    ]
    bits = []
    for time_s in times_s:
        at = max(bisect.bisect_right(starts_s, time_s) - 1, 0)
        bits.append(by_start[at] + found[at].mbps * 1e6 * (time_s - starts_s[at]))
    return bits


def time_to_carry_s(link: Bottleneck, from_s: float, size_bytes: float, most_s: float) -> float:
    """How long the link takes for some bytes from a time on; ``most_s`` if it takes longer."""
    wait_s = 1.0
    while wait_s < most_s:
        before, after = carried_bits(link, [from_s, from_s + wait_s])
        if after - before >= size_bytes * 8:
            return wait_s
        wait_s *= 2
    return most_s
