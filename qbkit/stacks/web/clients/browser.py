"""A browser that Debian packages, as a web client under our driver."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.stacks.base import CERTIFICATE_MOUNT, Status
from qbkit.stacks.chromium import DRIVERS, PYTHON, SHARED, driver_fingerprint, package_version
from qbkit.stacks.toolchains import byte_code
from qbkit.stacks.toolchains.processor import NO_RANDOM_INSTRUCTIONS, SAME_LIBRARY_FOLDERS
from qbkit.stacks.toolchains.sources import together
from qbkit.stacks.web.base import WebClient
from qbkit.stacks.web.site import Site

SOURCES = (SHARED, DRIVERS / "web_browser")
MOUNT = "/run/qb/stacks/web-browser"


class Browser(WebClient):
    """A browser; the driver starts it, loads a page, and writes ``load.json``."""

    protocols: ClassVar[tuple[str, ...]] = ("h2", "h3")
    pages: ClassVar[bool] = True
    package: ClassVar[str]
    program: ClassVar[str]
    script: ClassVar[str] = "main"
    """The driver's script for it, without its ending."""
    code: ClassVar[str] = "web-browser"
    """Name of the script's byte code."""

    def version(self) -> str:
        """Versions of the package and of the driver."""
        key = driver_fingerprint(SOURCES)
        return f"{package_version(self.package, self.program)}, driver {key}"

    def status(self) -> Status:
        """Ready when the package is installed."""
        if Path(self.program).exists():
            return Status(True)
        return Status(False, f"apt-get install {self.package}")

    def mounts(self) -> dict[str, Path]:
        """The driver and its byte code."""
        driver, key = {MOUNT: driver_folder()}, driver_fingerprint(SOURCES)
        code = byte_code.mounts(self.code, PYTHON, [self.script], MOUNT, driver, key)
        return {**driver, **code}

    def env(self) -> dict[str, str]:
        """Hide differences between processors, so that runs repeat."""
        return {**NO_RANDOM_INSTRUCTIONS, **SAME_LIBRARY_FOLDERS}

    def argv(
        self, *, address: str, protocol: str, path: str, out: str, zero_rtt: bool
    ) -> list[str]:
        """Not for objects: a browser would save them to disk."""
        raise NotImplementedError(f"{self.name} loads pages")

    def page_argv(
        self, *, address: str, protocol: str, site: Site, out: str, limit_s: float
    ) -> list[str]:
        """The driver, which writes load.json."""
        driver = [*byte_code.flags(self.code), f"{MOUNT}/{self.script}.py", self.name]
        where = ["--url", f"https://{site.hosts[0]}{site.start}", "--address", address]
        hosts = [word for host in site.hosts for word in ("--host", host.strip("[]"))]
        how = ["--protocol", protocol, "--limit-s", f"{limit_s:g}", "--out", out]
        return [*PYTHON, *driver, CERTIFICATE_MOUNT, *where, *hosts, *how]


def driver_folder() -> Path:
    """The folder of the driver's files."""
    return together("web-browser-driver", SOURCES)
