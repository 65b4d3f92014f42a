"""Crates and our programs of them, members of the workspace ``drivers/rust``, built on demand."""

from __future__ import annotations

import os
import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from qbkit.settings import writable_folder
from qbkit.spec.app import APPS
from qbkit.stacks.base import Say, Stack
from qbkit.stacks.toolchains.above import ABOVE, SERVER, with_above
from qbkit.stacks.toolchains.build import build_once, fingerprint, key_by_compiler, run_tool
from qbkit.stacks.toolchains.compiled import CompiledProgram, CompiledStack
from qbkit.stacks.toolchains.sources import files_of, put_together

TARGET = "CARGO_TARGET_DIR"
Members = Mapping[str, tuple[str, ...]]
"""Members of a workspace → the folders of `ABOVE` that change them."""
MEMBERS_ABOVE: Members = {
    "quinn-flow": ("rust", "resume", "quinn"),
    "noq-flow": ("noq",),
    "quiche-flow": ("rust", "resume", "quiche-streams", "quiche"),
    "s2n-quic-flow": ("rust", "s2n-quic"),
    "tquic-flow": ("rust", "tquic"),
    "msquic-flow": ("rust", "msquic"),
    "common": ("common",),
    "udp": ("udp",),
}
MEMBERS_SERVING: Members = {
    "quiche-flow": ("quiche-server",),
    "s2n-quic-flow": ("s2n-quic-server",),
}
"""Members → what else makes servers of them that send, so that other runs stay as they are."""
CMAKE = {"cmake": "cmake", "c++": "g++"}
"""What the build of a crate needs that compiles C++ by CMake."""
WORKSPACE = Path(__file__).parents[1] / "drivers/rust"


class RustProgram(CompiledProgram):
    """A crate and our program of it, a member of the workspace."""

    crate: ClassVar[str]
    """The crate, whose version in Cargo.lock is the program's version."""
    transport_crate: ClassVar[str] = ""
    """The crate with the transport, if it is another one."""
    workspace: ClassVar[Path] = WORKSPACE
    """Folder of the program's member and of Cargo.lock."""
    build_env: ClassVar[dict[str, str]] = {}
    """Environment variables that the crate's build reads."""
    target: str = ""
    """Cargo's folder while more than one program is built in it."""

    def version(self) -> str:
        """Versions of the crate and of our program."""
        return f"{self._crate_version()}, driver {self._key()}"

    def transport(self) -> str:
        """The crate with the transport, and its locked version."""
        name = self.transport_crate
        return f"{name} {locked_version(name, self.workspace)}" if name else ""

    def _crate_version(self) -> str:
        return locked_version(self.crate, self.workspace)

    def _needs(self) -> dict[str, str]:
        return {"cargo": "Rust 1.85 or newer (rustup.rs)", **self.tools}

    def _key(self) -> str:
        """Fingerprint of the program, our crates in it, the locked crates and the compiler."""
        crates = locked_crates(self._program(), self.workspace)
        sources = list(files_of(self._driver_folders()))
        return key_by_compiler(
            self.name, "rustc", _compiler(), lambda words: fingerprint(sources, *crates, words)
        )

    def sources_at_hand(self) -> list[Path]:
        """The crate, and those of its name with an ending, where cargo unpacked them."""
        registry = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "registry/src"
        crates = (line.split(" ") for line in locked_crates(self._program(), self.workspace))
        mine = [
            f"{name}-{version}"
            for name, version, _ in crates
            if name == self.crate or name.startswith(f"{self.crate}-")
        ]
        return [path for name in mine for path in sorted(registry.glob(f"*/{name}"))[:1]]

    def _driver_folders(self) -> list[Path]:
        """The folders of our crates that the program is compiled from."""
        beside = self.workspace.parent / WORKSPACE.name
        places = (self.workspace, beside, WORKSPACE)
        return [_first_existing(*(place / name for place in places)) for name in self._ours()]

    def _ours(self) -> list[str]:
        """Our crates that the program is compiled from."""
        crates = locked_crates(self._program(), self.workspace)
        return [name for name, _, checksum in (line.split(" ") for line in crates) if not checksum]

    def _compile(self, folder: Path) -> None:
        # Who works on a driver sets Cargo's own variable, to keep compiled crates between builds.
        if kept := self.target or os.environ.get(TARGET):
            self._cargo_build(Path(kept), folder)
            return
        with tempfile.TemporaryDirectory(dir=folder, prefix="target-") as target:
            self._cargo_build(Path(target), folder)

    def _cargo_build(self, target: Path, folder: Path) -> None:
        """Compile in ``target``; keep the program in ``folder``, or the log of a failure."""
        env = {**os.environ, **self.build_env, TARGET: str(target)}
        # Cargo tells our crates in one workspace from those in another by their times alone.
        ours = [word for name in self._ours() for word in ("--package", name)]
        run_tool(["cargo", "clean", "--release", "--locked", *ours], self.name, env, self.workspace)
        words = ["cargo", "build", "--release", "--locked", "--package", self._program()]
        run_tool(words, self.name, env, self.workspace, log=folder / "build.log")
        shutil.copy2(target / "release" / self._program(), folder)


class RustStack(RustProgram, CompiledStack):
    """A crate and our driver of it, the member ``<name>-flow`` of the workspace.

    A driver has all of this above its transport, unless its stack says otherwise.
    """

    apps = APPS
    reads_slowly = offers_window = True
    ip6 = True

    def build(self, say: Say = lambda _: None) -> None:
        """Compile the driver, and the one with something above it from the same crates."""
        if self.target:
            super().build(say)
            return
        with tempfile.TemporaryDirectory(dir=writable_folder(), prefix="target-") as target:
            self.target = os.environ.get(TARGET, target)
            super().build(say)
        self.target = ""

    def for_app(self) -> Stack:
        """Its driver with something above the transport."""
        return with_above(self, workspace=_workspace_above(), target=self.target)

    def for_server(self) -> Stack:
        """Its driver that sends as a server, too."""
        if self._program() not in MEMBERS_SERVING:
            return self.for_app()
        return with_above(self, SERVER, workspace=_workspace_serving(), target=self.target)


@cache
def _workspace_above() -> Path:
    """The workspace, with something above the transports of `MEMBERS_ABOVE`."""
    return _workspace_of("rust-app", MEMBERS_ABOVE)


@cache
def _workspace_serving() -> Path:
    """The same, with what makes servers of `MEMBERS_SERVING`."""
    more = {member: MEMBERS_SERVING.get(member, ()) for member in MEMBERS_ABOVE}
    members = {member: (*names, *more[member]) for member, names in MEMBERS_ABOVE.items()}
    return _workspace_of("rust-server", members)


def _workspace_of(name: str, members: Members) -> Path:
    """The workspace with members that folders of `ABOVE` change."""

    def make(folder: Path) -> None:
        shutil.copytree(WORKSPACE, folder, dirs_exist_ok=True)
        _change(folder, members)

    return build_once(name, fingerprint(files_of([WORKSPACE, *_folders(members)])), make)


def workspace_beside(workspace: Path, members: Members) -> Path:
    """A workspace beside ours, both with members that folders of `ABOVE` change.

    Its manifests name our crates by the place where they are beside it.
    """
    ours = _workspace_above()

    def make(folder: Path) -> None:
        shutil.copytree(ours, folder / WORKSPACE.name)
        shutil.copytree(workspace, folder / workspace.name)
        _change(folder / workspace.name, members)

    key = fingerprint(files_of([ours, workspace, *_folders(members)]))
    return build_once(f"{workspace.name}-app", key, make) / workspace.name


def folders_above(member: str, members: Members = MEMBERS_ABOVE) -> tuple[Path, ...]:
    """The folders of `ABOVE` that change a member of the workspace, in their order."""
    return tuple(ABOVE / name for name in members[member])


def _folders(members: Members) -> list[Path]:
    return [folder for member in members for folder in folders_above(member, members)]


def _change(workspace: Path, members: Members) -> None:
    for member in members:
        put_together(folders_above(member, members), workspace / member / "src")


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


def _compiler() -> str:
    found = shutil.which("rustc")
    return _version_of(found) if found else ""


@cache
def _version_of(rustc: str) -> str:
    return run_tool([rustc, "--version"], "Rust")
