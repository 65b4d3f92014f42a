"""Command-line options for the bottleneck and the duration, shared by commands."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import click

from qbkit.errors import SpecError
from qbkit.spec import Bottleneck
from qbkit.spec.flow import option_value
from qbkit.spec.loss import FORM, TIMED_FORM
from qbkit.spec.presets import PRESETS

Command = TypeVar("Command", bound=Callable[..., Any])
TIMES = "'0:50 20:5 40:50', or a file; then hold, repeat or cut. The first value holds from 0 on"
HELP = {
    "preset": f"A kind of network, which the other options change: {', '.join(PRESETS)}; "
    "as in 'leo seed=2 mean_mbps=50'.",
    "rate_mbps": "Rate of the link.",
    "burst_packets": "Full frames that may leave back to back after a pause.",
    "rtt_ms": "Base RTT.",
    "buffer_bdp": "Buffer in BDP (rate × base RTT). [default: 1]",
    "buffer_bytes": "Buffer in bytes.",
    "buffer_packets": "Buffer in packets.",
    "qdisc": "Queue discipline.",
    "qdisc_options": "Options of the discipline, as in 'target=5ms ecn=true'.",
    "loss_percent": "Random loss.",
    "loss_model": f"Loss in bursts: of packets, in percent as tc spells it, '{FORM}'; or of time, "
    f"'{TIMED_FORM}'.",
    "loss_direction": "Where packets are lost: data, ACKs, or both.",
    "capacity": f"Rate over time in Mbit/s: {TIMES}; --rate-mbps then only sizes the buffer.",
    "delay": f"Base RTT over time in ms: {TIMES}; --rtt-ms then only sizes the buffer.",
    "outages": "When nothing passes, and for how long: '5:0.2 20:1'; with 'drop' the queue is "
    "emptied.",
    "reorder_percent": "Packets that others overtake.",
    "reorder_ms": "How late they arrive. [default: a quarter of the RTT]",
    "reorder_min_bytes": "Smallest IP packet that others overtake. [default: any]",
    "duplicate_percent": "Packets that arrive twice.",
    "corrupt_percent": "Packets with a wrong bit.",
    "hold_data_ms": "Data waits so many ms, and is released together.",
    "hold_acks_ms": "The same for ACKs.",
    "return_rate_mbps": "Rate of the way back. [default: no limit]",
    "return_buffer_packets": "Buffer of the way back.",
    "return_qdisc": "Queue discipline of the way back.",
    "return_qdisc_options": "Its options, as in 'ack-filter=true'.",
    "policer_mbps": "Rate of a policer in front of the queue.",
    "policer_burst_bytes": "Depth of its token bucket.",
    "mtu_bytes": "Largest IP packet of the link.",
    "mtu_icmp": "Whether routers report packets that are too big.",
    "bleach_ecn": "The path clears ECN.",
}
"""Field of a bottleneck → what its option says; ``preset`` stands for many fields."""


def network_options(command: Command) -> Command:
    """The command with the options of the bottleneck and the duration."""
    duration = click.option(
        "--duration-s",
        type=float,
        default=120,
        show_default=True,
        help="Length in seconds.",
    )
    for option in [duration, *(_option(name) for name in reversed(HELP))]:
        command = option(command)
    return command


def _option(name: str) -> Callable[[Command], Command]:
    """The option of a field; without a default, so that only what is given is set."""
    field = Bottleneck.model_fields.get(name)
    kind = _kind(field.annotation if field else str)
    words, default = HELP[name], field.default if field else None
    if "[default" not in words and default not in (None, False) and kind is not dict:
        words += f" [default: {default:g}]" if kind in (int, float) else f" [default: {default}]"
    flag = "--" + name.replace("_", "-")
    if kind is bool and default:
        return click.option(f"{flag}/--no-{flag[2:]}", default=None, help=words)
    if kind is bool:
        return click.option(flag, is_flag=True, default=None, help=words)
    return click.option(flag, type=str if kind is dict else kind, help=words)


def _kind(annotation: Any) -> Any:
    """What click reads for a field: a number, a flag, a choice, a mapping, or a text."""
    inner = get_args(annotation)
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = [_kind(one) for one in inner if one is not type(None)]
        return kinds[0] if len(kinds) == 1 else str
    if get_origin(annotation) is Literal:
        return click.Choice(inner)
    if get_origin(annotation) is dict:
        return dict
    return annotation if annotation in (int, float, bool) else str


def bottleneck(params: dict[str, Any]) -> Bottleneck:
    """The bottleneck that a command's parameters describe; removes these from ``params``."""
    given = {name: params.pop(name) for name in HELP if name in params}
    fields = {name: value for name, value in given.items() if value is not None}
    for name in ("qdisc_options", "return_qdisc_options"):
        if name in fields:
            fields[name] = _options(fields[name], name)
    return Bottleneck(**fields)


def _options(text: str, name: str) -> Mapping[str, Any]:
    """The options in a text such as ``target=5ms ecn=true``."""
    pairs = [word.partition("=") for word in text.split()]
    if bad := [key for key, _, value in pairs if not value]:
        flag = "--" + name.replace("_", "-")
        raise SpecError(f"{flag} has {bad[0]!r} without a value; write NAME=VALUE NAME=VALUE …")
    return {key: option_value(value) for key, _, value in pairs}
