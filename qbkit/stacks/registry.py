"""The stacks by name: ours, and those that other packages bring as entry points."""

from __future__ import annotations

import warnings
from functools import cache
from importlib.metadata import entry_points

from qbkit.errors import SpecError
from qbkit.stacks.base import Stack

_registered: dict[str, Stack] = {}


def register(stack: Stack) -> None:
    """Make a stack known under its name; ValueError if another has it."""
    known = _registered.setdefault(stack.name, stack)
    if type(known) is not type(stack):
        raise ValueError(f"there is a stack {stack.name!r} already: {type(known).__qualname__}")


def get(name: str) -> Stack:
    """The stack of that name; SpecError lists the names there are."""
    stacks = {stack.name: stack for stack in all_stacks()}
    if name not in stacks:
        raise SpecError(f"there is no stack {name!r}; known are {', '.join(sorted(stacks))}")
    return stacks[name]


def all_stacks() -> list[Stack]:
    """Every known stack, ready or not."""
    _load_plugins()
    return list(_registered.values())


@cache
def _load_plugins() -> None:
    """Register the entry points of group ``qbkit.stacks``; a broken one warns, never breaks."""
    for point in entry_points(group="qbkit.stacks"):
        try:
            register(point.load()())
        except Exception as error:
            warnings.warn(f"the stack plug-in {point.name} ({point.value}): {error}", stacklevel=2)
