"""Releases of aioquic, each installed by pip into a folder of its own.

aioquic 0.9.20 and earlier are left out: they have one fixed controller, and no wheel for the
versions of Python that qbkit needs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

from qbkit.stacks.aioquic import DRIVER, FLAGS, SITE_MOUNT, AioQuic
from qbkit.stacks.base import Say, Stack, Status, changed
from qbkit.stacks.registry import register_releases
from qbkit.stacks.release import ALL_ABOVE, SOURCES, Generation, LockedRelease, Releases
from qbkit.stacks.releases import wheels
from qbkit.stacks.toolchains import byte_code
from qbkit.stacks.toolchains.build import build_once, built_folder, fingerprint, python_identity

ADAPTERS = SOURCES / "aioquic"


class AioQuicRelease(LockedRelease, AioQuic):
    """A release of aioquic."""

    origin = "the Python package aioquic {version}"
    installed: ClassVar[Path | None] = None
    """The installed packages, where they are those of another driver."""

    @classmethod
    def own(cls, version: str, generation: Generation) -> dict[str, object]:
        """Its adapter, and a place for its packages: another release may be in the same guest."""
        site = f"{SITE_MOUNT}-{version}"
        return {"package": generation.sources[-1].name, "site_mount": site}

    def for_app(self) -> Stack:
        """The driver with something above the transport, and the same packages."""
        return changed(super().for_app(), installed=self._folder())

    def version(self) -> str:
        """Version of the package, and a fingerprint of the driver and all that it runs with."""
        return f"{self.number}, driver {fingerprint([], self._key(), self.site_mount)}"

    def status(self) -> Status:
        """Ready once installed."""
        if self._folder().exists():
            return Status(True)
        return Status(False, f"qbkit stacks build {self.name}")

    def build(self, say: Say = lambda _: None) -> None:
        """Install the release and what it needs with pip; raises StackNotReady."""
        if self.status().ready:
            return
        say(f"installing {self.name} into a folder of its own")
        self.lock()
        build_once(self.name, self._key(), self._install)

    def released(self) -> list[str]:
        """The versions of aioquic's wheel."""
        return wheels.versions(self.of.name)

    def site_packages(self) -> Path:
        """The folder of the installed packages."""
        return self._folder()

    def packages(self) -> dict[str, Path]:
        """The driver, and its adapter if it needs one."""
        folders = {folder.name: folder for folder in self.generation.sources}
        folders[DRIVER.name] = self.driver
        return {f"{self.mount}/{name}": folder for name, folder in folders.items()}

    def modules(self) -> tuple[str, ...]:
        """The modules that its process imports."""
        return (f"{self.package}.__main__",)

    def _folder(self) -> Path:
        return self.installed or built_folder(self.name, self._key())

    def _locked_key(self) -> str:
        """Over the driver, the locked packages and the interpreter."""
        words = [*FLAGS, byte_code.version(), python_identity(Path(sys.executable))]
        folders = list(self.generation.sources)
        if self.driver != DRIVER:  # apart: files count in the order of their paths
            folders.remove(DRIVER)
            words.append(fingerprint(self.driver.glob("*.py")))
        sources = [file for folder in folders for file in folder.glob("*.py")]
        return fingerprint(sources, self._lock_file().read_text(), *words)

    def _choose(self) -> None:
        """Note the release and the newest packages that it works with."""
        packages = wheels.chosen(f"{self.of.name}=={self.number}", what=self.name)
        named = [package["metadata"] for package in packages]
        lines = sorted(f"{one['name']}=={one['version']}\n" for one in named)
        self._write_lock_file("".join(lines))

    def _install(self, folder: Path) -> None:
        words = ["--no-deps", "--no-compile", "--target", str(folder), "-r", str(self._lock_file())]
        wheels.pip_install(*words, what=self.name)


def _generation(since: str, *sources: Path) -> Generation:
    return Generation(since, sources, ("cubic", "reno"), above=ALL_ABOVE)


RELEASES = Releases(
    name=AioQuic.name,
    package="wheel aioquic",
    generations=(
        _generation("0.9.21", DRIVER, ADAPTERS / "aioquic_before_1_2"),
        _generation("1.2.0", DRIVER),
    ),
    built=("0.9.25", "1.0.0", "1.2.0", "1.3.0", "1.4.0", "1.7.2"),
    make=AioQuicRelease.make,
)

register_releases(RELEASES)
