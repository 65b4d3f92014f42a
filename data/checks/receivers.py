"""How much the receiver decides: another stack's, one that acknowledges more often, a later one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import xarray as xr
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
    longer,
    share,
)

import qbkit as qb
from qbkit import stacks
from qbkit.metrics.maps.families import kernel_counterpart
from qbkit.stacks.base import Transfer
from qbkit.studies.reproduction import Recipe

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


def receivers(seeds: int) -> Iterator[Recipe]:
    """A row for each sender: its flows to another stack's receiver, compared with those to its own.

    The flows compete with the kernel's of their family.
    """
    for name in SENDERS:
        sender, controller = name.split(":")
        both = [
            longer([f"{stack}:{controller}", kernel_counterpart(name)], 1, BESIDE_S, seeds)
            for stack in (sender, crossed(sender))
        ]
        keys = {"flow": name, "receiver": RECEIVER}
        yield Recipe(both, _compare_receivers, keys, in_this_process=True)


def _compare_receivers(own: list[xr.Dataset], other: list[xr.Dataset]) -> Row:
    acks = {
        f"packets_per_ack_{what}": ack_ratio(runs)
        for what, runs in zip(WHOSE, (own, other), strict=True)
    }
    return {"own_share": share(own)["share"], **compared(other, own), **acks}


def acks(seeds: int) -> Iterator[Recipe]:
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
    own = longer([FEW_ACKS, f"tcp:{controller}"], 1, BESIDE_S, seeds)
    for receiver, flow in flows.items():
        alone, both = (
            longer([flow, *beside], 1, BESIDE_S, seeds) for beside in ([], [f"tcp:{controller}"])
        )
        keys = {"flow": FEW_ACKS, "receiver": receiver}
        yield Recipe([alone, both, own], _acknowledged, keys, in_this_process=True)


def _acknowledged(alone: list[xr.Dataset], both: list[xr.Dataset], own: list[xr.Dataset]) -> Row:
    inferred = qb.metrics.infer(alone).frame().loc["cubic_c", ["value", "low", "high", "samples"]]
    return {
        "packets_per_ack": ack_ratio(alone),
        **inferred.add_prefix("cubic_c_"),
        **share(both),
        **difference(qb.metrics.assess(both, own)),
    }


def late(seeds: int) -> Iterator[Recipe]:
    """A row for each delay of the receiver: picoquic's CUBIC compared with that of our driver."""
    flow, reference = "picoquic:cubic", "tcp:cubic"
    ours = longer([flow, reference], 1, SHORTER_S, seeds)
    for late_us in LATE_US:
        stack = LateReceiver(late_us)
        stack.build(print)
        stacks.register(stack)
        later = longer([f"{stack.name}:cubic", reference], 1, SHORTER_S, seeds)
        keys = {"flow": flow, "late_us": late_us}
        yield Recipe([ours, later], _compare_delays, keys, in_this_process=True)


def _compare_delays(ours: list[xr.Dataset], later: list[xr.Dataset]) -> Row:
    found = qb.metrics.assess(later, ours)
    return {
        **share(ours, "driver_"),
        **share(later),
        **difference(found),
        **conformance(found),
        "driver_ack_gap_ms": ack_gap_ms(ours),
        "ack_gap_ms": ack_gap_ms(later),
    }


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
        self.reports, self.options, self.source = sender.reports, sender.options, sender.source

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
