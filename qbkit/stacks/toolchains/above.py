"""Drivers that do more: an application above the transport, a slow reader, IPv6 below it.

Each is a program of its own, put together from the driver's files and those of ``drivers/above``,
so that the driver of bulk transfers, and with it every published run, stays as it is.
"""

from __future__ import annotations

from pathlib import Path

from qbkit.stacks.base import Kind, Stack, changed

ABOVE = Path(__file__).parents[1] / "drivers/above"
SUFFIX = "-app"


def with_above(stack: Kind, **attributes: object) -> Kind:
    """The stack with the driver that these attributes of its class describe."""
    return changed(stack, name=f"{stack.name}{SUFFIX}", **attributes)


def name_below(name: str) -> str:
    """The name of the stack itself, whatever is above it."""
    return name.removesuffix(SUFFIX)


def builds_above(stack: Stack) -> bool:
    """Whether a stack's build makes the driver with something above it, too."""
    can = stack.apps or stack.reads_slowly or stack.offers_window or stack.ip6 or stack.serves
    return bool(can) and not stack.name.endswith(SUFFIX)
