"""Command-line options for the bottleneck and the duration, shared by commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from qbkit.spec import Bottleneck, LossDirection, Qdisc
from qbkit.spec.loss import FORM

Command = TypeVar("Command", bound=Callable[..., Any])


def network_options(command: Command) -> Command:
    """The command with the options of the bottleneck and the duration."""
    for option in reversed(
        [
            click.option("--rate-mbps", type=float, default=20, show_default=True, help="Rate."),
            click.option(
                "--burst-packets",
                type=int,
                default=1,
                show_default=True,
                help="Full frames that may leave back to back after a pause.",
            ),
            click.option("--rtt-ms", type=float, default=50, show_default=True, help="Base RTT."),
            click.option("--buffer-bdp", type=float, help="Buffer in BDP. [default: 1]"),
            click.option("--buffer-bytes", type=int, help="Buffer in bytes."),
            click.option("--buffer-packets", type=int, help="Buffer in packets."),
            click.option(
                "--qdisc",
                type=click.Choice(get_args(Qdisc)),
                default="fifo",
                show_default=True,
                help="Queue discipline.",
            ),
            click.option("--loss-percent", type=float, default=0, help="Random loss."),
            click.option(
                "--loss-model",
                default="random",
                show_default=True,
                metavar="random|GEMODEL",
                help=f"Loss in bursts, in percent as tc spells it: '{FORM}'.",
            ),
            click.option(
                "--loss-direction",
                type=click.Choice(get_args(LossDirection)),
                default="to_receivers",
                show_default=True,
                help="Where packets are lost: data, ACKs, or both.",
            ),
            click.option(
                "--duration-s", type=float, default=120, show_default=True, help="Length."
            ),
        ]
    ):
        command = option(command)
    return command


def bottleneck(params: dict[str, Any]) -> Bottleneck:
    """The bottleneck that a command's parameters describe; removes these from ``params``."""
    given = {name: params.pop(name) for name in list(params) if name in Bottleneck.model_fields}
    return Bottleneck(**{name: value for name, value in given.items() if value is not None})
