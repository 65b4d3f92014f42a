"""The Linux source that the virtual-time kernel is built from.

The ``linux-source-X.Y`` of Debian that `qbkit.stacks.toolchains.pins` names, or the newest of its
unstable suite where no archive has that any more; or the user's tree or tarball
(``QBKIT_KERNEL_SOURCE``).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from qbkit.errors import EngineError, StackNotReady
from qbkit.settings import chosen_path
from qbkit.stacks.toolchains.apt import apt_environment
from qbkit.stacks.toolchains.pins import KERNEL, pin

SUITE = "unstable"
UNNEEDED = Path(__file__).parent / "kernel_sources/unneeded.txt"
"""Patterns of files in the tarball that our configuration never needs."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Source:
    """Where the source comes from: a Debian package, a tarball, or a tree."""

    version: str
    """Debian's version, or a hash of the content."""
    path: Path

    def unpack(self, scratch: Path, say: Progress) -> Path:
        """A copy of the tree that may be patched."""
        tree = scratch / "tree"
        tree.mkdir()
        if self.path.is_dir():
            say("copying the kernel source (about 20 s)")
            # Without git's folder, which holds gigabytes and would change the kernel's release.
            ignore = shutil.ignore_patterns(".git")
            shutil.copytree(self.path, tree, symlinks=True, dirs_exist_ok=True, ignore=ignore)
            return tree
        say("unpacking the kernel source (about 20 s)")
        tarball = self.path
        if tarball.suffix == ".deb":
            run_step(
                ["sh", "-c", 'dpkg-deb --fsys-tarfile "$0" | tar -x -C "$1"', tarball, scratch]
            )
            (tarball,) = (scratch / "usr/src").glob("linux-source-*.tar.xz")
        run_step(["tar", "-X", UNNEEDED, "-xf", tarball, "-C", tree, "--strip-components=1"])
        return tree


def source(scratch: Path, say: Progress) -> Source:
    """The source to build from; raises EngineError when there is none."""
    path = chosen_path("QBKIT_KERNEL_SOURCE")
    if path is None:
        return _from_debian(scratch, say)
    if not path.exists():
        raise EngineError(f"QBKIT_KERNEL_SOURCE names {path}, which does not exist")
    say("reading the kernel source (about 10 s)")
    return Source(_content_hash(path)[:12], path)


def _content_hash(path: Path) -> str:
    """SHA-256 of a tarball, or of the files of a tree except git's own."""
    if path.is_file():
        with path.open("rb") as tarball:
            return hashlib.file_digest(tarball, "sha256").hexdigest()
    digest = hashlib.sha256()
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if name != ".git")
        for name in sorted(name for name in files if name != ".git"):
            file = Path(folder, name)
            content = bytes(file.readlink()) if file.is_symlink() else file.read_bytes()
            digest.update(f"{file.relative_to(path)} {len(content)}\0".encode() + content)
    return digest.hexdigest()


def pinned_version() -> str | None:
    """Debian's version of the pinned source, unless the user chose another source."""
    pinned = pin(KERNEL)
    if pinned is None or os.environ.get("QBKIT_KERNEL_SOURCE"):
        return None
    return pinned.files[0].version


def _from_debian(scratch: Path, say: Progress) -> Source:
    """The pinned linux-source, or the newest; apt writes only to ``scratch``."""
    try:
        return _pinned(scratch, say) or _newest(scratch, say)
    except StackNotReady as error:
        raise EngineError(
            f"{error}; or set QBKIT_KERNEL_SOURCE to a Linux source tree or tarball (6.16 or newer)"
        ) from None


def _pinned(scratch: Path, say: Progress) -> Source | None:
    """The source that the lock file names, if an archive has it."""
    pinned = pin(KERNEL)
    if pinned is None:
        return None
    (file,) = pinned.files
    say(f"fetching {file.package} {file.version} (160 MB)")
    if pinned.fetch(scratch):
        return Source(file.version, scratch / file.name)
    say(pinned.replaced())
    return None


def _newest(scratch: Path, say: Progress) -> Source:
    """The newest linux-source of Debian's unstable suite."""
    apt = apt_environment(scratch, SUITE)
    run_step(["apt-get", "update", "-q"], env=apt)
    package = newest_package(apt)
    say(f"fetching {package} (160 MB)")
    run_step(["apt-get", "download", "-q", package], env=apt, cwd=scratch)
    (file,) = scratch.glob("linux-source-*.deb")
    return Source(file.name.split("_")[1], file)


def newest_package(apt: dict[str, str]) -> str:
    """The package with the newest source that apt, in this environment, knows."""
    found = run_step(["apt-cache", "search", "--names-only", r"^linux-source-[0-9.]+$"], env=apt)
    versions = re.findall(r"^linux-source-([0-9.]+) ", found, re.M)
    if not versions:
        raise EngineError(
            "Debian unstable offers no linux-source package here; set QBKIT_KERNEL_SOURCE to a "
            "Linux source tree or tarball (6.16 or newer)"
        )
    return "linux-source-" + max(versions, key=lambda v: [int(x) for x in v.split(".")])


def run_step(
    argv: Sequence[str | Path], env: dict[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Run a step of the build; raises EngineError with its last line when it fails."""
    words = [str(a) for a in argv]
    done = subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise EngineError(f"`{' '.join(words[:3])} …` failed: {lines[-1]}")
    return done.stdout
