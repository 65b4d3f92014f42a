"""What a plan says about a network that changes or is not alike both ways; pure, no I/O."""

from __future__ import annotations

import itertools
from typing import Any

from qbkit.errors import SpecError
from qbkit.spec import Bottleneck, Experiment, TimedBursts, schedule
from qbkit.spec.over_time import OPPORTUNITY_BYTES
from qbkit.testbed.links import bottleneck_lines, large_packets

DROPS = 1 << 63
"""Flag of a rate of 0 at which the queue is emptied (kernel_sources/changing/sch_capacity.c)."""
RATE, OPPORTUNITIES = 0, 1
GRACE_S, GOODBYE_RTTS = 5.0, 3
"""How long a program may take to end after its time: as everywhere, and the RTTs of a goodbye."""
MOST_WAIT_S = 3600.0
"""The drain of the queues at the end of a run waits no longer for a link that stands still."""


def of(experiment: Experiment, engine: str, drain_s: float) -> dict[str, Any]:
    """The parts of the plan that most networks do not have; ``drain_s`` is as below.

    Raises SpecError for a link whose rate changes and that has a burst, which it would not make,
    and for jitter that is longer than a delay, which would then be longer on average.
    """
    link = experiment.bottleneck
    found: dict[str, Any] = {}
    if link.changes_rate:
        _require_no_burst(link)
        found["schedule"] = _schedule(link, experiment.duration_s + drain_s)
    if experiment.has_return_queue:
        found["return_tc"] = bottleneck_lines(link.return_link or link, engine)
    goodbye_s = GOODBYE_RTTS * _longest_rtt_s(link, drain_s)
    if link.return_link or link.changes_rate or goodbye_s > GRACE_S:
        found["grace_s"] = GRACE_S + goodbye_s
    for one in (link, link.return_link):
        if one and one.dualpi2_attributes:
            found["dualpi2"] = one.dualpi2_attributes
    if link.delay:
        _require_jitter_fits(experiment, min(link.delay.values) / 2)
        found["delays_s_ms"] = link.delay.until(experiment.duration_s)[1:]
        found["jitter_ms"] = experiment.sender_jitter_ms
    if link.late_ms or link.hold_data_ms or link.hold_acks_ms:
        # What has left the last queue may still be on its way, and its ACKs after it.
        extra_rtt_ms = max(flow.extra_rtt_ms for flow in experiment.flows)
        found["late_s"] = (link.most_rtt_ms + extra_rtt_ms) / 1e3
    if link.reorder_min_bytes is not None:
        found["large"] = large_packets(link, experiment.ip_version)
    if isinstance(link.loss_model, TimedBursts):
        found["bursts"] = _bursts(experiment, link.loss_model.percent)
    if link.mtu_bytes < 1500:
        found["mtu"] = {"bytes": link.mtu_bytes, "icmp": link.mtu_icmp}
    if front := _in_front(link, experiment.ip_version):
        found["front_tc"] = front
    return found


def _require_no_burst(link: Bottleneck) -> None:
    """Raise SpecError here, not in the spec: stored experiments that have both must open."""
    if link.burst_packets > 1:
        what = "a capacity" if link.capacity else "outages"
        raise SpecError(
            f"burst_packets does nothing on a link with {what}, which sends a frame at a time; "
            "leave it out"
        )


def _require_jitter_fits(experiment: Experiment, one_way_ms: float) -> None:
    """Raise SpecError, here for the same reason: a delay is cut off at 0 and its mean grows."""
    if (experiment.jitter_ms or 0) > one_way_ms:
        raise SpecError(
            f"jitter_ms {experiment.jitter_ms:g} is more than the shortest one-way delay of the "
            f"schedule, {one_way_ms:g} ms"
        )


def drain_s(experiment: Experiment) -> float:
    """Time in s for the queues to run empty from the end of the experiment on, twice over.

    Twice, because tbf and the queue's own accounting hold somewhat more than the buffer.
    """
    link = experiment.bottleneck
    queues = 1 if experiment.topology == "dumbbell" else 2
    held_bytes = 2 * queues * link.queue_bytes
    if not link.changes_rate:
        return held_bytes / (link.rate_mbps * 1e6 / 8)
    return schedule.time_to_carry_s(link, experiment.duration_s, held_bytes, MOST_WAIT_S)


def _bursts(experiment: Experiment, percent: float) -> dict[str, Any]:
    """Which hosts' last routers lose packets, by kind, and from when on how many percent."""
    link = experiment.bottleneck
    edges = [
        (at_s, loss)
        for burst in experiment.loss_bursts_s
        for at_s, loss in zip(burst, (percent, 0.0), strict=True)
    ]
    kinds = {"receiver": link.loses_data, "sender": link.loses_acks}
    return {"before": [kind for kind, loses in kinds.items() if loses], "s_percent": edges}


def _longest_rtt_s(link: Bottleneck, drain_s: float) -> float:
    """The RTT in s while the queues of both ways are full, at the end of the experiment."""
    back = link.return_link
    waits_s = back.queue_bytes / (back.rate_mbps * 125_000) if back else 0.0
    return link.most_rtt_ms / 1e3 + drain_s / 2 + waits_s


def _schedule(link: Bottleneck, until_s: float) -> dict[str, Any]:
    """Segments of ns and bytes/s, or of ns and bytes, from t = 0 on."""
    if link.capacity is not None and link.capacity.opportunities_ms:
        gaps_ms = (b - a for a, b in itertools.pairwise((0, *link.capacity.opportunities_ms)))
        segments = [[ms * 1_000_000, OPPORTUNITY_BYTES] for ms in gaps_ms]
        return {"mode": OPPORTUNITIES, "repeat": 1, "segments": segments}
    found = schedule.parts(link, until_s)
    starts_ns = [round(part.start_s * 1e9) for part in found]
    values = [round(part.mbps * 125_000) | (DROPS if part.drops else 0) for part in found]
    lengths_ns = [b - a for a, b in itertools.pairwise([*starts_ns, starts_ns[-1] + 10**9])]
    segments = [list(pair) for pair in zip(lengths_ns, values, strict=True)]
    return {"mode": RATE, "repeat": 0, "segments": segments}


def _in_front(link: Bottleneck, ip_version: int) -> list[str]:
    """``tc`` lines of what packets meet before the queue: a policer, and a router that clears ECN.

    On the way out tc's policer counts Ethernet frames, as the link does.
    """
    lines = []
    protocol = "ip" if ip_version == 4 else "ipv6"
    every = f"filter add dev DEV egress protocol {protocol} prio {{}} matchall action"
    if link.policer_mbps is not None:
        bucket = f"rate {round(link.policer_mbps * 1e6)}bit burst {link.policer_burst_bytes}"
        police = f"police {bucket} conform-exceed drop/continue"
        lines.append(f"{every.format(1)} {police}")
    if link.bleach_ecn:
        field, then = ("ip tos", " pipe csum ip") if ip_version == 4 else ("ip6 traffic_class", "")
        lines.append(f"{every.format(2)} pedit ex munge {field} set 0 retain 0x03{then}")
    return ["qdisc add dev DEV clsact", *lines] if lines else []
