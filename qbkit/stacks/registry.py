"""The stacks by name: ours, and the entry points of other packages."""

from __future__ import annotations

import warnings
from functools import cache
from importlib.metadata import entry_points

from qbkit.errors import SpecError
from qbkit.stacks.base import Stack
from qbkit.suggestions import did_you_mean

_registered: dict[str, Stack] = {}


def register(stack: Stack) -> None:
    """Register a stack under its name; raises ValueError if another has that name."""
    known = _registered.setdefault(stack.name, stack)
    if type(known) is not type(stack):
        raise ValueError(f"there is already a stack {stack.name!r}: {type(known).__qualname__}")


def get(name: str) -> Stack:
    """The stack of that name; raises SpecError, which lists the known names."""
    stacks = {stack.name: stack for stack in all_stacks()}
    if name not in stacks:
        near = did_you_mean(name, stacks)
        raise SpecError(f"there is no stack {name!r}{near}; known are {', '.join(sorted(stacks))}")
    return stacks[name]


def all_stacks() -> list[Stack]:
    """Every known stack, ready or not."""
    _load_plugins()
    return list(_registered.values())


@cache
def _load_plugins() -> None:
    """Register the entry points of the group ``qbkit.stacks``; a broken one only warns."""
    for point in entry_points(group="qbkit.stacks"):
        try:
            register(point.load()())
        except Exception as error:
            warnings.warn(f"the stack plug-in {point.name} ({point.value}): {error}", stacklevel=2)
