"""Users' programs with the command line of a driver."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import ClassVar

from qbkit.errors import StackNotReady
from qbkit.stacks.base import Say, Stack, Status
from qbkit.stacks.external.content import SYSTEM, content_of
from qbkit.stacks.toolchains.build import run_tool

ELF = b"\x7fELF"


class Configured(Stack):
    """A program that speaks the contract of `qbkit.stacks.base.Stack`.

    `qbkit.stacks.external.configured` makes a class of each table, because a class holds the name.
    """

    reports: ClassVar[tuple[str, ...]] = ()
    file: ClassVar[Path]
    names: ClassVar[dict[str, str]]
    """Controllers, and their names in the program's own words."""
    version_command: ClassVar[tuple[str, ...]]

    def controllers(self) -> tuple[str, ...]:
        """As the table lists them."""
        return tuple(self.names)

    def version(self) -> str:
        """Output of its version command, if it has one, and the content of the program."""
        if not self.status().ready:
            return "not found"
        content = content_of(self.file)
        if self.version_command:
            return f"{_first_line(self.version_command, self.name, content)}, program {content}"
        return content

    def status(self) -> Status:
        """Ready when its program can be executed."""
        return self.executable(self.file)

    def executable(self, file: Path) -> Status:
        """Whether a file is a program."""
        if not (file.is_file() and os.access(file, os.X_OK)):
            return Status(False, f"put an executable program at {file}")
        with file.open("rb") as opened:
            head = opened.readline(256)
        if head.startswith(ELF):
            return Status(True)
        interpreter = head[2:].split()[:1] if head.startswith(b"#!") else []
        if not interpreter:
            return Status(
                False, f"{file} is no program of Linux; a script begins with #! and an interpreter"
            )
        if not Path(os.fsdecode(interpreter[0])).exists():
            return Status(
                False, f"the interpreter of {file} is missing: {os.fsdecode(interpreter[0])}"
            )
        return Status(True)

    def build(self, say: Say = lambda _: None) -> None:
        """Do nothing; raises StackNotReady if the program is missing."""
        if not self.status().ready:
            raise StackNotReady(f"{self.name} is not ready; {self.status().reason}", refused=True)

    def program(self) -> list[str]:
        """The program, where the guest sees it."""
        return [self.place(self.file)]

    def mounts(self) -> dict[str, Path]:
        """The folder of the program, unless the guest sees it anyway."""
        return self.folders(self.file)

    def place(self, file: Path) -> str:
        """Path of a file in the guest."""
        if file.is_relative_to(SYSTEM):
            return str(file)
        return f"{self._mount(file)}/{file.name}"

    def folders(self, *files: Path) -> dict[str, Path]:
        """The folders of files that the guest does not see at their own path."""
        return {self._mount(f): f.parent for f in files if not f.is_relative_to(SYSTEM)}

    def _mount(self, file: Path) -> str:
        """Where the guest sees the folder of a file."""
        number = sorted({f.parent for f in self.files()}).index(file.parent)
        return f"/run/qb/stacks/external-{self.name}" + (f"-{number}" if number else "")

    def files(self) -> tuple[Path, ...]:
        """The programs of the stack."""
        return (self.file,)


@cache
def _first_line(command: tuple[str, ...], name: str, _content: str) -> str:
    """First line of a command's output; run again when the program changes."""
    return run_tool(list(command), name).strip().partition("\n")[0]
