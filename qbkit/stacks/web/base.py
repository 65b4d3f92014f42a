"""Web servers and clients: their interfaces and registries. One file each in servers/, clients/."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from qbkit.errors import RunFailed, SpecError
from qbkit.stacks.base import GuestProgram, Say, Status
from qbkit.stacks.registry import get
from qbkit.stacks.web.site import Site

HOST = "test.example"
"""The name that clients ask for, and that the certificate ``browser-cert.pem`` is for."""


@dataclass(frozen=True)
class Target:
    """A URL on the internet, at one address of its host."""

    url: str
    host: str
    port: int
    ip: str


class WebProgram(GuestProgram):
    """A program that runs at one end of a load."""

    protocols: ClassVar[tuple[str, ...]]
    """Which of ``h2`` and ``h3`` it has."""
    zero_rtt: ClassVar[bool] = False
    """Whether it can resume a session of HTTP/3 with early data."""


class OfStack(WebProgram):
    """A program that comes with a stack: it is ready, and built, when the stack is."""

    stack: ClassVar[str]
    """Name of the stack."""

    def status(self) -> Status:
        """That of the stack."""
        return get(self.stack).status()

    def build(self, say: Say = lambda _: None) -> None:
        """Build the stack."""
        get(self.stack).build(say)

    def mounts(self) -> dict[str, Path]:
        """The folders of the stack."""
        return get(self.stack).mounts()

    def env(self) -> dict[str, str]:
        """The variables of the stack."""
        return get(self.stack).env()


class WebServer(WebProgram):
    """A server of the files of a site, over one or both protocols on one port number."""

    hosts: ClassVar[bool] = False
    """Whether it can serve a site of several hosts, queries and statuses; else it serves files by
    their paths."""

    @abstractmethod
    def controllers(self) -> tuple[str, ...]:
        """Names of its congestion controllers for HTTP/3; for HTTP/2 the kernel has its own."""

    @abstractmethod
    def argv(
        self, *, address: str, protocol: str, controller: str, site: Site, out: str
    ) -> list[str]:
        """The command that serves ``site`` on ``IP:PORT``, prints ``ready``, ends on SIGTERM.

        It serves every host name by `qbkit.stacks.base.CERTIFICATE_MOUNT`'s ``browser-cert.pem``.
        The agent has already chosen the kernel's controller, if ``protocol`` is ``h2``.
        """


class WebClient(WebProgram):
    """A client that loads one thing and ends by itself.

    It exits with a status other than 0, and one sentence on stderr, when the load fails, or when
    the response came by another protocol than asked for.
    """

    pages: ClassVar[bool] = False
    """Whether it loads a whole page, as a browser does, or one object."""
    unlimited: ClassVar[tuple[str, ...]] = ()
    """The protocols whose flow control never limits a sender: it allows more than any object has.
    """
    keeps: ClassVar[tuple[str, ...]] = ()
    """What `qbkit.execution.web.load.run_web` can keep of its loads, beside the packets."""

    @abstractmethod
    def argv(
        self, *, address: str, protocol: str, path: str, out: str, zero_rtt: bool
    ) -> list[str]:
        """The command that loads ``https://HOST:PORT/path`` from ``IP:PORT``."""

    def url_argv(self, target: Target, *, protocol: str, verify: bool) -> list[str]:
        """The command that loads a URL from this machine; SpecError for a client that cannot."""
        raise SpecError(f"the client {self.name} loads nothing from this machine's own network")

    def url_report(self, output: str) -> dict[str, Any]:
        """The document of `load` by the standard error of the command of `url_argv`."""
        raise NotImplementedError

    def page_argv(
        self, *, address: str, protocol: str, site: Site, out: str, limit_s: float
    ) -> list[str]:
        """The command that loads a site's start and all it needs within a time, if it can."""
        raise SpecError(f"the client {self.name} loads objects, not pages")

    def load(self, folder: Path) -> dict[str, Any]:
        """The document ``load.json`` (see `qbkit.traces.web.load`) that it wrote to ``out``.

        A client that writes its own format overrides this.
        """
        try:
            return dict(json.loads((folder / "load.json").read_text()))
        except (OSError, ValueError) as error:
            raise RunFailed(f"the client {self.name} left no valid load.json: {error}") from None


_servers: dict[str, WebServer] = {}
_clients: dict[str, WebClient] = {}
Program = TypeVar("Program", bound=WebProgram)


def register_server(server: WebServer) -> None:
    """Register a server under its name."""
    _servers[server.name] = server


def register_client(client: WebClient) -> None:
    """Register a client under its name."""
    _clients[client.name] = client


def servers() -> list[WebServer]:
    """Every known server, ready or not."""
    return list(_servers.values())


def clients() -> list[WebClient]:
    """Every known client, ready or not."""
    return list(_clients.values())


def server(name: str) -> WebServer:
    """The server of that name; raises SpecError, which lists the known names."""
    return _find("server", name, servers())


def client(name: str) -> WebClient:
    """The client of that name; raises SpecError, which lists the known names."""
    return _find("client", name, clients())


def programs(names: str) -> list[WebProgram]:
    """The servers and clients with these names, separated by commas, or ``all``; else SpecError."""
    known = [*servers(), *clients()]
    if names == "all":
        return known
    chosen = names.split(",")
    for name in chosen:
        _find("server or client", name, known)
    return [program for program in known if program.name in chosen]


def web_rows() -> list[dict[str, Any]]:
    """One row per server and client: {name, role, protocols, controllers, zero_rtt, version, …}."""
    rows = []
    for program in (*servers(), *clients()):
        status = program.status()
        rows.append(
            {
                "name": program.name,
                "role": "server" if isinstance(program, WebServer) else "client",
                "protocols": list(program.protocols),
                "controllers": _controllers(program),
                "zero_rtt": program.zero_rtt,
                "version": program.version() if status.ready else None,
                "ready": status.ready,
                "reason": status.reason,
                "source": program.source,
            }
        )
    return rows


def _controllers(program: WebProgram) -> list[str]:
    """A server's controllers for HTTP/3; a client chooses none."""
    return list(program.controllers()) if isinstance(program, WebServer) else []


def _find(kind: str, name: str, known: Sequence[Program]) -> Program:
    for program in known:
        if program.name == name:
            return program
    names = ", ".join(sorted({program.name for program in known}))
    raise SpecError(f"there is no {kind} {name!r}; known are {names}")
