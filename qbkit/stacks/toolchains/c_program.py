"""Stacks in C: a driver in ``drivers/c``, compiled with the stack's library, built on demand."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from qbkit.spec.app import APPS
from qbkit.stacks.base import Stack
from qbkit.stacks.toolchains.above import ABOVE, with_above
from qbkit.stacks.toolchains.build import build_once, fingerprint, run_tool
from qbkit.stacks.toolchains.compiled import CompiledStack
from qbkit.stacks.toolchains.sources import together

DRIVERS = Path(__file__).parents[1] / "drivers/c"
SHARED = ("arguments", "ends", "tables", "udp")
SHARED_ABOVE = (*SHARED, "above")
FLAGS = ("-O2", "-pthread", "-D_GNU_SOURCE")
OBJECT = "library.o"
"""A stack's library as one object file."""


class CStack(CompiledStack):
    """A library in C and our driver of it, ``<name>_flow.c``, which shares `SHARED`.

    The library is built and kept by itself, so that another driver costs no build of it.
    """

    ip6 = True
    apps = APPS
    number: ClassVar[str]
    """The library's version."""
    drivers: ClassVar[Path] = DRIVERS
    """Folder of our driver and what it shares."""
    shared: ClassVar[tuple[str, ...]] = SHARED
    defines: ClassVar[tuple[str, ...]] = ()
    """Preprocessor flags of driver and library."""
    links: ClassVar[tuple[str, ...]] = ()
    """Linker flags."""

    def version(self) -> str:
        """Versions of the library and of our driver."""
        return f"{self.number}, driver {self._key()}"

    @abstractmethod
    def library_key(self) -> str:
        """Over the library's sources and how they are compiled."""

    @abstractmethod
    def include(self) -> list[Path]:
        """Folders of the library's headers, fetched if they are missing."""

    @abstractmethod
    def compile_library(self, target: Path) -> None:
        """Fetch the sources, and compile them to one object file."""

    def library_name(self) -> str:
        """What the library's folder is called; releases share the library of equal sources."""
        return f"{self._name_alone()}-library"

    def _needs(self) -> dict[str, str]:
        return {"gcc": "gcc", **self.tools, "tar": "tar"}

    def _key(self) -> str:
        """Over our driver and the library in it; part of the version."""
        files = [*self._sources(), self.drivers / "flow.h"]
        return fingerprint(files, self.library_key(), *FLAGS, *self.defines, *self.links)

    def _sources(self) -> list[Path]:
        names = (*self.shared, f"{self._name_alone()}_flow")
        return [self.drivers / f"{name}.c" for name in names]

    def for_app(self) -> Stack:
        """Its driver with something above the transport."""
        folder, links = together("c-app", (DRIVERS, ABOVE / "c")), (*self.links, "-lm")
        return with_above(self, drivers=folder, shared=SHARED_ABOVE, links=links)

    def _compile(self, folder: Path) -> None:
        library = build_once(
            self.library_name(),
            self.library_key(),
            lambda target: self.compile_library(target / OBJECT),
        )
        include = [word for path in self.include() for word in ("-isystem", str(path))]
        flags = [*FLAGS, *self.defines, f"-I{self.drivers}", *include]
        files = [*self._sources(), library / OBJECT]
        target = folder / self._program()
        run_tool(["gcc", *flags, "-o", target, *files, *self.links], self.name)
