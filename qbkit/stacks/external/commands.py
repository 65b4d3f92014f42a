"""Users' programs with a command line of their own: templates of the arguments of both ends.

``connect`` and ``listen`` in a table of ``stacks.toml`` are the arguments of the end that connects
and of the end that listens (docs/howto/own-stack.md). A word in braces stands for a value of the
flow; doubled braces are braces. The scripts of `qbkit.stacks.external.launcher` start the two
programs: neither has to print ``ready`` or to end in time.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from qbkit.errors import SpecError
from qbkit.stacks.base import Options, ServingStack, Status, Transfer
from qbkit.stacks.external.content import content_of
from qbkit.stacks.external.launcher import (
    CERTIFICATE,
    ENDLESS_BYTES,
    KEY,
    SCRIPTS,
    connect_argv,
    listen_argv,
    script_files,
)
from qbkit.stacks.external.program import Configured
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.stacks.toolchains.processor import NO_RANDOM_INSTRUCTIONS

VALUES = {
    "ip": "IP address of the listening end",
    "port": "its port",
    "controller": "the controller, in the program's own words",
    "duration_s": "how many seconds the flow lasts",
    "bytes": "how many bytes it sends; without a size, a number that it never reaches",
    "cert": "file with a test certificate (RSA)",
    "key": "file with its key",
    "out": "folder for logs",
}
"""What the words in braces stand for."""
ENDLESS_S = 86_400
WORD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
Values = dict[str, str]


def unknown_values(word: str) -> list[str]:
    """The names in braces that stand for nothing."""
    return [name for name in WORD.findall(word) if name and name not in VALUES]


def filled(words: tuple[str, ...], values: Values) -> list[str]:
    """A template's words with the values in place of their names."""
    braces = {"{{": "{", "}}": "}"}
    return [
        WORD.sub(lambda found: braces.get(found[0]) or values[found[1]], word) for word in words
    ]


class Commands(Configured):
    """Two programs, of which the one that connects sends."""

    connect: ClassVar[tuple[str, ...]]
    listen: ClassVar[tuple[str, ...]]
    server: ClassVar[Path]
    """The program that listens."""

    def files(self) -> tuple[Path, ...]:
        """Both programs, which may be one."""
        return tuple(dict.fromkeys((self.file, self.server)))

    def status(self) -> Status:
        """Ready when both programs can be executed."""
        return next((s for s in map(self.executable, self.files()) if not s.ready), Status(True))

    def version(self) -> str:
        """As for one program, with the fingerprints of the server and of the starting scripts."""
        if not self.status().ready:
            return "not found"
        other = fingerprint(script_files(), content_of(self.server))
        return f"{super().version()}, started by {other}"

    def mounts(self) -> dict[str, Path]:
        """The folders of the programs, and the scripts that start them."""
        return {**self.folders(*self.files()), **SCRIPTS}

    def env(self) -> dict[str, str]:
        """Hide the processor's random numbers from OpenSSL, so that runs repeat."""
        return NO_RANDOM_INSTRUCTIONS

    def recv_argv(self, *, address: str, out: str, options: Options) -> list[str]:
        """The program that listens."""
        return self._listening(Transfer(address, "", out))

    def send_argv(self, transfer: Transfer) -> list[str]:
        """The program that connects: given the duration, it ends by itself; any other is ended."""
        if transfer.size_bytes and not any("{bytes}" in word for word in self.connect):
            raise SpecError(
                f"{self.name} sends for a duration only: nothing in its stacks.toml contains "
                "{bytes}; give the flow a stop_s instead"
            )
        command = [self.place(self.file), *filled(self.connect, self._values(transfer))]
        ends_itself = any("{duration_s}" in word for word in self.connect)
        return connect_argv(command, None if ends_itself else transfer.duration_s)

    def _listening(self, transfer: Transfer) -> list[str]:
        """The program that listens, which is not told how long a flow lasts."""
        values = self._values(replace(transfer, duration_s=None, size_bytes=None))
        command = [self.place(self.server), *filled(self.listen, values)]
        return listen_argv(values["port"], command)

    def _values(self, transfer: Transfer) -> Values:
        ip, _, port = transfer.address.rpartition(":")
        return {
            "ip": ip,
            "port": port,
            "controller": self.names.get(transfer.controller, ""),
            "duration_s": f"{transfer.duration_s or ENDLESS_S:g}",
            "bytes": str(transfer.size_bytes or ENDLESS_BYTES),
            "cert": CERTIFICATE,
            "key": KEY,
            "out": transfer.out,
        }


class ServingCommands(Commands, ServingStack):
    """Two programs, of which the one that listens sends."""

    def serve_argv(self, transfer: Transfer) -> list[str]:
        """The program that listens, and sends."""
        return self._listening(transfer)

    def fetch_argv(self, transfer: Transfer) -> list[str]:
        """The program that connects, and receives."""
        return self.send_argv(transfer)
