"""Drivers in Java, and how their programs run in a guest."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.spec.app import APPS
from qbkit.stacks.base import Stack
from qbkit.stacks.toolchains.above import ABOVE, SUFFIX, with_above
from qbkit.stacks.toolchains.compiled import CompiledStack
from qbkit.stacks.toolchains.sources import together

IP4_ALONE = "-Djava.net.preferIPv4Stack=true"
JVM_FLAGS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # the second compiler costs more than its code saves
    "-XX:-UsePerfData",
    IP4_ALONE,
)


class JavaStack(CompiledStack):
    """A stack whose driver is classes of the package ``flow``."""

    sources: ClassVar[Path]
    """Folder of the driver's files."""
    flags: ClassVar[tuple[str, ...]]
    """How Java runs it."""
    ip6 = True
    apps = APPS
    reads_slowly = offers_window = True

    def for_app(self) -> Stack:
        """The same driver with what `ABOVE` adds to it, and sockets of both IP versions."""
        parts = (self.sources, ABOVE / "java", ABOVE / self.sources.name)
        folder = together(f"{self.name}{SUFFIX}-sources", parts)
        flags = tuple(flag for flag in self.flags if flag != IP4_ALONE)
        return with_above(self, sources=folder, flags=flags)

    def _files(self) -> list[Path]:
        return sorted(self.sources.rglob("*.java"))

    def _program(self) -> str:
        return "classes"
