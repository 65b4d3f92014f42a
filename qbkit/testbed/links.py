"""The ``tc`` words of every queue and delay: pure functions of an experiment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from qbkit.spec import FRAME_BYTES, Bottleneck, Experiment, GilbertElliott
from qbkit.spec.queue_options import RED_PACKET_BYTES, red_thresholds

NETEM_LIMIT_PACKETS = 1_000_000
"""The delay lines of the hosts never drop."""
IP6_HEADER_BYTES = 40
"""IPv6 counts the bytes behind it."""
FRAME_MEMORY_BYTES = 2304
"""Memory (``truesize``) that the kernel holds for a frame of 1514 bytes; cake limits memory."""


def bottleneck_lines(link: Bottleneck, engine: str) -> list[str]:
    """``tc`` lines of the bottleneck's port (``DEV``): a token bucket, and its queue.

    The bucket holds ``burst_packets`` frames and what the link carries during a timer's delay. With
    one frame the link is a constant-rate server: a frame leaves up to that late, and the next ones
    make up for it. The delay is one microsecond in virtual time (the guest's clock has steps of 256
    ns, its timers are at least 500 ns long), and one millisecond in real time. It counts at least
    16 bytes, because tc rounds the bucket.
    """
    rate_bps = round(link.rate_mbps * 1e6)
    late_bytes = rate_bps // 8 // (1_000_000 if engine == "virtual" else 1000)
    burst = link.burst_packets * FRAME_BYTES + max(16, late_bytes)
    if link.changes_rate:
        return ["qdisc add dev DEV root handle 1: capacity", _child(link)]
    shaper = f"tbf rate {rate_bps}bit burst {burst} limit {max(link.queue_bytes, burst)}"
    return [f"qdisc add dev DEV root handle 1: {shaper}", _child(link)]


def _child(link: Bottleneck) -> str:
    return f"qdisc add dev DEV parent 1:1 handle 10: {queue(link)}"


def queue(link: Bottleneck) -> str:
    """The queue discipline in ``tc``'s syntax, with its buffer in the unit that it counts in."""
    packets, size = link.queue_packets, link.queue_bytes
    if link.qdisc == "red":
        return " ".join([_red(link), *_options(link)])
    words = {
        "fifo": f"pfifo limit {packets}" if link.buffer_packets else f"bfifo limit {size}",
        "fq": f"fq limit {packets} flow_limit {packets}",
        "fq_codel": f"fq_codel limit {packets} memory_limit {32 * 2**20}",
        "codel": f"codel limit {packets}",
        "cake": f"cake memlimit {math.ceil(size * FRAME_MEMORY_BYTES / FRAME_BYTES)}",
        "pie": f"pie limit {packets}",
        "sfq": f"sfq limit {packets}",
        "fq_pie": f"fq_pie limit {packets}",
        "dualpi2": "dualpi2",
    }[link.qdisc]
    # tc of Debian 12 does not know dualpi2; the agent sets its options (`qbkit.spec.dualpi2`).
    return " ".join([words, *(_options(link) if link.qdisc != "dualpi2" else ())])


def _red(link: Bottleneck) -> str:
    """RED's words; its thresholds default to a quarter and three quarters of the buffer."""
    given, size = link.qdisc_options, link.queue_bytes
    words = [
        f"red limit {size} avpkt {RED_PACKET_BYTES} bandwidth {round(link.rate_mbps * 1e6)}bit"
    ]
    low, high = red_thresholds(size, given)
    if "min" not in given:
        words.append(f"min {low}")
    if "max" not in given:
        words.append(f"max {high}")
    if "burst" not in given:
        # tc(8) red: the recommended burst is (2*min + max) / (3*avpkt)
        words.append(f"burst {(2 * low + high) // (3 * RED_PACKET_BYTES) + 1}")
    return " ".join(words)


def _options(link: Bottleneck) -> list[str]:
    """``qdisc_options`` as words; True gives a flag, False omits it."""
    return [
        name if value is True else f"{name} {value}"
        for name, value in sorted(link.qdisc_options.items())
        if value is not False
    ]


def edge_netem(link: Bottleneck) -> dict[str, str]:
    """netem words of what happens on routers' ports, by the kind of host behind them.

    d(estination) is for receivers, s(ender) for senders; kinds to which nothing happens are left
    out. Packets are lost, duplicated and corrupted in that order, then reordered or held. Each port
    has its own chain of random numbers, which the kernel seeds from its random pool, and so from
    the seed of the experiment. Bursts of time begin without loss (`qbkit.testbed.changes`).
    """
    data = [*_loss(link, link.loses_data), *_damage(link)]
    late = _reordering(link) if link.reorder_min_bytes is None else []
    words = {
        "d": data + late + _held(link.hold_data_ms),
        "s": _loss(link, link.loses_acks) + _held(link.hold_acks_ms),
    }
    some = {"d": link.reorder_min_bytes is not None}
    return {kind: _netem(found) for kind, found in words.items() if found or some.get(kind)}


def large_packets(link: Bottleneck, ip_version: int) -> dict[str, Any]:
    """netem words for packets to the receivers that may be late by their size, and their filters.

    A filter compares bits of the length in the IP header, so a few of them cover all lengths.
    """
    assert link.reorder_min_bytes is not None
    protocol, offset, header = ("ip", 2, 0) if ip_version == 4 else ("ipv6", 4, IP6_HEADER_BYTES)
    matches = [
        f"protocol {protocol} u32 match u16 {low:#x} {mask:#x} at {offset}"
        for low, mask in _from(max(link.reorder_min_bytes - header, 0))
    ]
    words = [*_loss(link, link.loses_data), *_damage(link), *_reordering(link)]
    return {"netem": _netem(words), "matches": matches}


def _from(least: int) -> Iterator[tuple[int, int]]:
    """(value, mask) of the ranges of 16-bit numbers that together are those from ``least`` on."""
    while least < 2**16:
        size = least & -least or 2**16
        yield least, 2**16 - size
        least += size


def _netem(words: list[str]) -> str:
    return " ".join([*words, f"limit {NETEM_LIMIT_PACKETS}"])


def _loss(link: Bottleneck, loses: bool) -> list[str]:
    model = link.loss_model
    words = f"loss random {link.loss_percent}%"
    if isinstance(model, GilbertElliott):
        words = model.netem
    return [words] if loses else []


def _damage(link: Bottleneck) -> list[str]:
    shares = {"duplicate": link.duplicate_percent, "corrupt": link.corrupt_percent}
    return [f"{word} {percent}%" for word, percent in shares.items() if percent]


def _reordering(link: Bottleneck) -> list[str]:
    """netem delays all packets but those that it "reorders": these go at once."""
    if not link.reorder_percent:
        return []
    return [f"delay {link.late_ms * 1000:.3f}us reorder {100 - link.reorder_percent}%"]


def _held(every_ms: float) -> list[str]:
    return [f"slot {every_ms * 1000:.3f}us {every_ms * 1000:.3f}us"] if every_ms else []


def delay_netem(experiment: Experiment, one_way_ms: float, *, jitters: bool) -> str:
    """netem words of a host's access link: its delay, and a sender's jitter.

    netem reorders packets whose delays cross, unless a rate is set: then every packet is due after
    its predecessor. 100 Gbit/s is such a rate, and high enough not to limit anything.
    """
    jitter_ms = experiment.sender_jitter_ms if jitters else 0.0
    words = [f"delay {one_way_ms * 1000:.3f}us"]
    if jitter_ms:
        words.append(f"{jitter_ms * 1000:.3f}us")
        if experiment.jitter_shape != "uniform":
            words.append(f"distribution {experiment.jitter_shape}")
    if (jitter_ms or experiment.bottleneck.delay) and not experiment.jitter_reorders:
        words.append("rate 100gbit")
    return " ".join([*words, f"limit {NETEM_LIMIT_PACKETS}"])
