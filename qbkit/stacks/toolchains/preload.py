"""Libraries that are preloaded into other people's programs to avoid useless system calls."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from qbkit.stacks.base import Stack
from qbkit.stacks.toolchains.build import compile_c, fingerprint

SOURCES = Path(__file__).parents[1] / "drivers/preload"


@dataclass(frozen=True)
class Library:
    """A library: the names of its C files without their suffix, and its folder in the guest."""

    name: str
    sources: tuple[str, ...]
    folder: str

    def env(self) -> dict[str, str]:
        """The environment of a program into which the library is preloaded."""
        return {"LD_PRELOAD": f"{self.folder}/{self.name}.so"}

    def version(self) -> str:
        """Version of the library; part of the version of each stack that preloads it."""
        return f"preload {fingerprint(self._files)}"

    def mounts(self) -> dict[str, Path]:
        """The folder of the library, compiled if it is missing."""
        return {self.folder: compile_c(self._files, f"{self.name}.so", shared=True).parent}

    @property
    def _files(self) -> list[Path]:
        return [SOURCES / f"{source}.c" for source in self.sources]


class Preloading(Stack):
    """A stack into whose programs a library is preloaded; before its own class in the bases."""

    preloaded: ClassVar[Library]

    def version(self) -> str:
        """The stack's version, and the library's."""
        return f"{super().version()}, {self.preloaded.version()}"  # type: ignore[safe-super]

    def mounts(self) -> dict[str, Path]:
        """The stack's folders, and the library's."""
        return {**super().mounts(), **self.preloaded.mounts()}

    def env(self) -> dict[str, str]:
        """The stack's environment, and the library's."""
        return {**super().env(), **self.preloaded.env()}


EVENT_LOOP = Library("fewer_calls", ("fewer_calls",), "/run/qb/stacks/preload")
ENVOY = Library("envoy", ("fewer_calls", "cycle_clock"), "/run/qb/stacks/preload-envoy")
CHROMIUM = Library("chromium", ("chromium",), "/run/qb/stacks/preload-chromium")
JDK = Library("yield", ("yield",), "/run/qb/stacks/preload-jdk")
