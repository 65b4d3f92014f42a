"""The source of a controller: its class, and what of its cell or file the class needs."""

from __future__ import annotations
import __future__

import ast
import builtins
import dis
import hashlib
import linecache
import sys
from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from qbkit.cca import shipped
from qbkit.errors import SpecError

MOST_BYTES = 64 << 10
"""What fits on a command line, after it is packed."""
DEFINITIONS = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
)
MOST_PATH = 256
"""Characters of a file's path; a longer text is none."""
HIDDEN = ("tmp", "run")
FILE = "# file: "
READS = {"LOAD_NAME", "LOAD_GLOBAL"}


def source_of(kind: type, name: str, file: str, known: Mapping[str, Any]) -> str:
    """The text (`qbkit.cca.shipped`) of a class that a cell or file defines at its top level.

    ``known`` are the globals of the cell or file. Modules that it imported elsewhere are imported
    by the text. Raises SpecError where something cannot travel.
    """
    linecache.checkcache(file)  # it may have changed since, and be loaded again
    lines = linecache.getlines(file, dict(known))
    if not lines:
        raise SpecError(
            f"cannot read the source of controller {name!r}; define it in a notebook cell or a file"
        )
    cell = _Cell(ast.parse("".join(lines)))
    nodes, foreign = cell.needs(kind.__name__)
    if not nodes:
        raise SpecError(f"controller {name!r} is not at the top level of its cell; move it there")
    if sum(isinstance(n, ast.ClassDef) and n.name == kind.__name__ for n in nodes) > 1:
        raise SpecError(
            f"the class {kind.__name__} of controller {name!r} is there twice in its cell or file, "
            "and the last one would run; give each class a name of its own"
        )
    imports = [_import(word, known, name) for word in sorted(foreign)]
    if cell.future:
        imports.insert(0, "from __future__ import annotations")
    keep = {number for node in nodes for number in _lines_of(node)}
    texts = [line.rstrip("\n") if n in keep else "" for n, line in enumerate(lines, 1)]
    text = shipped.write("; ".join(imports), kind.__name__, texts)
    if len(text.encode()) > MOST_BYTES:
        raise SpecError(f"the source of controller {name!r} exceeds {MOST_BYTES >> 10} KiB")
    return text


def with_files(text: str) -> str:
    """The text of a controller, and a line with the digest of each file that it names in full.

    So the contents of a table that it opens are part of the name of each run, as its text is.
    Raises SpecError for a file that the guest does not see.
    """
    own = text.partition(f"\n{FILE}")[0].rstrip() + "\n"
    constants = {node.value for node in ast.walk(ast.parse(own)) if isinstance(node, ast.Constant)}
    lines = []
    for word in sorted(value for value in constants if isinstance(value, str)):
        path = Path(word)
        if path.is_absolute() and len(word) < MOST_PATH and path.is_file() and path.stat().st_size:
            if path.parts[1] in HIDDEN:
                raise SpecError(
                    f"the controller opens {word}, which the guest does not see, because it has a "
                    f"/{path.parts[1]} of its own; move the file elsewhere"
                )
            with path.open("rb") as file:
                lines.append(f"{FILE}{hashlib.file_digest(file, 'sha256').hexdigest()} {word}\n")
    return own + "".join(lines)


class _Cell:
    """What a cell defines at its top level, and what each definition needs."""

    def __init__(self, tree: ast.Module) -> None:
        self.future = False
        self._binds: dict[str, list[ast.stmt]] = {}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                self.future = True
            elif isinstance(node, DEFINITIONS):
                for name in _bound(node):
                    self._binds.setdefault(name, []).append(node)

    def needs(self, name: str) -> tuple[list[ast.stmt], set[str]]:
        """The definitions that a name needs, its own first, and the names from elsewhere."""
        nodes: list[ast.stmt] = []
        foreign: set[str] = set()
        wanted, seen = [name], {name}
        while wanted:
            found = self._binds.get(word := wanted.pop(), [])
            if not found and not hasattr(builtins, word):
                foreign.add(word)
            for node in found:
                if node not in nodes:
                    nodes.append(node)
                    new = _read(node, self.future) - seen
                    seen |= new
                    wanted += new
        return nodes, foreign - {name, "__name__"}


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a definition sets."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    else:
        stored = (n for n in ast.walk(node) if isinstance(n, ast.Name))
        yield from (n.id for n in stored if isinstance(n.ctx, ast.Store))


def _read(node: ast.stmt, future: bool) -> set[str]:
    """The global names that a definition reads, by its byte code."""
    if isinstance(node, ast.ClassDef):
        node = copy(node)
        node.decorator_list = [one for one in node.decorator_list if not _registers(one)]
    module = ast.Module([node], type_ignores=[])
    flags = __future__.annotations.compiler_flag if future else 0
    return set(_names(compile(module, "cell", "exec", flags, dont_inherit=True)))


def _names(code: CodeType) -> Iterator[str]:
    stored = {i.argval for i in dis.get_instructions(code) if i.opname == "STORE_NAME"}
    for instruction in dis.get_instructions(code):
        local = instruction.opname == "LOAD_NAME" and instruction.argval in stored
        if instruction.opname in READS and not local:
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _registers(decorator: ast.expr) -> bool:
    """Whether it is ``@qb.controller(...)``."""
    call = decorator.func if isinstance(decorator, ast.Call) else decorator
    word = call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "")
    return word == "controller"


def _lines_of(node: ast.stmt) -> set[int]:
    """Its lines, without decorators that register."""
    begin = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    lines = set(range(begin, (node.end_lineno or begin) + 1))
    for decorator in getattr(node, "decorator_list", ()):
        if _registers(decorator):
            lines -= set(range(decorator.lineno, (decorator.end_lineno or 0) + 1))
    return lines


def _import(word: str, known: Mapping[str, Any], name: str) -> str:
    """The statement that gets in the guest what the notebook has under a name."""
    value = known.get(word)
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {word}"
    home, attribute = getattr(value, "__module__", ""), getattr(value, "__name__", "")
    module = sys.modules.get(home) if home != "__main__" else None
    if module and attribute and getattr(module, attribute, None) is value:
        return f"from {home} import {attribute} as {word}"
    raise SpecError(
        f"controller {name!r} uses {word}, which is not in its cell; define {word} there, for only "
        "that cell goes into the guest"
    )
