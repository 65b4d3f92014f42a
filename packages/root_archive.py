"""The root of the guest's agent for machines without Mininet, from pinned packages of Debian."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

from qbkit.execution.identity import COMMANDS, NUMBER
from qbkit.stacks.toolchains.debian import LIBRARIES
from qbkit.testbed import guest_root

PYTHON = "python3.11"
PRESET = 9
"""Of xz: as small as it can be, which takes most of the time."""
FOLDERS = ("proc", "sys", "dev", "run", "tmp", "etc", "lib64", guest_root.MACHINE.lstrip("/"))


def build(scratch: Path) -> bytes:
    """The archive of the root, with the same bytes for the same packages."""
    guest_root.DEBIAN.build(print)
    root, kept = scratch / "root", guest_root.DEBIAN.folder
    for name in FOLDERS:
        (root / name).mkdir(parents=True)
    for source, place in (
        (kept / LIBRARIES, "lib"),
        (kept / PYTHON, f"usr/lib/{PYTHON}"),
        (kept / "mininet", "usr/lib/python3/dist-packages/mininet"),
    ):
        shutil.copytree(source, root / place)
    for source, place in (
        (kept / f"bin/{PYTHON}", "usr/bin/python3"),
        (kept / "ip", "usr/sbin/ip"),
        (kept / "tc", "usr/sbin/tc"),
        (kept / "grep", "usr/bin/grep"),
        (kept / LIBRARIES / "ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2"),
    ):
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, root / place)
    _write_byte_code(root)
    (root / guest_root.VERSIONS).write_text(json.dumps(_versions(root)))
    return _packed(root)


def _write_byte_code(root: Path) -> None:
    """Compile the library, without the times of its files; the guest cannot write."""
    how = ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s", root]
    subprocess.run([*guest_root.python(root), "-I", *how, root / "usr/lib"], check=True)


def _versions(root: Path) -> dict[str, str]:
    """What `qbkit.execution.identity.tool_versions` finds on a machine."""
    loader = guest_root.python(root)[:-1]
    places = {"python3": "usr/bin/python3", "ip": "usr/sbin/ip", "tc": "usr/sbin/tc"}
    found = {}
    for tool, word in COMMANDS.items():
        words = [*loader, root / places[tool], word]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        found[tool] = NUMBER.search(said)[0]  # type: ignore[index]
    return {**found, "mininet": guest_root.mininet_version(root)}


def _packed(root: Path) -> bytes:
    """The files in order, without their owners and times."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:xz", preset=PRESET) as tar:
        for path in sorted(root.rglob("*")):
            entry = tar.gettarinfo(path, str(path.relative_to(root)))
            entry.uid = entry.gid = entry.mtime = 0
            entry.uname = entry.gname = ""
            if path.is_file():
                with path.open("rb") as file:
                    tar.addfile(entry, file)
            else:
                tar.addfile(entry)
    return archive.getvalue()
