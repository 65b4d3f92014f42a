"""The stacks by name: ours, and the entry points of other packages."""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points

from qbkit.errors import SpecError
from qbkit.settings import chosen_path
from qbkit.stacks.base import Stack
from qbkit.stacks.release import Releases, locked_names
from qbkit.suggestions import did_you_mean

_registered: dict[str, Stack] = {}
_releases: dict[str, Releases] = {}


def register(stack: Stack, *, replaces: bool = False) -> None:
    """Register a stack under its name; raises ValueError if one of another class has that name.

    If it ``replaces``, it takes the place of any.
    """
    if replaces:
        _registered[stack.name] = stack
    known = _registered.setdefault(stack.name, stack)
    if type(known) is not type(stack):
        raise ValueError(f"there is already a stack {stack.name!r}: {type(known).__qualname__}")


def register_releases(releases: Releases) -> None:
    """Register how to make stacks of the releases of a stack."""
    _releases[releases.name] = releases


def get(name: str) -> Stack:
    """The stack of that name, of a release (``quinn@0.8.4``), or of a program at a path.

    Raises SpecError, which lists the known names.
    """
    if "/" in name:
        from qbkit.stacks.external.at_path import AtPath  # it derives from what registers here

        return AtPath(name)
    name, at, version = name.partition("@")
    stack = _stack(name)
    if not at:
        return stack
    if name not in _releases:
        raise SpecError(
            f"qbkit builds no earlier releases of {name}; it builds those of "
            f"{', '.join(sorted(_releases))}"
        )
    return _releases[name].stack(version)


def built_releases() -> list[Stack]:
    """The releases that are built here."""
    known = []
    for name in locked_names():
        with suppress(SpecError):  # a folder of another version of qbkit
            known.append(get(name))
    return [stack for stack in known if stack.status().ready]


def _stack(name: str) -> Stack:
    stacks = {stack.name: stack for stack in all_stacks()}
    if name not in stacks:
        near = did_you_mean(name, stacks)
        known = f"known are {', '.join(sorted(stacks))}"
        raise SpecError(f"there is no stack {name!r}{near}; {known}{_missing_file()}")
    return stacks[name]


def _missing_file() -> str:
    """What to say of a file of the user's stacks that is named and not there."""
    chosen = chosen_path("QBKIT_STACKS")
    if chosen is None or chosen.exists():
        return ""
    return f"; QBKIT_STACKS names {chosen}, which does not exist"


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
