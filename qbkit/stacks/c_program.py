"""Stacks in C: a driver in ``drivers/c``, compiled with the stack's library, built on demand."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from qbkit.errors import StackNotReady
from qbkit.stacks.base import Say, Stack, Status
from qbkit.stacks.build import build_once, built_folder, fingerprint, is_installed, run_tool

DRIVERS = Path(__file__).parent / "drivers/c"
SHARED = ("arguments", "tables", "udp")
FLAGS = ("-O2", "-pthread", "-D_GNU_SOURCE")
OBJECT = "library.o"
"""A stack's library as one object file."""


class CStack(Stack):
    """A library in C and our driver of it, ``<name>_flow.c``, which shares `SHARED`.

    The library is built and kept by itself, so that another driver costs no build of it.
    """

    tools: ClassVar[dict[str, str]]
    """What the build needs: program, header or library → Debian package."""
    defines: ClassVar[tuple[str, ...]] = ()
    """Preprocessor flags of driver and library."""
    links: ClassVar[tuple[str, ...]] = ()
    """Linker flags."""
    minutes: ClassVar[int] = 1
    """Approximate time of the build on one processor."""

    @abstractmethod
    def library_key(self) -> str:
        """Over the library's sources and how they are compiled."""

    @abstractmethod
    def include(self) -> list[Path]:
        """Folders of the library's headers, fetched if they are missing."""

    @abstractmethod
    def compile_library(self, target: Path) -> None:
        """Fetch the sources, and compile them to one object file."""

    def status(self) -> Status:
        """Ready once built."""
        if (self._folder() / self._program()).exists():
            return Status(True)
        how = f"qbkit stacks build {self.name}"
        missing = self._missing()
        return Status(False, f"{missing}, then: {how}" if missing else how)

    def build(self, say: Say = lambda _: None) -> None:
        """Fetch the sources and compile them with our driver."""
        if self.status().ready:
            return
        if missing := self._missing():
            raise StackNotReady(f"{self.name} cannot be built here; {missing}")
        say(f"building {self.name} (about {self.minutes} min on one processor)")
        build_once(self.name, self.key(), self._compile)

    def program(self) -> list[str]:
        """The compiled driver."""
        return [f"{self._mount()}/{self._program()}"]

    def mounts(self) -> dict[str, Path]:
        """The folder of the compiled driver."""
        return {self._mount(): self._folder()}

    def env(self) -> dict[str, str]:
        """Hide the processor's random numbers from OpenSSL and BoringSSL, so that runs repeat."""
        return {"OPENSSL_ia32cap": "~0x4000000000000000:~0x40000"}

    def key(self) -> str:
        """Over our driver and the library in it; part of the version."""
        files = [*self._sources(), DRIVERS / "flow.h"]
        return fingerprint(files, self.library_key(), *FLAGS, *self.defines, *self.links)

    def _program(self) -> str:
        return f"{self.name}-flow"

    def _mount(self) -> str:
        return f"/run/qb/stacks/{self.name}"

    def _folder(self) -> Path:
        return built_folder(self.name, self.key())

    def _sources(self) -> list[Path]:
        return [DRIVERS / f"{name}.c" for name in (*SHARED, f"{self.name}_flow")]

    def _missing(self) -> str:
        """What to install first, in words; empty when nothing is missing."""
        absent = {package for tool, package in self.tools.items() if not is_installed(tool)}
        return f"install {', '.join(sorted(absent))}" if absent else ""

    def _compile(self, folder: Path) -> None:
        library = build_once(
            f"{self.name}-library",
            self.library_key(),
            lambda target: self.compile_library(target / OBJECT),
        )
        include = [word for path in self.include() for word in ("-isystem", str(path))]
        flags = [*FLAGS, *self.defines, f"-I{DRIVERS}", *include]
        files = [*self._sources(), library / OBJECT]
        target = folder / self._program()
        run_tool(["gcc", *flags, "-o", target, *files, *self.links], self.name)
