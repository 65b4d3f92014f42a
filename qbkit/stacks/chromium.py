"""Chromium, the browser, as a sender: Google QUICHE as users run it.

Debian's Chromium runs headless. A page uploads by fetch() to quic-go's HTTP/3 server. Only the
browser's own flags are changed. To save processor time, a preloaded library gathers the events of
its net log.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar

from qbkit.errors import StackNotReady
from qbkit.stacks.base import CERTIFICATE_MOUNT, Say, Status
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains import byte_code
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.stacks.toolchains.preload import CHROMIUM, Preloading
from qbkit.stacks.toolchains.processor import NO_RANDOM_INSTRUCTIONS, SAME_LIBRARY_FOLDERS
from qbkit.stacks.toolchains.sources import files_of, together
from qbkit.stacks.web.uploads import UploadingStack

DRIVERS = Path(__file__).parent / "drivers"
SHARED = DRIVERS / "browsers"
"""What all drivers of browsers share."""
SOURCES = (SHARED, DRIVERS / "browser")
MOUNT = "/run/qb/stacks/browser"
PYTHON = ("/usr/bin/python3", "-E", "-s", "-S")


class BrowserStack(UploadingStack):
    """A browser that Debian packages, driven by our program under the guest's own Python."""

    browser: ClassVar[str]
    """Its name in the driver's command line."""
    packages: ClassVar[dict[str, str]]
    """Required Debian packages: name → a file that shows it is installed. The browser is first."""

    def version(self) -> str:
        """Versions of Debian's package, of the driver, and of the receiver."""
        package, file = next(iter(self.packages.items()))
        return (
            f"{package_version(package, file)}, driver {driver_fingerprint(SOURCES)}, "
            f"receiver quic-go {self._receiver.version()}"
        )

    def status(self) -> Status:
        """Ready when the packages are installed and the receiver is built."""
        if missing := self._missing():
            return Status(False, missing)
        return self._receiver.status()

    def build(self, say: Say = lambda _: None) -> None:
        """Build the receiver; the packages come from the system."""
        if missing := self._missing():
            raise StackNotReady(f"{self.name} needs packages of the system: {missing}")
        self._receiver.build(say)

    def _missing(self) -> str:
        """The command that installs the packages that are absent; empty for none."""
        absent = [name for name, file in self.packages.items() if not Path(file).exists()]
        return f"apt-get install {' '.join(absent)}" if absent else ""

    def program(self) -> list[str]:
        """The driver under the system's Python."""
        driver = [*byte_code.flags("browser"), f"{MOUNT}/main.py"]
        return [*PYTHON, *driver, self.browser, CERTIFICATE_MOUNT]

    def mounts(self) -> dict[str, Path]:
        """The driver, its byte code, and the receiver."""
        driver, key = {MOUNT: driver_folder()}, driver_fingerprint(SOURCES)
        code = byte_code.mounts("browser", PYTHON, ["main"], MOUNT, driver, key)
        return {**driver, **code, **self._receiver.mounts()}

    def env(self) -> dict[str, str]:
        """Hide differences between processors, so that runs repeat."""
        return {**self._receiver.env(), **NO_RANDOM_INSTRUCTIONS, **SAME_LIBRARY_FOLDERS}


class Chromium(Preloading, BrowserStack):
    """Chromium; a connection option of QUICHE chooses its controller."""

    name = "chromium"
    source = "Debian's package chromium"
    browser = "chromium"
    preloaded = CHROMIUM
    reports = ("bytes_in_flight", "latest_rtt_ms", "lost_packets")
    packages: ClassVar[dict[str, str]] = {"chromium": "/usr/lib/chromium/chromium"}
    options: ClassVar[dict[str, str]] = {
        "initial_window_packets": "initial congestion window in packets: 3, 10, 20 or 50, else 32",
        "connection_options": "more of QUICHE's connection options, as 1RTT or BBQ1 for bbr",
    }

    def controllers(self) -> tuple[str, ...]:
        """Those that --quic-client-connection-options can choose; CUBIC is the default."""
        return ("cubic", "bbr", "bbr2", "reno")


def driver_fingerprint(sources: Sequence[Path]) -> str:
    """12 hexadecimal digits over a driver's files and the flags that start them."""
    return fingerprint(files_of(sources), byte_code.version(), *PYTHON)


def driver_folder() -> Path:
    """The folder of the driver's files."""
    return together("browser-driver", SOURCES)


def package_version(package: str, file: str) -> str:
    """Version of a Debian package, read again when the file changes; empty if not installed."""
    return _package_version(package, _written_ns(file))


def _written_ns(file: str) -> int:
    """When a file was last written; 0 if it does not exist."""
    return Path(file).stat().st_mtime_ns if Path(file).exists() else 0


@cache
def _package_version(package: str, _written_ns: int) -> str:
    """Version from dpkg, read again when the browser changes; empty when it is not installed."""
    words = ["dpkg-query", "--show", "--showformat=${Version}", package]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "?"
    return done.stdout


register(Chromium())
