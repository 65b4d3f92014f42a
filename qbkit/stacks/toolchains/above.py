"""Drivers that do more: an application above the transport, a slow reader, IPv6 below it.

Each is a program of its own, put together from the driver's files and those of ``drivers/above``,
so that the driver of bulk transfers, and with it every published run, stays as it is.
"""

from __future__ import annotations

from pathlib import Path

from qbkit.stacks.base import Kind, Stack, changed

ABOVE = Path(__file__).parents[1] / "drivers/above"
SUFFIX, SERVER = "-app", "-server"


def with_above(stack: Kind, suffix: str = SUFFIX, **attributes: object) -> Kind:
    """The stack with the driver that these attributes of its class describe."""
    return changed(stack, name=f"{stack.name}{suffix}", **attributes)


def name_below(name: str) -> str:
    """The name of the stack itself, whatever is above it."""
    return name.removesuffix(SUFFIX).removesuffix(SERVER)


def drivers_above(stack: Stack) -> list[Stack]:
    """The drivers with something above a stack, which its build makes, too."""
    can = stack.apps or stack.reads_slowly or stack.offers_window or stack.ip6 or stack.serves
    if not can or stack.name != name_below(stack.name):
        return []
    made = [stack.for_app(), *([stack.for_server()] if stack.serves else [])]
    return list({driver.name: driver for driver in made}.values())
