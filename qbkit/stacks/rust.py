"""Stacks from crates: one program for each in the workspace ``drivers/rust``, built on demand."""

from __future__ import annotations

import os
import shutil
import tempfile
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from qbkit.errors import StackNotReady
from qbkit.stacks.base import Say, Stack, Status
from qbkit.stacks.build import build_once, built_folder, fingerprint, is_installed, run_tool

WORKSPACE = Path(__file__).parent / "drivers/rust"


class RustStack(Stack):
    """A crate and our driver of it, the member ``<name>-flow`` of the workspace."""

    crate: ClassVar[str]
    """The stack's crate, whose version in Cargo.lock is the stack's version."""
    workspace: ClassVar[Path] = WORKSPACE
    """Folder of the driver's member and of Cargo.lock."""
    tools: ClassVar[dict[str, str]] = {}
    """What the build needs besides cargo: program or library → Debian package."""
    build_env: ClassVar[dict[str, str]] = {}
    """Environment variables that the crate's build reads."""
    minutes: ClassVar[int] = 1
    """Approximate time of the build on one processor."""

    def version(self) -> str:
        """Versions of the crate and of our driver."""
        return f"{locked_version(self.crate, self.workspace)}, driver {self._key()}"

    def status(self) -> Status:
        """Ready once built."""
        if (self._folder() / self._program()).exists():
            return Status(True)
        how = f"qbkit stacks build {self.name}"
        missing = self._missing()
        return Status(False, f"{missing}, then: {how}" if missing else how)

    def build(self, say: Say = lambda _: None) -> None:
        """Compile the driver and its crates in a scratch folder; keep the program."""
        if self.status().ready:
            return
        if missing := self._missing():
            raise StackNotReady(f"{self.name} cannot be built here; {missing}")
        say(f"building {self.name} (about {self.minutes} min on one processor)")
        build_once(self.name, self._key(), self._compile)

    def program(self) -> list[str]:
        """The compiled driver."""
        return [f"{self._mount()}/{self._program()}"]

    def mounts(self) -> dict[str, Path]:
        """The folder of the compiled driver."""
        return {self._mount(): self._folder()}

    def env(self) -> dict[str, str]:
        """Hide the processor's random numbers from BoringSSL and the like, so that runs repeat."""
        return {"OPENSSL_ia32cap": "~0x4000000000000000:~0x40000"}

    def _program(self) -> str:
        return f"{self.name}-flow"

    def _mount(self) -> str:
        return f"/run/qb/stacks/{self.name}"

    def _folder(self) -> Path:
        return built_folder(self.name, self._key())

    def _missing(self) -> str:
        """What to install first, in words; empty when nothing is missing."""
        needs = {"cargo": "Rust 1.85 or newer (rustup.rs)", **self.tools}
        absent = [package for tool, package in needs.items() if not is_installed(tool)]
        return f"install {', '.join(absent)}" if absent else ""

    def _key(self) -> str:
        """Fingerprint of the driver, our crates in it, the locked crates and the compiler."""
        crates = locked_crates(self._program(), self.workspace)
        folders = self._driver_folders()
        sources = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        return fingerprint(sources, *crates, _compiler())

    def _driver_folders(self) -> list[Path]:
        """The folders of our crates that the driver is compiled from."""
        crates = locked_crates(self._program(), self.workspace)
        ours = [name for name, _, checksum in (line.split(" ") for line in crates) if not checksum]
        return [_first_existing(self.workspace / name, WORKSPACE / name) for name in ours]

    def _compile(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder, prefix="target-") as target:
            env = {**os.environ, **self.build_env, "CARGO_TARGET_DIR": target}
            words = ["cargo", "build", "--release", "--locked", "--package", self._program()]
            run_tool(words, self.name, env, self.workspace)
            shutil.copy2(Path(target) / "release" / self._program(), folder)


def locked_version(crate: str, workspace: Path = WORKSPACE) -> str:
    """The version of a crate in a workspace's Cargo.lock."""
    return next(p["version"] for p in _locked(workspace) if p["name"] == crate)


def locked_crates(member: str, workspace: Path = WORKSPACE) -> list[str]:
    """``name version checksum`` of every crate that a member of the workspace is built from.

    Not the whole lock file: a change for one stack must not build the others again.
    """
    named: dict[str, list[dict[str, Any]]] = {}
    for package in _locked(workspace):
        named.setdefault(package["name"], []).append(package)
    found: dict[str, None] = {}
    wanted = [member]
    while wanted:
        name, _, version = wanted.pop().partition(" ")
        for package in named[name]:
            line = f"{name} {package['version']} {package.get('checksum', '')}"
            if line not in found and version in ("", package["version"]):
                found[line] = None
                wanted += package.get("dependencies", [])
    return sorted(found)


def _locked(workspace: Path) -> list[dict[str, Any]]:
    return _packages((workspace / "Cargo.lock").read_text())


@cache
def _packages(lock: str) -> list[dict[str, Any]]:
    """The packages of a lock file, cached because a sweep asks for them in every run."""
    packages: list[dict[str, Any]] = tomllib.loads(lock)["package"]
    return packages


def _first_existing(*folders: Path) -> Path:
    return next(folder for folder in folders if folder.is_dir())


@cache
def _compiler() -> str:
    return run_tool(["rustc", "--version"], "Rust") if shutil.which("rustc") else ""
