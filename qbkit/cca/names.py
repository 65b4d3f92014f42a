"""Built-in controllers by name: ``quic-dc`` is the one class in ``builtin/quic_dc.py``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from .controller import Controller

BUILTIN = Path(__file__).parent / "builtin"


def builtin_names() -> tuple[str, ...]:
    """Of the files that are there."""
    files = (path.stem for path in BUILTIN.glob("*.py") if not path.stem.startswith("_"))
    return tuple(sorted(stem.replace("_", "-") for stem in files))


def builtin(name: str) -> type[Controller]:
    """The class of a built-in controller; KeyError for another name."""
    if name not in builtin_names():
        raise KeyError(name)
    module = import_module(f"{__package__}.builtin.{name.replace('-', '_')}")
    (found,) = controllers_in(vars(module))
    return found


def controllers_in(names: dict[str, object]) -> list[type[Controller]]:
    """The controllers that a module defines itself."""
    return [
        value
        for value in names.values()
        if isinstance(value, type)
        and issubclass(value, Controller)
        and value.__module__ == names.get("__name__")
    ]
