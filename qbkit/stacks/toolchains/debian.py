"""Programs of another Debian suite than this machine's, with the libraries that they load.

apt fetches the packages that `pins` names, or the newest, whose signatures it checks. Nothing is
installed: a program runs from its folder under the dynamic loader and the C library of its suite.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

from qbkit.stacks.base import Say
from qbkit.stacks.toolchains.apt import apt_environment
from qbkit.stacks.toolchains.build import build_once, built_folder, fingerprint, run_tool
from qbkit.stacks.toolchains.pins import Pin, pin
from qbkit.stacks.toolchains.sources import files_of

LIBRARIES = "lib"
LOADER = f"{LIBRARIES}/ld-linux-x86-64.so.2"
DLOPENED = ("libgcc_s.so.1",)
"""Libraries that the C library opens by name when it needs them."""
VERSIONS, FINGERPRINT = "versions.txt", "fingerprint.txt"


@dataclass(frozen=True)
class DebianPrograms:
    """Programs of one suite in a folder of their own: ``lib/`` and the programs' files."""

    name: str
    suite: str
    """The suite, such as ``trixie``, or ``trixie-backports``, which is used with ``trixie``."""
    packages: tuple[str, ...]
    programs: tuple[str, ...]
    """Their paths in the packages, such as ``usr/sbin/nginx``."""
    folders: tuple[str, ...] = ()
    """Folders of the packages that are kept whole, with the programs in them."""
    opened: tuple[str, ...] = ()
    """Libraries in these folders that the programs open by name."""

    @property
    def mount(self) -> str:
        """Where the guest sees the folder."""
        return f"/run/qb/debian/{self.name}"

    @property
    def folder(self) -> Path:
        """Folder of the programs, there or not."""
        return built_folder(f"debian-{self.name}", self._key)

    @property
    def ready(self) -> bool:
        """Whether the programs are there."""
        return self.folder.exists()

    @property
    def _key(self) -> str:
        words = (*self.packages, *self.programs, *self.folders, *self.opened)
        pinned = [file.sha256 for file in self.pin.files] if self.pin else []
        return fingerprint([], self.suite, *words, *pinned)

    @property
    def pin(self) -> Pin | None:
        """The versions to fetch."""
        return pin(self.name)

    def build(self, say: Say) -> None:
        """Fetch the packages, and keep the programs and libraries; raises StackNotReady."""
        say(f"fetching {' and '.join(self.packages)} from Debian {self.suite}")
        build_once(f"debian-{self.name}", self._key, lambda folder: self._make(folder, say))

    def command(self, program: str, *, root: str | Path | None = None) -> list[str]:
        """The start of a program's command line: its loader, its libraries, the program.

        ``root`` is the folder of the programs; by default `mount`, where the guest sees it.
        """
        root = self.mount if root is None else root
        place = f"{root}/{self._place(program)}"
        return [f"{root}/{LOADER}", "--library-path", f"{root}/{LIBRARIES}", place]

    def _place(self, program: str) -> Path:
        """Where a program lies in the folder."""
        path = Path(program)
        kept = [Path(folder) for folder in self.folders if path.is_relative_to(folder)]
        return path.relative_to(kept[0].parent) if kept else Path(path.name)

    def version(self, package: str) -> str:
        """The package's version, and a fingerprint of all programs and libraries."""
        return f"{self.versions[package]}, files {self._fingerprint}"

    @cached_property
    def versions(self) -> dict[str, str]:
        """Versions of all packages in the folder."""
        lines = (self.folder / VERSIONS).read_text().splitlines()
        return dict(line.split(" ", 1) for line in lines)

    @cached_property
    def _fingerprint(self) -> str:
        """As `_make` left it, because a JDK takes a second to read; older folders have none."""
        kept = self.folder / FINGERPRINT
        return kept.read_text() if kept.exists() else fingerprint(files_of([self.folder]))

    def _make(self, folder: Path, say: Say) -> None:
        with tempfile.TemporaryDirectory() as text:
            root = Path(text) / "root"
            versions = self._unpack(Path(text), root, say)
            libraries = root / "usr/lib/x86_64-linux-gnu"
            loader = libraries / Path(LOADER).name
            wanted = {loader, *(libraries / name for name in DLOPENED)}
            for name in self.folders:
                copy = folder / Path(name).name
                shutil.copytree(root / name, copy, ignore_dangling_symlinks=True)
            for program in (*self.programs, *self.opened):
                wanted |= _loaded(loader, libraries, root / program)
                place = folder / self._place(program)
                if not place.exists():
                    shutil.copy2(root / program, place)
            (folder / LIBRARIES).mkdir()
            for path in wanted:
                shutil.copy2(path, folder / LIBRARIES)
        lines = [f"{package} {version}\n" for package, version in versions]
        (folder / VERSIONS).write_text("".join(lines))
        (folder / FINGERPRINT).write_text(fingerprint(files_of([folder])))

    def _unpack(self, scratch: Path, root: Path, say: Say) -> list[tuple[str, str]]:
        """Unpack the packages and all that they depend on; return names and versions."""
        found = self._fetch(scratch, say)
        for package in found:
            run_tool(["dpkg-deb", "-x", package, root], self.name)
        _point_into(root)
        if (root / "lib").exists():  # Debian 12's packages still have files there
            shutil.copytree(root / "lib", root / "usr/lib", symlinks=True, dirs_exist_ok=True)
        return [(name, unquote(version)) for name, version, _ in (p.name.split("_") for p in found)]

    def _fetch(self, scratch: Path, say: Say) -> list[Path]:
        """The pinned packages; the newest where no archive has those any more."""
        if self.pin and self.pin.fetch(scratch / "pinned"):
            return sorted((scratch / "pinned").glob("*.deb"))
        if self.pin:
            say(self.pin.replaced())
        apt = apt_environment(scratch, apt_suites(self.suite))
        run_tool(["apt-get", "update", "-q"], self.name, env=apt)
        how = ["--download-only", "--yes", "--no-install-recommends", "-t", self.suite]
        run_tool(["apt-get", "install", "-q", *how, *self.packages], self.name, env=apt)
        return sorted((scratch / "cache/archives").glob("*.deb"))


def apt_suites(suite: str) -> str:
    """The suites that apt needs for one: backports depend on the release that they are for."""
    return " ".join(dict.fromkeys([suite.removesuffix("-backports"), suite]))


def _point_into(root: Path) -> None:
    """Let the absolute links of unpacked packages point into their root."""
    for link in [path for path in root.rglob("*") if path.is_symlink()]:
        target = link.readlink()
        if target.is_absolute():
            link.unlink()
            link.symlink_to(root / target.relative_to("/"))


def _loaded(loader: Path, libraries: Path, program: Path) -> set[Path]:
    """The libraries that a program loads when it starts."""
    listed = run_tool([loader, "--library-path", libraries, "--list", program], program.name)
    return {Path(path) for path in re.findall(rf"({re.escape(str(libraries))}/\S+)", listed)}
