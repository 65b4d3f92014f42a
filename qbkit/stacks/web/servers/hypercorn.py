"""Hypercorn: HTTP/2 in Python over the kernel's TCP, HTTP/3 by aioquic."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path
from typing import ClassVar

from qbkit.stacks.base import CERTIFICATE_MOUNT, Status
from qbkit.stacks.google_quiche import SERVER, SERVER_MOUNT
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.stacks.web.base import WebServer, register_server
from qbkit.stacks.web.beside_aioquic import BesideAioQuic
from qbkit.stacks.web.from_debian import serve
from qbkit.stacks.web.site import MOUNT as FILES
from qbkit.stacks.web.site import Site

DRIVER = Path(__file__).parents[2] / "drivers/web_hypercorn"
PACKAGES = ("hypercorn", "h2", "hpack", "hyperframe")


class _Driver(BesideAioQuic):
    """The interpreter and modules of the stack aioquic, and our server's byte code."""

    name: ClassVar[str] = "web-hypercorn"
    folder: ClassVar[Path] = DRIVER
    package: ClassVar[str] = DRIVER.name

    def version(self) -> str:
        """Versions of Hypercorn, of what speaks HTTP/2 in it, of aioquic, and of our files."""
        versions = " ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
        ours = fingerprint([Path(__file__), *DRIVER.glob("*.py"), *SERVER.glob("*.py")])
        return f"{versions}, aioquic {super().version()}, server {ours}"


class Hypercorn(WebServer):
    """One process, with Hypercorn's defaults."""

    name: ClassVar[str] = "hypercorn"
    source: ClassVar[str] = "Python packages hypercorn and aioquic"
    protocols: ClassVar[tuple[str, ...]] = ("h2", "h3")

    def controllers(self) -> tuple[str, ...]:
        """Those of aioquic."""
        return _Driver().controllers()

    def version(self) -> str:
        """Versions of the packages and of our files."""
        return _Driver().version()

    def status(self) -> Status:
        """Ready when the package is installed."""
        if importlib.util.find_spec("hypercorn"):
            return Status(True)
        return Status(False, "pip install hypercorn")

    def mounts(self) -> dict[str, Path]:
        """The server, the site-packages, the byte code, and the script that starts it."""
        return {**_Driver().mounts(), SERVER_MOUNT: SERVER}

    def env(self) -> dict[str, str]:
        """As for the stack aioquic."""
        return _Driver().env()

    def argv(
        self, *, address: str, protocol: str, controller: str, site: Site, out: str
    ) -> list[str]:
        """Both listeners; over HTTP/2 the controller is the kernel's."""
        ours = controller if controller in self.controllers() else "reno"
        keys = [f"{CERTIFICATE_MOUNT}/browser-{word}.pem" for word in ("cert", "key")]
        return serve(address, [*_Driver().program(), address, ours, *keys, FILES])


register_server(Hypercorn())
