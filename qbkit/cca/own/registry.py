"""Controllers by name: built in, of other packages (group ``qbkit.controllers``), of cells."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from qbkit.cca import shipped
from qbkit.cca.controller import Controller
from qbkit.cca.names import builtin, builtin_names
from qbkit.cca.own.mistakes import (
    require_attributes,
    require_effect,
    require_events,
    require_free_names,
    require_methods,
    require_modules,
    require_options,
    require_silence,
    require_values,
)
from qbkit.cca.own.source import source_of as source_of_class
from qbkit.cca.own.source import with_files
from qbkit.errors import SpecError

STACK = "qbkit"
"""The stack that carries controllers in Python."""
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
Kind = TypeVar("Kind", bound=type)


@dataclass(frozen=True)
class Brought:
    """A controller that a user brought."""

    kind: type[Controller]
    source: str
    attributes: dict[str, object]
    """Those of the class when it was registered."""
    there: type[Controller]
    """The class that its source makes."""
    known: Mapping[str, Any]
    """The globals of its cell, as they are now."""


_of_cells: dict[str, Brought] = {}


def controller(name: str) -> Callable[[Kind], Kind]:
    """Make a class a controller: ``@qb.controller("my-cc")``, then ``Flow("qbkit:my-cc")``.

    The class, and what of its cell (or file) it needs, goes into the guest, and is part of the name
    of each run. A cell that runs again replaces its controller; flows made before keep the old one.
    Raises SpecError for a bad or taken name, a class that is no controller, a method ``on_…`` that
    is no event, one that its base needs and it has not, an attribute that does nothing, an option
    whose name or default cannot be, a ``log`` of a name that qbkit uses itself, a ``print``, and
    a source that cannot stand alone.
    """
    if not (isinstance(name, str) and NAME.fullmatch(name)):
        raise SpecError(
            f"{name!r} is no name for a controller; use a-z, 0-9 and -, for example my-cc"
        )

    def register(kind: Kind) -> Kind:
        frame = sys._getframe(1)  # of the cell: what makes this decorator may stand in between
        _check_free(name, kind)
        _of_cells[name] = _brought(name, kind, frame.f_code.co_filename, frame.f_globals)
        return kind

    return register


def names() -> tuple[str, ...]:
    """Of all controllers, sorted."""
    return tuple(sorted({*installed_names(), *_of_cells}))


def installed_names() -> tuple[str, ...]:
    """Of those that need no cell, sorted: built in, or of a package."""
    return tuple(sorted({*builtin_names(), *_entry_points()}))


def source_of(name: str) -> str | None:
    """The text of a controller that travels; None for a built-in one, and for an unknown name.

    It ends with the digests of the files that it opens, as they are now. Raises SpecError for a
    class or a value that was changed since its cell ran, of which the text has no change, and for a
    file that the guest does not see.
    """
    if name in _of_cells:
        return with_files(_unchanged(name, _of_cells[name]).source)
    if name in _entry_points() and name not in builtin_names():
        return with_files(_of_entry_point(name).source)
    return None


def find(name: str, source: str | None = None) -> type[Controller]:
    """The class of that name, or in that text; SpecError where it cannot be had."""
    if source is None:
        return builtin(name)
    try:
        return shipped.load(source, name)
    except shipped.ControllerError as error:
        raise SpecError(f"controller {name!r} does not run on its own: {error}") from None


def _check_free(name: str, kind: type) -> None:
    """A cell may run again, also with its class changed; another class needs another name."""
    other = _of_cells.get(name)
    owner = None
    if name in builtin_names():
        owner = "a built-in controller"
    elif name in _entry_points():
        owner = f"a controller of {_entry_points()[name].value}"
    elif other and other.kind.__qualname__ != getattr(kind, "__qualname__", None):
        owner = f"a controller, class {other.kind.__qualname__},"
    if owner:
        raise SpecError(f"there is {owner} named {name!r} already; choose another name")


def _brought(name: str, kind: Any, file: str, known: dict[str, Any]) -> Brought:
    if not (isinstance(kind, type) and issubclass(kind, Controller)):
        what = getattr(kind, "__name__", repr(kind))
        raise SpecError(f"{what} is no controller: derive it from {shipped.BASES}")
    require_events(kind, name)
    require_methods(kind, name)
    require_options(kind, name)
    require_attributes(kind, name)
    text = source_of_class(kind, name, file, known)
    require_modules(text, name)
    there = find(name, text)
    require_values(text, there, known, name)
    require_free_names(text, name)
    require_effect(text, there, name)
    require_silence(text, name)
    return Brought(kind, text, _attributes(kind), there, known)


def _attributes(kind: type) -> dict[str, object]:
    return {word: value for word, value in vars(kind).items() if not word.startswith("_")}


def _unchanged(name: str, brought: Brought) -> Brought:
    require_values(brought.source, brought.there, brought.known, name, has_ended=True)
    then, now = brought.attributes, _attributes(brought.kind)
    for word in {**then, **now}:
        if then.get(word) is not now.get(word):
            raise SpecError(
                f"{word} of controller {name!r} was changed after its cell ran, and would be as in "
                "the cell; change it there and run the cell again, or make it an option"
            )
    return brought


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group="qbkit.controllers")}


@cache
def _of_entry_point(name: str) -> Brought:
    point = _entry_points()[name]
    try:
        kind = point.load()
        module = sys.modules[kind.__module__]
    except Exception as error:
        raise SpecError(
            f"the controller {name} of {point.value} cannot be loaded: {error}"
        ) from error
    return _brought(name, kind, str(module.__file__), vars(module))
