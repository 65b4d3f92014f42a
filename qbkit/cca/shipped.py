"""Controllers that travel as source text: how the text is read, on the host and in the guest.

Its first line imports what the cell got from elsewhere, and ends with the name of the class. Line
n + 1 is line n of the cell, blank where the controller does not need it.
"""

from __future__ import annotations

import ast
import base64
import linecache
import zlib

from .controller import Controller

MARK = "  # controller: "


class ControllerError(Exception):
    """A controller cannot be used, or failed; the message is for whoever wrote it."""


def write(imports: str, class_name: str, lines: list[str]) -> str:
    """The text of a controller."""
    return "\n".join([f"{imports}{MARK}{class_name}", *lines]).rstrip() + "\n"


def pack(text: str) -> str:
    """One word for a command line."""
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode()


def unpack(word: str) -> str:
    """The inverse of `pack`."""
    return zlib.decompress(base64.urlsafe_b64decode(word)).decode()


def load(text: str, name: str) -> type[Controller]:
    """The class in a text that `write` made; tracebacks show its lines under ``name``.

    Raises ControllerError where it does not compile, or has no such class.
    """
    first, _, _ = text.partition("\n")
    class_name = first.rpartition(MARK)[2]
    lines = text.splitlines(keepends=True)[1:]
    linecache.cache[name] = len(text), None, lines, name
    names: dict[str, object] = {"__name__": name}
    try:
        tree = ast.parse(text, name)
        exec(compile(ast.increment_lineno(tree, -1), name, "exec"), names)
    except SyntaxError as error:
        raise ControllerError(f"line {(error.lineno or 1) - 1}: {error.msg}") from None
    except Exception as error:
        raise ControllerError(f"{type(error).__name__}: {error}") from None
    found = names.get(class_name)
    if not (isinstance(found, type) and issubclass(found, Controller)):
        raise ControllerError(f"{class_name} is no controller: derive it from {BASES}")
    return found


BASES = "qb.cca.WindowController, qb.cca.RateController or qb.cca.LossBasedController"
