"""A new stack: a table in the user's ``stacks.toml``, or a Python package, both with an example."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from qbkit.errors import SpecError
from qbkit.files import write_whole
from qbkit.stacks.external.configured import stacks_file
from qbkit.stacks.registry import all_stacks

EXAMPLE = Path(__file__).parents[1] / "drivers/example"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
TABLE = """
[stack.{name}]
program = "{program}"
controllers = {controllers}
# The arguments of the end that connects, and of the end that listens. In braces: {{ip}}, {{port}},
# {{controller}}, {{duration_s}}, {{bytes}}, {{cert}}, {{key}}, {{out}} (docs/howto/own-stack.md).
connect = {connect}
listen = {listen}
# server = "/path/of/another/program"       # where another program listens
# sender = "listen"                         # where the end that listens sends the data
# version_command = ["{program}", "--version"]
"""


def require_new(name: str) -> None:
    """Raise SpecError for a name that a stack cannot have, or that one has."""
    if not NAME.fullmatch(name):
        raise SpecError(f"{name!r}: a name may have lower-case letters, digits, - and _")
    if name in {stack.name for stack in all_stacks()}:
        raise SpecError(f"there is a stack {name!r} already; choose another name")


def add_table(name: str, program: Path | None, folder: Path) -> tuple[Path, Path]:
    """Add a table to ``stacks.toml``; without a program, for an example copied to ``folder``.

    Returns the paths of the file and of the program. Raises SpecError for a name that is taken, a
    program that does not exist, and a folder that exists.
    """
    require_new(name)
    if program is None:
        place = _new_folder(folder)
        program = Path(shutil.copy2(EXAMPLE / "flow.py", place))
        connect = '["connect", "{ip}", "{port}", "{controller}", "{bytes}"]'
        listen, controllers = '["listen", "{port}"]', '["cubic", "reno", "bbr"]'
    else:
        program = program.expanduser().absolute()
        if not (program.is_file() and os.access(program, os.X_OK)):
            raise SpecError(f"there is no program {program}; give the path of an executable file")
        connect, listen = '["{ip}", "{port}"]', '["{port}"]'
        controllers = '["cubic"]'
    file = stacks_file()
    before = file.read_text() if file.exists() else ""
    text = TABLE.format(
        name=name, program=program, controllers=controllers, connect=connect, listen=listen
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, (before + text).lstrip("\n").encode())
    return file, program


def write_package(name: str, folder: Path) -> Path:
    """Write a package with the stack as a class; returns its folder, ready for ``pip install``."""
    require_new(name)
    module = name.replace("-", "_")
    if not module.isidentifier():
        raise SpecError(f"{name!r} begins with a digit, which a Python package cannot")
    place = _new_folder(folder)
    (place / module).mkdir()
    for source, target in (
        ("pyproject.toml.txt", place / "pyproject.toml"),
        ("stack.py.txt", place / module / "__init__.py"),
    ):
        text = (EXAMPLE / source).read_text()
        target.write_text(text.replace("NAME", name).replace("MODULE", module))
    shutil.copy2(EXAMPLE / "driver.py", place / module)
    return place


def _new_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise SpecError(f"{folder} exists already; choose another folder with --folder") from None
    except OSError as error:
        raise SpecError(f"cannot make {folder}: {error.strerror}") from None
    return folder.absolute()
