"""Our programs that are compiled here, once, into the cache: drivers of stacks, and servers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from qbkit.errors import StackNotReady
from qbkit.stacks.base import Say, Stack, Status
from qbkit.stacks.toolchains.above import drivers_above, name_below
from qbkit.stacks.toolchains.build import build_once, built_folder, is_installed
from qbkit.stacks.toolchains.processor import NO_RANDOM_INSTRUCTIONS


class CompiledProgram(ABC):
    """Our program, ready once it is compiled; its fingerprint is part of the version."""

    name: ClassVar[str]
    """Name as users write it."""
    tools: ClassVar[dict[str, str]] = {}
    """What the build needs: program, header or library → Debian package."""
    minutes: ClassVar[int] = 1
    """Approximate time of the build on one processor."""

    def status(self) -> Status:
        """Ready once built."""
        if (self._folder() / self._program()).exists():
            return Status(True)
        how = self._how()
        missing = self._missing()
        return Status(False, f"{missing}, then: {how}" if missing else how)

    def build(self, say: Say = lambda _: None) -> None:
        """Fetch the sources of others and compile them with ours; keep the program."""
        if self.status().ready:
            return
        if missing := self._missing():
            raise StackNotReady(f"{self.name} cannot be built here; {missing}")
        say(f"building {self.name} (about {self.minutes} min on one processor)")
        build_once(self.name, self._key(), self._compile)

    def program(self) -> list[str]:
        """The compiled program."""
        return [f"{self._mount()}/{self._program()}"]

    def mounts(self) -> dict[str, Path]:
        """The folder of the compiled program."""
        return {self._mount(): self._folder()}

    def env(self) -> dict[str, str]:
        """Hide the processor's random numbers from OpenSSL and the like, so that runs repeat."""
        return NO_RANDOM_INSTRUCTIONS

    @abstractmethod
    def _key(self) -> str:
        """Fingerprint of all that the program depends on."""

    @abstractmethod
    def _compile(self, folder: Path) -> None:
        """Compile the program into an empty folder."""

    @abstractmethod
    def _program(self) -> str:
        """File name of the program."""

    @abstractmethod
    def _how(self) -> str:
        """The command that builds it."""

    def _needs(self) -> dict[str, str]:
        return self.tools

    def _mount(self) -> str:
        return f"/run/qb/stacks/{self.name}"

    def _folder(self) -> Path:
        return built_folder(self.name, self._key())

    def _missing(self) -> str:
        """What to install first, in words; empty when nothing is missing."""
        absent = [package for tool, package in self._needs().items() if not is_installed(tool)]
        return f"install {', '.join(dict.fromkeys(absent))}" if absent else ""


class CompiledStack(CompiledProgram, Stack):
    """A stack whose driver is ``<name>-flow``, as are those of its releases."""

    controller_names: ClassVar[tuple[str, ...]]
    """Names of its congestion controllers."""

    def controllers(self) -> tuple[str, ...]:
        """Those of its present version."""
        return self.controller_names

    def build(self, say: Say = lambda _: None) -> None:
        """Compile the driver, and those with something above it where there are any."""
        super().build(say)
        for driver in drivers_above(self):
            driver.build(say)

    def _program(self) -> str:
        return f"{self._name_alone()}-flow"

    def _how(self) -> str:
        return f"qbkit stacks build {name_below(self.name)}"

    def _name_alone(self) -> str:
        """The name without the version of a release, and without what is above the stack."""
        return name_below(self.name).partition("@")[0]
