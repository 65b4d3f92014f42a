"""Write the byte code of the agent: ``guest_code.py SOURCES TARGET``, by the system's Python.

Each Python file of SOURCES becomes one file of TARGET, and so does each folder: its modules import
one another as if they lay on the path, and the module of the folder's name is the file's own. How
many files a guest opens moves random numbers of its kernel, and with them the runs of stacks that
draw some (docs/concepts/depends.md); how many modules are in a file does not.
"""

import ast
import importlib.util
import marshal
import sys
from graphlib import TopologicalSorter
from pathlib import Path
from types import CodeType

UNCHECKED_HASH = 1
"""Flag of PEP 552: the source is not looked for."""
LOAD = """
import marshal, sys
for name, code in OTHERS:
    sys.modules[name] = type(sys)(name)
    exec(marshal.loads(code), vars(sys.modules[name]))
exec(marshal.loads(OWN))
"""
"""What a file with several modules does. A finder in ``sys.meta_path`` instead moves runs."""


def main(sources: str, target: str) -> None:
    """Write the byte code of a folder's files and folders."""
    for path in Path(sources).iterdir():
        if path.suffix == ".py":
            write(compiled(path, path.name), Path(target, f"{path.stem}.pyc"))
        elif path.name != "__pycache__":
            write(bundled(path), Path(target, f"{path.name}.pyc"))


def compiled(path: Path, name: str) -> CodeType:
    """The code of a source file; tracebacks call it by ``name``."""
    return compile(path.read_bytes(), name, "exec", dont_inherit=True)


def bundled(folder: Path) -> CodeType:
    """One code that holds the codes of a folder's modules and runs them, its own module last."""
    files = {path.stem: path for path in folder.glob("*.py")}
    needs = {name: sorted(imported(files[name]) & files.keys()) for name in sorted(files)}
    needs[folder.name] = sorted(files.keys() - {folder.name})
    codes = [
        (name, marshal.dumps(compiled(files[name], f"{folder.name}/{name}.py")))
        for name in TopologicalSorter(needs).static_order()
    ]
    text = f"*OTHERS, (_, OWN) = {codes!r}{LOAD}"
    return compile(text, folder.name, "exec", dont_inherit=True)


def imported(path: Path) -> set[str]:
    """Names of the modules that a source file imports when it is loaded."""
    nodes = ast.parse(path.read_bytes()).body
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def write(code: CodeType, path: Path) -> None:
    """Write a file of byte code that Python runs and imports."""
    header = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH.to_bytes(4, "little") + bytes(8)
    path.write_bytes(header + marshal.dumps(code))


if __name__ == "__main__":
    main(*sys.argv[1:])
