"""Senders that are web servers of a Debian suite; their receiver is quic-go's HTTP/3 client."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.stacks.base import Say, ServingStack, Stack, Status, Transfer
from qbkit.stacks.google_quiche import SERVER, SERVER_MOUNT, fetch_command
from qbkit.stacks.quic_go import QuicGo
from qbkit.stacks.registry import get
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.stacks.toolchains.debian import DebianPrograms
from qbkit.stacks.toolchains.processor import NO_RANDOM_INSTRUCTIONS, SAME_LIBRARY_FOLDERS
from qbkit.stacks.web import from_debian


class Served(ServingStack):
    """A server of `debian`, whose first program and package it is.

    The servers report nothing about a connection, so there is no telemetry of the sender.
    """

    debian: ClassVar[DebianPrograms]
    files: ClassVar[tuple[str, ...]]
    """Our files that write its configuration."""
    reports: ClassVar[tuple[str, ...]] = ()

    def version(self) -> str:
        """Versions of the package, our files, and the client."""
        ours = [*map(Path, (__file__, from_debian.__file__, *self.files)), *SERVER.glob("*.py")]
        package = self.debian.packages[0]
        version = self.debian.version(package) if self.debian.ready else "not fetched"
        return f"{version}, driver {fingerprint(ours)}, quic-go {_client().version()}"

    def status(self) -> Status:
        """Ready when the package is unpacked and its client is built."""
        client = _client().status()
        if not client.ready:
            return Status(False, f"its client is quic-go: {client.reason}")
        how = f"qbkit stacks build {self.name}"
        return Status(True) if self.debian.ready else Status(False, how)

    def build(self, say: Say = lambda _: None) -> None:
        """Fetch and unpack the package; the client is built as quic-go."""
        _client().build(say)
        if not self.debian.ready:
            self.debian.build(say)

    def program(self) -> list[str]:
        """The server."""
        return self.debian.command(self.debian.programs[0])

    def mounts(self) -> dict[str, Path]:
        """The server with its libraries, the script that starts it, and the client."""
        ours = {self.debian.mount: self.debian.folder, SERVER_MOUNT: SERVER}
        return {**ours, **_client().mounts()}

    def env(self) -> dict[str, str]:
        """Hide differences between processors, so that runs repeat."""
        return {**_client().env(), **NO_RANDOM_INSTRUCTIONS, **SAME_LIBRARY_FOLDERS}

    def fetch_argv(self, transfer: Transfer) -> list[str]:
        """quic-go's HTTP/3 client."""
        return [*fetch_command(transfer), "--path", self.path(transfer.size_bytes)]

    def path(self, size_bytes: int | None) -> str:
        """What the client asks for: all it can get, or so many bytes at least."""
        return "/"


def _client() -> Stack:
    return get(QuicGo.name)
