"""Web servers and clients that are packages of a newer Debian suite."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path
from typing import ClassVar

from qbkit.stacks.base import Say, Status
from qbkit.stacks.google_quiche import PYTHON, SERVER, SERVER_MOUNT
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.stacks.toolchains.debian import DebianPrograms
from qbkit.stacks.toolchains.processor import NO_RANDOM_INSTRUCTIONS, SAME_LIBRARY_FOLDERS
from qbkit.stacks.web.base import WebProgram

PART_CHARACTERS = 30_000
"""At most 120,000 bytes of UTF-8."""


class FromDebian(WebProgram):
    """A program of `debian`, whose first package gives the version."""

    debian: ClassVar[DebianPrograms]

    def version(self) -> str:
        """Version of the package, and fingerprints of its files and of ours."""
        ours = fingerprint([Path(inspect.getfile(type(self))), *SERVER.glob("*.py")])
        return f"{self.debian.version(self.debian.packages[0])}, qbkit {ours}"

    def status(self) -> Status:
        """Ready when the packages are unpacked."""
        return (
            Status(True) if self.debian.ready else Status(False, f"qbkit web --build {self.name}")
        )

    def build(self, say: Say = lambda _: None) -> None:
        """Fetch and unpack the packages."""
        self.debian.build(say)

    def mounts(self) -> dict[str, Path]:
        """The programs with their libraries, and the script that starts servers."""
        return {self.debian.mount: self.debian.folder, SERVER_MOUNT: SERVER}

    def env(self) -> dict[str, str]:
        """Hide differences between processors, so that runs repeat."""
        return {**NO_RANDOM_INSTRUCTIONS, **SAME_LIBRARY_FOLDERS}


def serve(address: str, *commands: list[str], settle_s: float = 0) -> list[str]:
    """The command that starts servers, and is ready when one has the UDP port of the address.

    ``settle_s`` is for servers that have the port before they answer.
    """
    words = [*PYTHON, f"{SERVER_MOUNT}/serve.py", address.rpartition(":")[2]]
    if settle_s:
        words.append(f"{settle_s:g}")
    for command in commands:
        words += ["--", *command]
    return words


def with_file(path: str, text: str, command: list[str]) -> list[str]:
    """The command, after a shell has written a file for it.

    The text comes in parts, as Linux takes no argument of 128 KiB.
    """
    first, *more = [
        text[at : at + PART_CHARACTERS] for at in range(0, len(text) or 1, PART_CHARACTERS)
    ]
    parts = " ".join(f'"${{{number}}}"' for number in range(1, len(more) + 1))
    skip = f"shift {len(more)} && " if more else ""
    script = f'printf %s "$0" {parts}'.rstrip() + f' > {shlex.quote(path)} && {skip}exec "$@"'
    return ["/bin/sh", "-c", script, first, *more, *command]
