"""Releases of Go modules: our driver with the files of a generation, and a go.sum of its own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import ClassVar

from qbkit.files import write_whole
from qbkit.stacks.base import Say
from qbkit.stacks.release import LockedRelease, release_folder
from qbkit.stacks.toolchains.golang import run_go


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

    def module_folder(self) -> Path:
        """The module in the cache."""
        return release_folder(self.name)

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

    def _put_together(self) -> None:
        """Copy the driver's files, those of the generation in place of today's."""
        files = {name: self.present / name for name in self.files}
        for folder in self.generation.sources:
            files |= {file.name: file for file in folder.glob("*.go")}
        for name, file in files.items():
            write_whole(self.module_folder() / name, file.read_bytes())

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
