"""From an experiment to the plan that the guest agent carries out: pure, no I/O.

The plan is plain JSON: programs, addresses, and the ``tc`` lines of every queue. It names only
paths in the guest, so it is the same on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from qbkit.spec import FRAME_BYTES, Bottleneck, Experiment, Flow
from qbkit.stacks import Stack
from qbkit.stacks.base import LEAST_WINDOW_BYTES, WINDOW, ServingStack, Transfer
from qbkit.testbed import memory

FIRST_PORT = 4001
"""Flow i (from 0) uses this port plus i on its server's side."""
SENDER_IP, RECEIVER_IP = "10.1.{}.1", "10.2.{}.1"
"""Addresses of a flow's hosts, by its index."""
RUN_FOLDER = "/run/qb/run"
MOST_REPORTS, LEAST_REPORT_S = 50, 0.1
NETEM_LIMIT_PACKETS = 1_000_000
"""The delay lines of the hosts never drop."""
FRAME_MEMORY_BYTES = 2304
"""Memory (``truesize``) that the kernel holds for a frame of 1514 bytes; cake limits memory."""
SPARE_DRAIN_S, MOST_DRAIN_S = 10.0, 10.0
"""Extra time for the queue to run empty, and the maximum time for that in real time."""
LEAST_TCP_BUFFER_BYTES, MOST_TCP_BUFFER_BYTES = 64 << 20, 2**31 - 1
"""Buffer of a TCP socket each way; the kernel's maximum is the second."""


@dataclass(frozen=True)
class Plan:
    """What the agent reads (``data``), and the host folder of each guest path (``mounts``)."""

    data: dict[str, Any]
    mounts: dict[str, str]
    guest_mb: int = memory.GUEST_MB
    """Memory of the guest."""


def make_plan(experiment: Experiment, stacks: list[Stack], engine: str, capture: str) -> Plan:
    """The plan of an experiment whose i-th flow is driven by ``stacks[i]``.

    ``capture`` is the guest's path of the capture program.
    """
    mounts: dict[str, str] = {}
    for stack in stacks:
        mounts.update({guest: str(host) for guest, host in stack.mounts().items()})
    data = plan_data(experiment, stacks, engine, capture)
    return Plan(data, mounts, memory.guest_mb(experiment))


def plan_data(
    experiment: Experiment, stacks: list[Stack], engine: str, capture: str
) -> dict[str, Any]:
    """The plan's data: the part that the spec determines."""
    return {
        "engine": engine,
        "topology": experiment.topology,
        "duration_s": experiment.duration_s,
        "report_every_s": report_every_s(experiment.duration_s),
        "capture": capture,
        "tcp_buffer_bytes": tcp_buffer_bytes(experiment),
        "tcp_memory_bytes": max(2**30, 8 * experiment.most_path_bytes),
        "bottleneck_tc": bottleneck_lines(experiment.bottleneck, engine),
        "loss_netem": loss_netem(experiment.bottleneck),
        # What leaves after the last router has also passed other queues, or random loss.
        "capture_queues": experiment.bottleneck.mean_loss_percent > 0
        or experiment.topology != "dumbbell",
        **_drain(experiment, engine),
        "flows": [
            _flow(experiment, index, flow, stack)
            for index, (flow, stack) in enumerate(zip(experiment.flows, stacks, strict=True))
        ],
    }


def report_every_s(duration_s: float) -> float:
    """Virtual seconds between two reports of a run's progress, 50 of them in a run of 5 s or more.

    A report costs as much as a few dozen packets.
    """
    return max(duration_s / MOST_REPORTS, LEAST_REPORT_S)


def window_bytes(experiment: Experiment, index: int, stack: Stack) -> int:
    """Receive window of a flow: a power of two that never limits it, as far as the stack can.

    That is twice what path and queues hold, because slow start doubles the bytes in flight once
    more before it learns that a queue was full.
    """
    wanted = 2 ** math.ceil(math.log2(2 * experiment.path_bytes(index)))
    return min(max(wanted, LEAST_WINDOW_BYTES), stack.most_window_bytes)


def tcp_buffer_bytes(experiment: Experiment) -> int:
    """Buffer of a TCP socket each way: the kernel counts packets with their descriptors, so a full
    packet takes about twice its bytes."""
    wanted = 2 ** math.ceil(math.log2(4 * experiment.most_path_bytes))
    return min(max(wanted, LEAST_TCP_BUFFER_BYTES), MOST_TCP_BUFFER_BYTES)


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
    shaper = f"tbf rate {rate_bps}bit burst {burst} limit {max(link.queue_bytes, burst)}"
    return [
        f"qdisc add dev DEV root handle 1: {shaper}",
        f"qdisc add dev DEV parent 1:1 handle 10: {queue(link)}",
    ]


def _drain(experiment: Experiment, engine: str) -> dict[str, float]:
    """How the queues run empty after the flows: when arrivals stop, how fast, and for how long."""
    link = experiment.bottleneck
    rate_bytes_per_s = link.rate_mbps * 1e6 / 8
    queues = 1 if experiment.topology == "dumbbell" else 2
    # Twice, because tbf and the queue's own accounting hold somewhat more than the buffer.
    limit_s = 2 * queues * link.queue_bytes / rate_bytes_per_s + SPARE_DRAIN_S
    extra_rtt_ms = max(flow.extra_rtt_ms for flow in experiment.flows)
    return {
        "settle_s": (link.rtt_ms + extra_rtt_ms + 2 * experiment.sender_jitter_ms) / 1e3,
        "rate_bytes_per_s": rate_bytes_per_s,
        "drain_limit_s": limit_s if engine == "virtual" else min(limit_s, MOST_DRAIN_S),
    }


def queue(link: Bottleneck) -> str:
    """The queue discipline in ``tc``'s syntax, with its buffer in the unit that it counts in."""
    packets, size = link.queue_packets, link.queue_bytes
    words = {
        "fifo": f"pfifo limit {packets}" if link.buffer_packets else f"bfifo limit {size}",
        "fq": f"fq limit {packets} flow_limit {packets}",
        "fq_codel": f"fq_codel limit {packets} memory_limit {32 * 2**20}",
        "codel": f"codel limit {packets}",
        "cake": f"cake memlimit {math.ceil(size * FRAME_MEMORY_BYTES / FRAME_BYTES)}",
        "pie": f"pie limit {packets}",
        "red": _red(link),
        "sfq": f"sfq limit {packets}",
    }[link.qdisc]
    return " ".join([words, *_options(link)])


def _red(link: Bottleneck) -> str:
    """RED's words; its thresholds default to a quarter and three quarters of the buffer."""
    given, size = link.qdisc_options, link.queue_bytes
    words = [f"red limit {size} avpkt 1000 bandwidth {round(link.rate_mbps * 1e6)}bit"]
    low, high = int(given.get("min", size // 4)), int(given.get("max", size * 3 // 4))
    if "min" not in given:
        words.append(f"min {low}")
    if "max" not in given:
        words.append(f"max {high}")
    if "burst" not in given:
        # tc(8) red: the recommended burst is (2*min + max) / (3*avpkt)
        words.append(f"burst {(2 * low + high) // 3000 + 1}")
    return " ".join(words)


def _options(link: Bottleneck) -> list[str]:
    """``qdisc_options`` as words; True gives a flag, False omits it."""
    return [
        name if value is True else f"{name} {value}"
        for name, value in sorted(link.qdisc_options.items())
        if value is not False
    ]


def loss_netem(link: Bottleneck) -> dict[str, str]:
    """netem words of the loss on routers' ports, by the kind of host behind them: d(estination) for
    receivers, s(ender) for senders. Kinds without loss are left out.

    Each port has its own chain of random numbers, which the kernel seeds from its random pool, and
    so from the seed of the experiment.
    """
    model = link.loss_model
    words = f"loss random {link.loss_percent}%" if model == "random" else model.netem
    meet = {"d": link.loses_data, "s": link.loses_acks}
    return {kind: f"{words} limit {NETEM_LIMIT_PACKETS}" for kind, loses in meet.items() if loses}


def delay_netem(delay_ms: float, jitter_ms: float) -> str:
    """netem words of a host's access link: constant delay, with jitter that keeps the order.

    netem reorders packets whose delays cross, unless a rate is set: then every packet is due after
    its predecessor. 100 Gbit/s is such a rate, and high enough not to limit anything.
    """
    words = [f"delay {delay_ms * 1000:.3f}us"]
    if jitter_ms:
        words.append(f"{jitter_ms * 1000:.3f}us rate 100gbit")
    return " ".join([*words, f"limit {NETEM_LIMIT_PACKETS}"])


def _flow(experiment: Experiment, index: int, flow: Flow, stack: Stack) -> dict[str, Any]:
    one_way_ms = (experiment.bottleneck.rtt_ms + flow.extra_rtt_ms) / 2
    port = FIRST_PORT + index
    out = f"{RUN_FOLDER}/flows/{index}"
    start_s = experiment.flow_starts_s[index]
    stop_s = flow.stop_s if flow.stop_s is not None else experiment.duration_s
    duration_s = None if flow.bytes is not None else stop_s - start_s
    offered = window_bytes(experiment, index, stack)
    return {
        "index": index,
        "name": flow.name,
        "direction": flow.direction,
        "start_s": start_s,
        "stop_s": flow.stop_s,
        "bytes": flow.bytes,
        # A signal stops a flow of a number of bytes that also has a stop time.
        "signalled": flow.bytes is not None and flow.stop_s is not None,
        "sender_host": f"s{index}",
        "receiver_host": f"d{index}",
        "sender_ip": SENDER_IP.format(index),
        "receiver_ip": RECEIVER_IP.format(index),
        "port": port,
        "sender_netem": delay_netem(one_way_ms, experiment.sender_jitter_ms),
        "receiver_netem": delay_netem(one_way_ms, 0.0),
        **({"foreign": True} if stack.foreign else {}),
        **_programs(stack, flow, f"10.{{side}}.{index}.1:{port}", out, duration_s),
        "window_bytes": offered,
        "env": stack.env() | ({WINDOW: str(offered)} if offered > LEAST_WINDOW_BYTES else {}),
    }


def _programs(
    stack: Stack, flow: Flow, address: str, out: str, duration_s: float | None
) -> dict[str, Any]:
    """The commands of both ends, and which of them listens before the flow starts."""
    at = address.format(side=1 if isinstance(stack, ServingStack) else 2)
    transfer = Transfer(
        at, flow.controller, out, duration_s, flow.bytes, flow.options, source=flow.source
    )
    if isinstance(stack, ServingStack):
        return {
            "listens": "sender",
            "starts": "receiver",
            "sender_argv": stack.serve_argv(transfer),
            "receiver_argv": stack.fetch_argv(transfer),
        }
    receiver_options = stack.receiver_options(flow.controller, flow.options)
    return {
        "listens": "receiver",
        "starts": "sender",
        "sender_argv": stack.send_argv(transfer),
        "receiver_argv": stack.recv_argv(address=at, out=out, options=receiver_options),
    }
