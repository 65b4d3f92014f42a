"""Releases of crates: our driver with the files of a generation, and a lock file of its own."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from qbkit.files import lock, write_whole
from qbkit.settings import cache_folder, writable_folder
from qbkit.stacks.base import Say, Stack, changed
from qbkit.stacks.release import SOURCES, Generation, LockedRelease, release_folder
from qbkit.stacks.toolchains.above import ABOVE, with_above
from qbkit.stacks.toolchains.build import build_once, fingerprint, run_tool
from qbkit.stacks.toolchains.rust import WORKSPACE, RustStack
from qbkit.stacks.toolchains.source_packages import crate_versions
from qbkit.stacks.toolchains.sources import files_of, put_together

OLD_RUSTLS = SOURCES / "rustls-0.20"
"""A client that believes any certificate, for drivers of crates with rustls 0.20 or 0.21."""


class CrateRelease(LockedRelease, RustStack):
    """A release of a crate; `crate_release` makes the class of one.

    Its workspace in the cache holds the driver, put together from the folders of its generation,
    and the Cargo.lock that cargo made at the first build.
    """

    lock_name = "Cargo.lock"
    ours: ClassVar[tuple[str, ...]]
    """Our crates beside the driver."""
    is_above: ClassVar[bool] = False
    """Whether it is the driver of ``for_app``, whose crates of ours `ABOVE` changes."""

    @classmethod
    def own(cls, version: str, generation: Generation) -> dict[str, object]:
        """Its workspace, and the options and reports that this generation of the driver has."""
        return {
            "workspace": release_folder(f"{cls.name}@{version}"),
            "options": {name: cls.options[name] for name in generation.options},
            "reports": generation.reports,
        }

    def build(self, say: Say = lambda _: None) -> None:
        """Lock the crates at the first build, then compile; raises StackNotReady."""
        if not self._missing():
            self.lock()
        super().build(say)

    def for_app(self) -> Stack:
        """The driver with what its generation adds, and the same other crates."""
        if not self._lock_file().exists():
            return with_above(self)
        sources = (*self.generation.sources, *self.generation.sources_above)
        generation = replace(self.generation, sources=sources)
        made = with_above(self, generation=generation, is_above=True)

        def make(folder: Path) -> None:
            shutil.copyfile(self._lock_file(), folder / self.lock_name)
            made._put_together(folder)

        files = files_of(made._driver_folders())
        key = fingerprint([*files, SOURCES / "Cargo.toml", self._lock_file()], self.number)
        return changed(made, workspace=build_once(f"{made.name}-sources", key, make))

    def released(self) -> list[str]:
        """The versions of the crate that nobody withdrew."""
        return crate_versions(self.crate)

    def _choose(self) -> None:
        """Let cargo choose the crates; the lock file appears when they are all known."""
        self._put_together(self.workspace)
        log = writable_folder() / "failures" / f"{self.name}.log"
        run_tool(["cargo", "generate-lockfile"], self.name, cwd=self.workspace, log=log)

    def _needs(self) -> dict[str, str]:
        return {**super()._needs(), "patch": "patch"}

    def _crate_version(self) -> str:
        return self.number

    def _driver_folders(self) -> list[Path]:
        ours = [folder for name in self.ours for folder in self._folders_of(name)]
        return [*self.generation.sources, *ours]

    def _folders_of(self, ours: str) -> list[Path]:
        """Those of a crate of ours, and of what changes its files."""
        return [WORKSPACE / ours, *([ABOVE / ours] if self.is_above else [])]

    def _compile(self, folder: Path) -> None:
        """Compile in a folder that all releases share, as most of their crates are the same."""
        self._put_together(self.workspace)
        target = cache_folder() / "releases/target"
        target.mkdir(parents=True, exist_ok=True)
        with lock(target / ".qbkit.lock"):
            self._cargo_build(target, folder)

    def _put_together(self, workspace: Path) -> None:
        """Write the workspace: the driver and our crates, with this release as the dependency."""
        member = workspace / self._program()
        for name in (member.name, *self.ours):
            shutil.rmtree(workspace / name, ignore_errors=True)
        put_together(self.generation.sources, member / "src")
        shutil.copyfile(SOURCES / "Cargo.toml", workspace / "Cargo.toml")
        for name in self.ours:
            present, *changes = self._folders_of(name)
            shutil.copytree(present, workspace / name)
            put_together(changes, workspace / name / "src")
        manifest = (member / "src/Cargo.toml").rename(member / "Cargo.toml")
        text = manifest.read_text()
        for crate, version in ((self.crate, self.number), *self.generation.others):
            text = pinned(text, crate, version)
        write_whole(manifest, text.encode())


def pinned(manifest: str, crate: str, version: str) -> str:
    """A manifest with exactly this version of the crate; ValueError if it names no such crate.

    The manifest may use the crate under another name: ``quinn = { package = "noq", ...``.
    """
    name = re.escape(crate)
    before = rf'(?:{name} = {{ |[\w-]+ = {{ package = "{name}", )version = '
    text, found = re.subn(rf'^({before})"[^"]*"', rf'\1"={version}"', manifest, flags=re.M)
    if found != 1:
        raise ValueError(f"the manifest names {crate} {found} times")
    return text


def crate_release(
    base: RustStack,
    crate: str,
    *,
    ours: tuple[str, ...] = ("common",),
    build_env: Mapping[str, str] | None = None,
) -> type[CrateRelease]:
    """The class of the releases of a crate, which are like ``base`` otherwise.

    ``ours`` are our crates that the driver uses, and ``build_env`` is what its build reads besides
    the environment variables of ``base``.
    """

    attributes = {
        "origin": f"crate {crate} {{version}}",
        "crate": crate,
        "ours": ours,
        "build_env": {**base.build_env, **(build_env or {})},
    }
    return type(f"{type(base).__name__}Release", (CrateRelease, type(base)), attributes)
