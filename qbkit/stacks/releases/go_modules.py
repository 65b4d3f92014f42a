"""Releases of Go modules: our driver with the files of a generation, and a go.sum of its own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import ClassVar

from qbkit.files import write_whole
from qbkit.stacks.base import Say, Stack
from qbkit.stacks.release import LockedRelease
from qbkit.stacks.toolchains.above import ABOVE, SUFFIX, with_above
from qbkit.stacks.toolchains.build import build_once, fingerprint
from qbkit.stacks.toolchains.golang import run_go
from qbkit.stacks.toolchains.sources import files_of, put_together

LOCKED = ("go.mod", "go.sum")


class GoRelease(LockedRelease):
    """A release of a Go module; its stack's own class stands behind it.

    Its module in the cache holds the driver, put together from the present one and the folders of
    its generation, and the go.mod and go.sum that go made at the first build.
    """

    lock_name = "go.sum"
    module: ClassVar[str]
    """The Go module whose versions count."""
    present: ClassVar[Path]
    """The folder of the present driver."""
    files: ClassVar[tuple[str, ...]]
    """Those of its files that a release's driver has."""
    changed_above: ClassVar[tuple[str, ...]] = ()
    """Others that `ABOVE` changes, before a folder of the generation replaces them."""
    above: ClassVar[Path | None] = None
    """The module of the driver with something above the transport."""

    def module_folder(self) -> Path:
        """The module in the cache."""
        return self.above or self._lock_file().parent

    def for_app(self) -> Stack:
        """The driver with what `ABOVE` adds to the present one, and its generation to that."""
        if not self._lock_file().exists():
            return with_above(self)
        ours = self._files() | {name: self.present / name for name in self.changed_above}
        files = [*ours.values(), *(self._lock_file().with_name(name) for name in LOCKED)]
        names = ("go", self.present.name)
        above = (*(ABOVE / name for name in names), *self.generation.sources_above)

        def make(folder: Path) -> None:
            for file in files:
                shutil.copyfile(file, folder / file.name)
            put_together(above, folder)

        key = fingerprint([*files, *files_of(above)])
        return with_above(self, above=build_once(f"{self.name}{SUFFIX}-sources", key, make))

    def version(self) -> str:
        """Version of the module, and of our driver."""
        return f"{self.number}, driver {self._key()}"

    def build(self, say: Say = lambda _: None) -> None:
        """Lock the modules at the first build, then compile; raises StackNotReady."""
        if shutil.which("go"):
            self.lock()
            self._put_together()
        super().build(say)

    def released(self) -> list[str]:
        """The versions that the module proxy lists, withdrawn ones too."""
        words = ["list", "-m", "-versions", "-retracted", self.module]
        _, *versions = run_go(words, self.name, self.present).split()
        return [version.removeprefix("v") for version in versions]

    def _files(self) -> dict[str, Path]:
        """The driver's files by name, those of the generation in place of today's."""
        files = {name: self.present / name for name in self.files}
        for folder in self.generation.sources:
            files |= {file.name: file for file in folder.glob("*.go")}
        return files

    def _put_together(self) -> None:
        for name, file in self._files().items():
            write_whole(self._lock_file().with_name(name), file.read_bytes())

    def _choose(self) -> None:
        """Let go choose the modules that this release needs."""
        self._put_together()
        self.require()
        run_go(["mod", "tidy"], self.name, self.module_folder(), mod="mod")

    def require(self) -> None:
        """Write a go.mod that asks for this release, and for nothing else."""
        self.module_folder().mkdir(parents=True, exist_ok=True)
        (language,) = re.findall(r"^go \S+$", (self.present / "go.mod").read_text(), re.M)
        required = f"require {self.module} v{self.number}"
        wanted = f"module qbkit/stacks/{self.of.name}\n\n{language}\n\n{required}\n"
        write_whole(self.module_folder() / "go.mod", wanted.encode())
