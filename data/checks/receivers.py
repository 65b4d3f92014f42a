"""How much the receiver decides: another stack's, one that acknowledges more often, a later one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from late_receiver import LateReceiver
from runs import (
    BESIDE_S,
    SHORTER_S,
    Row,
    ack_gap_ms,
    ack_ratio,
    compared,
    conformance,
    difference,
    one_by_one,
    share,
)

import qbkit as qb
from qbkit import stacks
from qbkit.metrics.maps.families import kernel_counterpart
from qbkit.stacks.base import Transfer

SENDERS = (
    *("quinn:cubic", "picoquic:cubic", "s2n-quic:cubic"),
    *("picoquic:newreno", "aioquic:reno"),
)
RECEIVER = "quic-go"
FEW_ACKS, PROMPT, LATER = "s2n-quic:cubic", "max_ack_delay_ms=1", "extra_rtt_ms=0.9"
"""A CUBIC whose receiver acknowledges every tenth packet, the option to do so earlier, and that
of a path as much longer as such an ACK may wait."""
WHOSE = ("own", "other")
"""Whose receiver: the sender's, or the other stack's."""
LATE_US = (50, 100, 300)


def receivers(seeds: int) -> Iterator[Row]:
    """A row for each sender: its flows to another stack's receiver, compared with those to its own.

    The flows compete with the kernel's of their family.
    """
    for name in SENDERS:
        sender, controller = name.split(":")
        own, other = (
            one_by_one([f"{stack}:{controller}", kernel_counterpart(name)], 1, BESIDE_S, seeds)
            for stack in (sender, crossed(sender))
        )
        acks = {
            f"packets_per_ack_{what}": ack_ratio(runs)
            for what, runs in zip(WHOSE, (own, other), strict=True)
        }
        yield {
            "flow": name,
            "receiver": RECEIVER,
            "own_share": share(own)["share"],
            **compared(other, own),
            **acks,
        }


def acks(seeds: int) -> Iterator[Row]:
    """A row for each receiver: C of s2n-quic's CUBIC alone, as inferred, and its packets per ACK.

    Its own receiver, the same with an option to acknowledge earlier, and another stack's, also with
    a longer path. Beside the kernel's CUBIC, its share and the comparison with its own receiver.
    """
    sender, controller = FEW_ACKS.split(":")
    flows = {
        "own": FEW_ACKS,
        f"own, {PROMPT}": f"{FEW_ACKS}?{PROMPT}",
        RECEIVER: f"{crossed(sender)}:{controller}",
        f"{RECEIVER}, {LATER}": f"{crossed(sender)}:{controller}?{LATER}",
    }
    own = one_by_one([FEW_ACKS, f"tcp:{controller}"], 1, BESIDE_S, seeds)
    for receiver, flow in flows.items():
        runs = one_by_one([flow], 1, BESIDE_S, seeds)
        inferred = (
            qb.metrics.infer(runs).frame().loc["cubic_c", ["value", "low", "high", "samples"]]
        )
        row = {"flow": FEW_ACKS, "receiver": receiver, "packets_per_ack": ack_ratio(runs)}
        both = one_by_one([flow, f"tcp:{controller}"], 1, BESIDE_S, seeds)
        beside = {**share(both), **difference(qb.metrics.assess(both, own))}
        yield {**row, **inferred.add_prefix("cubic_c_"), **beside}


def late(seeds: int) -> Iterator[Row]:
    """A row for each delay of the receiver: picoquic's CUBIC compared with that of our driver."""
    flow, reference = "picoquic:cubic", "tcp:cubic"
    ours = one_by_one([flow, reference], 1, SHORTER_S, seeds)
    for late_us in LATE_US:
        stack = LateReceiver(late_us)
        stack.build(print)
        stacks.register(stack)
        runs = one_by_one([f"{stack.name}:cubic", reference], 1, SHORTER_S, seeds)
        gaps = {"driver_ack_gap_ms": ack_gap_ms(ours), "ack_gap_ms": ack_gap_ms(runs)}
        shares = {**share(ours, "driver_"), **share(runs)}
        found = qb.metrics.assess(runs, ours)
        compares = {**difference(found), **conformance(found)}
        yield {"flow": flow, "late_us": late_us, **shares, **compares, **gaps}


def crossed(sender: str) -> str:
    """The name of the stack that sends as this one, to the other stack's receiver."""
    stack = Crossed(stacks.get(sender), stacks.get(RECEIVER))
    stacks.register(stack)
    return stack.name


class Crossed(stacks.Stack):
    """Sends as one stack and receives as another; both speak the perf protocol."""

    def __init__(self, sender: stacks.Stack, receiver: stacks.Stack) -> None:
        self.sender = sender
        # A sender on BoringSSL needs a certificate without Ed25519.
        shown = {"certificate": sender.certificate}
        self.receiver = type("Receiver", (type(receiver),), shown)()
        self.name = f"{sender.name}-to-{receiver.name}"
        self.reports, self.options = sender.reports, sender.options

    def controllers(self) -> tuple[str, ...]:
        """The sender's."""
        return self.sender.controllers()

    def version(self) -> str:
        """Versions of both."""
        return f"{self.sender.version()}, to {self.receiver.version()}"

    def program(self) -> list[str]:
        """The sender's program."""
        return self.sender.program()

    def mounts(self) -> dict[str, Path]:
        """Folders of both."""
        return {**self.sender.mounts(), **self.receiver.mounts()}

    def env(self) -> dict[str, str]:
        """Variables of both."""
        return {**self.sender.env(), **self.receiver.env()}

    def send_argv(self, transfer: Transfer) -> list[str]:
        """The sender's command."""
        return self.sender.send_argv(transfer)

    def recv_argv(self, **words: Any) -> list[str]:
        """The receiver's command."""
        return self.receiver.recv_argv(**words)
