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
from qbkit.stacks.base import (
    APP,
    APP_OUT,
    LEAST_WINDOW_BYTES,
    READ_MBPS,
    RESUME,
    WINDOW,
    ServingStack,
    Transfer,
)
from qbkit.stacks.variants import ip6
from qbkit.stacks.variants.crafted import Crafted
from qbkit.testbed import attacks, changes, memory
from qbkit.testbed.kernel import Kind
from qbkit.testbed.links import bottleneck_lines, delay_netem, edge_netem

FIRST_PORT = 4001
"""Flow i (from 0) uses this port plus i on its server's side."""
SENDER_IP, RECEIVER_IP = "10.1.{}.1", "10.2.{}.1"
"""Addresses of a flow's hosts, by its index."""
RUN_FOLDER = "/run/qb/run"
MOST_REPORTS, LEAST_REPORT_S = 50, 0.1
SPARE_DRAIN_S, MOST_DRAIN_S = 10.0, 10.0
"""Extra time for the queue to run empty, and the maximum time for that in real time."""
LEAST_CAPTURE_BLOCKS, MOST_CAPTURE_BLOCKS, FRAMES_PER_BLOCK = 8, 64, 1024
"""Blocks of a capture's ring, and how many frames fill one (capture.c)."""
LEAST_TCP_BUFFER_BYTES, MOST_TCP_BUFFER_BYTES = 64 << 20, 2**31 - 1
"""Buffer of a TCP socket each way; the kernel's maximum is the second."""


@dataclass(frozen=True)
class Plan:
    """What the agent reads (``data``), and the host folder of each guest path (``mounts``)."""

    data: dict[str, Any]
    mounts: dict[str, str]
    guest_mb: int = memory.GUEST_MB
    """Memory of the guest."""
    kernel: Kind = Kind.CONSTANT
    """The kernel that it needs."""


def make_plan(experiment: Experiment, stacks: list[Stack], engine: str, capture: str) -> Plan:
    """The plan of an experiment whose i-th flow is driven by ``stacks[i]``.

    ``capture`` is the guest's path of the capture program.
    """
    mounts: dict[str, str] = {}
    for stack in stacks:
        mounts.update({guest: str(host) for guest, host in stack.mounts().items()})
    if experiment.attacks:
        mounts.update({guest: str(host) for guest, host in Crafted().mounts().items()})
    data = plan_data(experiment, stacks, engine, capture)
    return Plan(data, mounts, memory.guest_mb(experiment), kernel_of(experiment.bottleneck))


def kernel_of(link: Bottleneck) -> Kind:
    """The kernel for experiments with a link."""
    return Kind.CHANGING if link.changes else Kind.CONSTANT


def plan_data(
    experiment: Experiment, stacks: list[Stack], engine: str, capture: str
) -> dict[str, Any]:
    """The plan's data: the part that the spec determines."""
    netem, drain_s = edge_netem(experiment.bottleneck), changes.drain_s(experiment)
    return {
        "engine": engine,
        "topology": experiment.topology,
        **({"ip_version": 6} if experiment.ip_version == 6 else {}),
        "duration_s": experiment.duration_s,
        "report_every_s": report_every_s(experiment.duration_s),
        "capture": capture,
        "capture_blocks": capture_blocks(experiment),
        "tcp_buffer_bytes": tcp_buffer_bytes(experiment),
        "tcp_memory_bytes": max(2**30, 8 * experiment.most_path_bytes),
        "bottleneck_tc": bottleneck_lines(experiment.bottleneck, engine),
        "loss_netem": netem,
        # What leaves after the last router has also passed other queues, or random loss.
        "capture_queues": bool(netem) or experiment.topology != "dumbbell",
        **changes.of(experiment, engine, drain_s),
        **_drain(experiment, engine, drain_s),
        **attacks.of(experiment, _hosts(experiment), RUN_FOLDER),
        "flows": [
            _numbered(_flow(experiment, index, flow, stack), experiment.ip_version)
            for index, (flow, stack) in enumerate(zip(experiment.flows, stacks, strict=True))
        ],
    }


def report_every_s(duration_s: float) -> float:
    """Virtual seconds between two reports of a run's progress, 50 of them in a run of 5 s or more.

    A report costs as much as a few dozen packets.
    """
    return max(duration_s / MOST_REPORTS, LEAST_REPORT_S)


def capture_blocks(experiment: Experiment) -> int:
    """Blocks of the capture's ring: what the link carries in a second, and the largest burst.

    The guest touches each page of a ring as the run begins, which a short run feels.
    """
    link_bytes = experiment.most_data_mbps * 1e6 / 8
    frames = (link_bytes + 4 * experiment.most_path_bytes) / FRAME_BYTES
    wanted = math.ceil(2 * frames / FRAMES_PER_BLOCK)
    return min(max(wanted, LEAST_CAPTURE_BLOCKS), MOST_CAPTURE_BLOCKS)


def window_bytes(experiment: Experiment, index: int, stack: Stack) -> int:
    """Receive window of a flow: a power of two that never limits it, as far as the stack can.

    That is twice what path and queues hold, because slow start doubles the bytes in flight once
    more before it learns that a queue was full.
    """
    wanted = _ample_bytes(experiment, index)
    return min(max(wanted, LEAST_WINDOW_BYTES), stack.most_window_bytes)


def _ample_bytes(experiment: Experiment, index: int) -> int:
    """A window that never limits a flow: a power of two, twice what path and queues hold."""
    return int(2 ** math.ceil(math.log2(2 * experiment.path_bytes(index))))


def tcp_buffer_bytes(experiment: Experiment) -> int:
    """Buffer of a TCP socket each way: the kernel counts packets with their descriptors, so a full
    packet takes about twice its bytes."""
    wanted = 2 ** math.ceil(math.log2(4 * experiment.most_path_bytes))
    return min(max(wanted, LEAST_TCP_BUFFER_BYTES), MOST_TCP_BUFFER_BYTES)


def _drain(experiment: Experiment, engine: str, drain_s: float) -> dict[str, float]:
    """How the queues run empty after the flows: when arrivals stop, how fast, and for how long."""
    link = experiment.bottleneck
    limit_s = drain_s + SPARE_DRAIN_S
    extra_rtt_ms = max(flow.extra_rtt_ms for flow in experiment.flows)
    return {
        "settle_s": (link.most_rtt_ms + extra_rtt_ms + 2 * experiment.sender_jitter_ms) / 1e3,
        "rate_bytes_per_s": link.rate_mbps * 1e6 / 8,
        "drain_limit_s": limit_s if engine == "virtual" else min(limit_s, MOST_DRAIN_S),
    }


def _hosts(experiment: Experiment) -> list[dict[str, str]]:
    """The addresses of each flow's hosts."""
    both = {"sender": SENDER_IP, "receiver": RECEIVER_IP}
    flows = range(len(experiment.flows))
    return [{role: address.format(i) for role, address in both.items()} for i in flows]


def _numbered(flow: dict[str, Any], ip_version: int) -> dict[str, Any]:
    """The plan of a flow with the addresses of an IP version in place of IPv4's."""
    if ip_version == 4:
        return flow
    ends = {key: flow[key] for key in ("sender_ip", "receiver_ip")}
    ports = dict.fromkeys(ends.values(), flow["port"])
    words = {key: ip6.command(flow[key], ports) for key in ("sender_argv", "receiver_argv")}
    return flow | {key: ip6.address(four) for key, four in ends.items()} | words


def _flow(experiment: Experiment, index: int, flow: Flow, stack: Stack) -> dict[str, Any]:
    link = experiment.bottleneck
    rtt_ms = link.delay.values[0] if link.delay else link.rtt_ms
    one_way_ms = (rtt_ms + flow.extra_rtt_ms) / 2
    port = FIRST_PORT + index
    out = f"{RUN_FOLDER}/flows/{index}"
    start_s = experiment.flow_start_s(index)
    stop_s = flow.stop_s if flow.stop_s is not None else experiment.duration_s
    duration_s = None if flow.bytes is not None else stop_s - start_s
    offered = window_bytes(experiment, index, stack)
    window = _receiver_window(experiment, index)
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
        "sender_netem": delay_netem(experiment, one_way_ms, jitters=True),
        "receiver_netem": delay_netem(experiment, one_way_ms, jitters=False),
        **({"extra_rtt_ms": flow.extra_rtt_ms} if link.delay else {}),
        **({"sysctls": sysctls} if (sysctls := stack.sysctls(flow.options)) else {}),
        **_programs(stack, flow, f"10.{{side}}.{index}.1:{port}", out, duration_s),
        "window_bytes": window or offered,
        "env": stack.env()
        | ({WINDOW: str(offered)} if offered > LEAST_WINDOW_BYTES else {})
        | ({APP: flow.app.words(stop_s - start_s), APP_OUT: out} if flow.app else {})
        | ({RESUME: flow.resume.words, APP_OUT: out} if flow.resume else {}),
        **({"receiver_env": env} if (env := _receiver_env(stack, flow, window)) else {}),
    }


def _receiver_window(experiment: Experiment, index: int) -> int | None:
    """The window in bytes that a flow sets, if it does.

    A crafted receiver would let the sender send without end, so it offers no more than what never
    limits a sender that heeds losses.
    """
    flow = experiment.flows[index]
    if flow.receive_window_kb is not None:
        return round(flow.receive_window_kb * 1e3)
    crafted = flow.receiver and not flow.receiver.stack
    return _ample_bytes(experiment, index) if crafted else None


def _receiver_env(stack: Stack, flow: Flow, window: int | None) -> dict[str, str]:
    """What the receiver of a flow needs alone, and what limits it."""
    needed = stack.receiver_env()
    offered = {WINDOW: str(window)} if window else {}
    read = {READ_MBPS: f"{flow.read_mbps:g}"} if flow.read_mbps else {}
    return needed | offered | read


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
