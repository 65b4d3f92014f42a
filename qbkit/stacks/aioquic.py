"""aioquic, the QUIC stack in Python, with a driver that needs no asyncio."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys
from pathlib import Path
from typing import ClassVar

from qbkit.errors import StackNotReady
from qbkit.spec.app import APPS
from qbkit.stacks.base import Stack
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains import byte_code
from qbkit.stacks.toolchains.above import ABOVE, SUFFIX, with_above
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.stacks.toolchains.processor import NO_RANDOM_INSTRUCTIONS
from qbkit.stacks.toolchains.sources import together

DRIVER = Path(__file__).parent / "drivers/aioquic_flow"
MOUNT = "/run/qb/stacks/aioquic"
SITE_MOUNT = "/run/qb/stacks/aioquic-site"
FLAGS = ("-S", "-s", "-P")
"""Import only from the folders in env()."""


class AioQuic(Stack):
    """The aioquic of this Python environment, run in the guest by an interpreter like its own."""

    name = "aioquic"
    source = "the Python package aioquic"
    ip6 = True
    apps = APPS
    options: ClassVar[dict[str, str]] = {"qlog": "write a full qlog"}
    package: ClassVar[str] = DRIVER.name
    """The package that Python runs."""
    driver: ClassVar[Path] = DRIVER
    mount: ClassVar[str] = MOUNT
    """Folder of the driver in the guest."""
    site_mount: ClassVar[str] = SITE_MOUNT
    """Folder of the packages in the guest."""

    def for_app(self) -> Stack:
        """The driver with something above the transport."""
        driver = together("aioquic-app-sources", (DRIVER, ABOVE / DRIVER.name))
        return with_above(self, driver=driver, mount=f"{self.mount}{SUFFIX}")

    def controllers(self) -> tuple[str, ...]:
        """The controllers in aioquic's own registry."""
        from aioquic.quic import recovery  # noqa: F401 (fills the registry; slow to import)
        from aioquic.quic.congestion import base

        return tuple(sorted(base._factories))

    def version(self) -> str:
        """Version of the package, and a fingerprint of the driver and all that it runs with."""
        return f"{importlib.metadata.version('aioquic')}, driver {driver_fingerprint(self.driver)}"

    def program(self) -> list[str]:
        """The interpreter and the driver."""
        return [python(), *FLAGS, *byte_code.flags(self.name), "-m", self.package]

    def packages(self) -> dict[str, Path]:
        """Our packages that run in its process: guest path → host path."""
        return {f"{self.mount}/{DRIVER.name}": self.driver}

    def site_packages(self) -> Path:
        """The folder of this machine that holds aioquic and what it needs."""
        return site_packages_of("aioquic")

    def sources_at_hand(self) -> list[Path]:
        """The package that is installed."""
        return [self.site_packages() / "aioquic"]

    def modules(self) -> tuple[str, ...]:
        """The modules that its process imports."""
        return (f"{DRIVER.name}.__main__",)

    def mounts(self) -> dict[str, Path]:
        """Our packages, the site-packages of aioquic, and the byte code of all."""
        packages = {**self.packages(), self.site_mount: self.site_packages()}
        words = [python(), *FLAGS]
        path = self.env()["PYTHONPATH"]
        code = byte_code.mounts(self.name, words, self.modules(), path, packages, self.version())
        return {**packages, **code}

    def env(self) -> dict[str, str]:
        """The folders to import from; hides the processor's random numbers, so that runs repeat."""
        return {
            "PYTHONPATH": f"{self.mount}:{self.site_mount}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            **NO_RANDOM_INSTRUCTIONS,
        }


def python() -> str:
    """An interpreter of this environment's version: the system's, else the environment's own.

    Distributions use profile-guided optimization, which saves aioquic a tenth of its time.
    """
    system = Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
    return str((system if system.exists() else Path(sys.executable)).resolve())


def driver_fingerprint(folder: Path = DRIVER) -> str:
    """12 hexadecimal digits over the driver, aioquic's own files, and its dependencies.

    The version alone is not enough, because the files of a checkout change without it.
    """
    package = site_packages_of("aioquic") / "aioquic"
    files = [path for path in package.rglob("*") if path.suffix in (".py", ".so")]
    driver = fingerprint(folder.glob("*.py"))  # apart: files count in the order of their paths
    return fingerprint(files, driver, byte_code.version(), *FLAGS, *_needs())


def _needs() -> list[str]:
    """Versions of the packages that aioquic requires."""
    names = [re.split(r"[^\w.-]", need)[0] for need in importlib.metadata.requires("aioquic") or []]
    return sorted(
        f"{dist.name} {dist.version}"
        for name in names
        for dist in importlib.metadata.distributions(name=name)
    )


def site_packages_of(package: str) -> Path:
    """The folder that a package of this environment is in, found without importing it."""
    spec = importlib.util.find_spec(package)
    if not spec or not spec.origin:
        raise StackNotReady(
            f"{package} is missing in this Python environment; pip install {package}"
        )
    return Path(spec.origin).parents[1]


register(AioQuic())
