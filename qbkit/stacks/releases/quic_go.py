"""Releases of quic-go: our driver with the files of a generation, and a go.sum of its own.

0.36 and earlier are left out: they carry copies of the standard library's TLS (qtls) for Go 1.20
and older alone.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import ClassVar

from qbkit.errors import StackNotReady
from qbkit.files import write_whole
from qbkit.stacks.base import Say
from qbkit.stacks.quic_go import MODULE, MOUNT, SOURCES, QuicGo, run_go
from qbkit.stacks.registry import register_releases
from qbkit.stacks.release import SOURCES as ADAPTERS
from qbkit.stacks.release import Generation, Releases, release_folder

UPLOADS = ("main.go", "recv.go", "send.go", "socket.go", "sampler.go", "types.go", "telemetry.go")
"""The present driver's files for flows of its own; the others serve browsers and the web."""
NO_SUCH_VERSION = re.compile(r"unknown revision|404 Not Found|no matching versions")


class QuicGoRelease(QuicGo):
    """A release of quic-go; `_make` makes the class of one.

    Its module in the cache holds the driver, put together from the present one and the folders of
    its generation, and the go.mod and go.sum that go made at the first build.
    """

    of: ClassVar[Releases]
    number: ClassVar[str]
    generation: ClassVar[Generation]
    options: ClassVar[dict[str, str]] = {}

    def module_folder(self) -> Path:
        """The module in the cache."""
        return release_folder(self.name)

    def version(self) -> str:
        """Version of the module, and of our driver."""
        return f"{self.number}, driver {self._key()}"

    def build(self, say: Say = lambda _: None) -> None:
        """Lock the modules at the first build, then compile; raises StackNotReady."""
        if shutil.which("go"):
            self._put_together()
            if not (self.module_folder() / "go.sum").exists():
                self._lock()
        super().build(say)

    def _key(self) -> str:
        """The same fingerprint as today's; none before the modules are locked."""
        return super()._key() if (self.module_folder() / "go.sum").exists() else "unlocked"

    def _put_together(self) -> None:
        """Copy the driver's files, those of the generation in place of today's."""
        files = {name: SOURCES / name for name in UPLOADS}
        for folder in self.generation.sources:
            files |= {file.name: file for file in folder.glob("*.go")}
        self.module_folder().mkdir(parents=True, exist_ok=True)
        for name, file in files.items():
            write_whole(self.module_folder() / name, file.read_bytes())

    def _lock(self) -> None:
        """Let go choose the modules that this release needs."""
        (language,) = re.findall(r"^go \S+$", (SOURCES / "go.mod").read_text(), re.M)
        required = f"require {MODULE} v{self.number}"
        wanted = f"module qbkit/stacks/quic-go\n\n{language}\n\n{required}\n"
        write_whole(self.module_folder() / "go.mod", wanted.encode())
        try:
            run_go(["mod", "tidy"], self.name, self.module_folder(), mod="mod")
        except StackNotReady as error:
            shutil.rmtree(self.module_folder())
            if NO_SUCH_VERSION.search(str(error)):
                raise self.of.unknown(self.number) from None
            raise


def _make(releases: Releases, version: str, generation: Generation) -> QuicGoRelease:
    attributes = {
        "name": f"{QuicGo.name}@{version}",
        "source": f"Go module {MODULE} {version}; CUBIC by one changed Boolean",
        "mount": f"{MOUNT}@{version}",
        "of": releases,
        "number": version,
        "generation": generation,
    }
    made: QuicGoRelease = type("QuicGoRelease", (QuicGoRelease,), attributes)()
    return made


def _generation(since: str, *folders: str) -> Generation:
    return Generation(
        since, tuple(ADAPTERS / "quic-go" / name for name in folders), ("cubic", "reno")
    )


RELEASES = Releases(
    name=QuicGo.name,
    package=f"Go module {MODULE}",
    generations=(
        _generation("0.37.0", "uploads", "common", "tracer_interface", "interfaces"),
        _generation("0.40.0", "uploads", "common", "logging", "interfaces"),
        _generation("0.53.0", "uploads", "common", "logging"),
        _generation("0.56.0", "uploads"),
    ),
    built=("0.37.5", "0.41.0", "0.45.0", "0.48.2", "0.52.0", "0.55.0", "0.59.1", "0.65.0"),
    make=_make,
)

register_releases(RELEASES)
