"""Where the guest's agent finds Python, Mininet, ``ip`` and ``tc``.

On this machine, or, where that lacks one of them, in the root that the package ``qbkit-kernel``
brings: Debian's, in the pinned versions. Flows run on this machine's files in both cases; in the
second, `enter` takes their programs to the machine's root beside the guest's own.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from functools import cache
from pathlib import Path

from qbkit.settings import packed_folders
from qbkit.stacks.toolchains.build import GUEST_PATH, build_once, compile_c
from qbkit.stacks.toolchains.debian import DebianPrograms

SOURCES = Path(__file__).parent / "native"
PYTHON = Path("/usr/bin/python3")
"""The system's Python, which runs the agent with the system's Mininet."""
MININET = Path("/usr/lib/python3/dist-packages/mininet/net.py")
DEBIAN = DebianPrograms(
    "guest",
    "bookworm",
    ("python3.11", "iproute2", "mininet", "grep"),
    ("usr/bin/python3.11", "bin/ip", "sbin/tc", "bin/grep"),  # Mininet calls grep
    folders=("usr/bin", "usr/lib/python3.11", "usr/lib/python3/dist-packages/mininet"),
    opened=("usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so",),
)
"""What the root of the package is made of (packages/root_archive.py)."""
ARCHIVE, VERSIONS = "guest-root.tar.xz", "versions.json"
MACHINE = "/machine"
"""Where this machine's root lies in the root of the package."""
ENTER_MOUNT = "/run/qb/enter"


def missing() -> list[str]:
    """Debian's packages that this machine lacks to run the agent."""
    there = {
        "python3": PYTHON.exists(),
        "iproute2": all(shutil.which(tool, path=GUEST_PATH) for tool in ("ip", "tc")),
        "mininet": MININET.exists(),
    }
    return [package for package, found in there.items() if not found]


def problem() -> str | None:
    """A sentence that says what is missing; None if the agent can run."""
    absent = missing()
    if not absent or _archive():
        return None
    return f"install with: apt-get install {' '.join(absent)}, or pip install qbkit-kernel"


def packed() -> Path | None:
    """The unpacked root of the package; None where this machine has all that the agent needs."""
    archive = _archive() if missing() else None
    if archive is None:
        return None
    return build_once(
        "guest-root", _fingerprint(archive), lambda folder: shutil.unpack_archive(archive, folder)
    )


def mininet_version(root: Path = Path("/")) -> str:
    """The version in the module with which the agent builds the network; "" where it is not."""
    module = root / MININET.relative_to("/")
    text = module.read_text() if module.exists() else ""
    found = re.search(r'^VERSION = "(.+)"', text, re.M)
    return found[1] if found else ""


def versions(root: Path) -> dict[str, str]:
    """Versions of the tools in a packed root, and which root it is."""
    known: dict[str, str] = json.loads((root / VERSIONS).read_text())
    return {**known, "root": root.name.rpartition("-")[2]}


def python(root: Path | None) -> list[str]:
    """The start of a command that runs the agent's Python on this machine."""
    if root is None:
        return [str(PYTHON)]
    loader, libraries = root / "lib64/ld-linux-x86-64.so.2", root / "lib"
    return [str(loader), "--library-path", str(libraries), str(root / "usr/bin/python3")]


def init(root: Path | None) -> Path:
    """The guest's first program."""
    if root is None:
        return compile_c(SOURCES / "init.c", "init")
    more = ['-DROOT="/proc/self/cwd/system"', f'-DMACHINE="/host{MACHINE}"']
    return compile_c(SOURCES / "init.c", "init-packed", more=more)


def enter() -> Path:
    """The program that takes another one to this machine's root."""
    return compile_c(SOURCES / "enter.c", "enter", more=[f'-DMACHINE="{MACHINE}"'])


def _archive() -> Path | None:
    found = (place / ARCHIVE for place in packed_folders())
    return next((path for path in found if path.exists()), None)


@cache
def _fingerprint(archive: Path) -> str:
    with archive.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]
