"""Users' own stacks: programs with the command line of a driver, listed in a TOML file.

The file is ``QBKIT_STACKS``, else ``$XDG_CONFIG_HOME/qbkit/stacks.toml``, else
``~/.config/qbkit/stacks.toml``, with a table for each stack:

    [stack.mine]
    program = "/home/me/mine/driver"       # called as `qbkit.stacks.base.Stack` says
    controllers = ["cubic", "bbr"]
    version_command = ["/home/me/mine/driver", "--version"]   # shown in the version
    options = {qlog = "write a full qlog"}                    # if it has any

The guest sees the folder of the program, and this machine's files except /tmp, all read-only.
"""

from __future__ import annotations

import os
import re
import tomllib
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from qbkit.errors import SpecError, StackNotReady
from qbkit.stacks.base import Say, Stack, Status
from qbkit.stacks.build import program_fingerprint, run_tool
from qbkit.stacks.registry import register

REQUIRED = {"program": str, "controllers": list}
OPTIONAL = {"version_command": list, "options": dict}


class Configured(Stack):
    """One table of the file; `from_table` makes a class of each, for a class holds the name."""

    reports: ClassVar[tuple[str, ...]] = ()
    file: ClassVar[Path]
    names: ClassVar[tuple[str, ...]]
    version_command: ClassVar[tuple[str, ...]]

    def controllers(self) -> tuple[str, ...]:
        """As the table lists them."""
        return self.names

    def version(self) -> str:
        """Output of its version command, if it has one, and the fingerprint of the program."""
        if not self.status().ready:
            return "not found"
        content = program_fingerprint(self.file)
        if self.version_command:
            return f"{_first_line(self.version_command, self.name, content)}, program {content}"
        return content

    def status(self) -> Status:
        """Ready when its program can be executed."""
        if self.file.is_file() and os.access(self.file, os.X_OK):
            return Status(True)
        return Status(False, f"put an executable program at {self.file}")

    def build(self, say: Say = lambda _: None) -> None:
        """Do nothing; raises StackNotReady if the program is missing."""
        if not self.status().ready:
            raise StackNotReady(f"{self.name} is not ready; {self.status().reason}")

    def program(self) -> list[str]:
        """The program, where the guest sees it."""
        return [f"{self._mount()}/{self.file.name}"]

    def mounts(self) -> dict[str, Path]:
        """The folder of the program."""
        return {self._mount(): self.file.parent}

    def _mount(self) -> str:
        return f"/run/qb/stacks/external-{self.name}"


def stacks_file() -> Path:
    """Where the user's stacks are listed."""
    chosen = os.environ.get("QBKIT_STACKS")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "qbkit/stacks.toml"


def load(path: Path) -> list[Stack]:
    """The stacks of a file; none if there is no such file.

    Raises SpecError, which says what is wrong in which table.
    """
    try:
        content = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise SpecError(f"{path} cannot be read: {error}") from error
    tables = content.pop("stack", {})
    if content or not isinstance(tables, dict):
        raise SpecError(f"{path} may only have tables named [stack.NAME]")
    return [from_table(name, table, path) for name, table in tables.items()]


def from_table(name: str, table: Any, path: Path) -> Stack:
    """The stack of one table; raises SpecError, which says what is missing or wrong in it."""
    where = f"[stack.{name}] in {path}"
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
        raise SpecError(f"{where}: a name may have lower-case letters, digits, - and _")
    _check(table, where)
    attributes = {
        "__doc__": f"{where}.",
        "name": name,
        "source": f"external: {table['program']}",
        "options": dict(table.get("options", {})),
        "file": Path(table["program"]).expanduser(),
        "names": tuple(table["controllers"]),
        "version_command": tuple(table.get("version_command", ())),
    }
    made: type[Configured] = type(f"Configured_{name}", (Configured,), attributes)
    return made()


def _check(table: Any, where: str) -> None:
    """Check that required keys exist, and that every key is known and of its type."""
    if not isinstance(table, Mapping):
        raise SpecError(f"{where} is not a table")
    for key, kind in REQUIRED.items():
        if not isinstance(table.get(key), kind) or not table[key]:
            raise SpecError(f"{where} needs {key} = {_example(key)}")
    unknown = table.keys() - REQUIRED.keys() - OPTIONAL.keys()
    if unknown:
        known = ", ".join([*REQUIRED, *OPTIONAL])
        raise SpecError(f"{where} has an unknown key {sorted(unknown)[0]}; known are {known}")
    for key, kind in OPTIONAL.items():
        if not isinstance(table.get(key, kind()), kind):
            raise SpecError(f"{where}: write {key} as {_example(key)}")
    words = [*table["controllers"], *table.get("version_command", [])]
    if not all(isinstance(word, str) and word for word in words):
        raise SpecError(f"{where}: lists must hold words in quotation marks")
    if not Path(table["program"]).expanduser().is_absolute():
        raise SpecError(f"{where}: program must be an absolute path, not {table['program']!r}")


def _example(key: str) -> str:
    return {
        "program": '"/path/of/the/program"',
        "controllers": '["cubic", "reno"]',
        "version_command": '["/path/of/the/program", "--version"]',
        "options": '{name = "what it does"}',
    }[key]


@cache
def _first_line(command: tuple[str, ...], name: str, _content: str) -> str:
    """First line of a command's output; run again when the program changes."""
    return run_tool(list(command), name).strip().partition("\n")[0]


def register_all() -> None:
    """Register the user's stacks; a mistake in the file only warns."""
    try:
        for stack in load(stacks_file()):
            register(stack)
    except (SpecError, ValueError) as error:
        warnings.warn(str(error), stacklevel=2)


register_all()
