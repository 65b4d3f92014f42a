"""Drivers in Go: their module, with the release it requires, compiled with our runtime."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import ClassVar

from qbkit.stacks.base import Stack
from qbkit.stacks.toolchains import go_runtime
from qbkit.stacks.toolchains.above import ABOVE, SUFFIX, with_above
from qbkit.stacks.toolchains.build import fingerprint, key_by_compiler, run_tool
from qbkit.stacks.toolchains.compiled import CompiledStack
from qbkit.stacks.toolchains.sources import together

FLAGS = ("-trimpath", "-ldflags=-s -w")
GO = {"go": "Go 1.26 or newer"}


class GoStack(CompiledStack):
    """A stack that is a Go module; its driver requires one version of it."""

    tools: ClassVar[dict[str, str]] = GO
    module: ClassVar[str]
    """The module whose version counts."""
    sources: ClassVar[Path]
    """The driver's own module."""
    flags: ClassVar[tuple[str, ...]] = FLAGS
    changes: ClassVar[tuple[str, ...]] = ()
    """What the build changes in the stack's module, as far as the program depends on it."""
    cgo: ClassVar[bool] = False
    """Whether the driver contains C or C++."""
    more_above: ClassVar[tuple[str, ...]] = ()
    """Further folders of `ABOVE` that `for_app` adds."""

    def for_app(self) -> Stack:
        """The same driver with what `ABOVE` adds to it."""
        above = (ABOVE / name for name in ("go", self.sources.name, *self.more_above))
        folder = together(f"{self.name}{SUFFIX}-sources", (self.sources, *above))
        return with_above(self, sources=folder)

    def module_folder(self) -> Path:
        """The driver's module, with the version of the stack in its go.mod."""
        return self.sources

    def version(self) -> str:
        """Version of the stack's module, and of our driver."""
        return f"{self.required(self.module)}, driver {self._key()}"

    def required(self, module: str) -> str:
        """The version of a module that go.mod requires."""
        words = (self.module_folder() / "go.mod").read_text().split()
        return words[words.index(module) + 1].removeprefix("v")

    def sources_at_hand(self) -> list[Path]:
        """The module, where Go unpacked it."""
        path = os.environ.get("GOPATH", str(Path.home() / "go")).split(os.pathsep)[0]
        unpacked = Path(os.environ.get("GOMODCACHE", Path(path, "pkg/mod")))
        folder = unpacked / f"{self.module}@v{self.required(self.module)}"
        return [folder] if folder.exists() else []

    def env(self) -> dict[str, str]:
        """Preemption by signals costs system calls, and the guest has one processor anyway."""
        return {"GODEBUG": "asyncpreemptoff=1"}

    def _key(self) -> str:
        """Over the driver, the changes to the runtime, and the compiler (as far as known)."""
        module = self.module_folder()
        sources = [*module.glob("*.go"), module / "go.mod", module / "go.sum"]
        ours = (*self.changes, *self.flags, go_runtime.fingerprint())
        return key_by_compiler(
            self.name, "go", go_compiler(), lambda words: fingerprint(sources, *ours, words)
        )

    def _compile(self, folder: Path) -> None:
        module = self.module_folder()
        root = Path(run_go(["env", "GOROOT"], self.name, module).strip())
        flags = [*self.flags, "-o", str(folder / self._program())]
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            overlay = go_runtime.overlay(root, Path(scratch))
            run_go(["build", *flags, *overlay, "."], self.name, module, cgo=self.cgo)


@cache
def go_compiler() -> str:
    """The compiler's version; empty where there is none."""
    return run_tool(["go", "version"], "drivers in Go") if shutil.which("go") else ""


def run_go(
    words: list[str], what: str, folder: Path, *, mod: str = "readonly", cgo: bool = False
) -> str:
    """Run the go command in the folder of a module; raises StackNotReady with its last words."""
    flags = f"-mod={mod} -buildvcs=false"
    env = {**os.environ, "CGO_ENABLED": str(int(cgo)), "GOFLAGS": flags}
    return run_tool(["go", *words], what, env, folder)
