"""Packages of this machine, installed in their pinned versions where they are missing.

``make setup`` calls ``python -m qbkit.stacks.toolchains.install chromium mininet``. The pinned file
comes from the cache, from this machine's suite or from the snapshot archive (`.pins`), and apt adds
what it depends on. Where that fails, apt installs the newest version, and a sentence says so.
A package that is there stays as it is: replacing it is the user's decision, and ``qbkit doctor``
names what differs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from qbkit.errors import StackNotReady
from qbkit.settings import cache_folder
from qbkit.stacks.base import Say
from qbkit.stacks.toolchains.apt import installed, this_suite
from qbkit.stacks.toolchains.pins import SYSTEM, Pin, pin

APT = ("env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "apt-get", "-qq")
INSTALL = ("install", "-y", "--no-install-recommends")


def install(names: Sequence[str], say: Say) -> None:
    """Install those of the packages that are missing; raises StackNotReady when apt cannot."""
    there = installed(names)
    missing = [name for name in names if name not in there]
    if not missing:
        return
    root = _as_root()
    if root is None:
        say(f"without apt, or root or sudo; ask for: apt-get install {' '.join(missing)}")
        return
    say(f"installing {' '.join(missing)} (about 1 minute)")
    _apt(root, "update")
    newest = set(missing)
    for part in _pins_of(missing, say):
        if _install_pinned(part, root):
            newest -= part.versions.keys()
        else:
            say(part.replaced())
    if newest:
        _apt(root, *INSTALL, *sorted(newest))


def _as_root() -> list[str] | None:
    """The words before a command that apt needs root for; None where there is no way."""
    if not shutil.which("apt-get"):
        return None
    if os.geteuid() == 0:
        return []
    if not shutil.which("sudo"):
        return None
    asked = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False)
    return None if asked.returncode else ["sudo"]


def _pins_of(names: Sequence[str], say: Say) -> list[Pin]:
    """The parts of this machine's pin that have these packages."""
    pinned = pin(SYSTEM)
    if pinned is None:
        return []
    if pinned.suite != (suite := this_suite()):
        say(
            f"the pinned packages are of Debian {pinned.suite}, and this machine has {suite}: "
            "installing its own; results may differ from published ones"
        )
        return []
    return [part for part in pinned.by_source() if not set(names).isdisjoint(part.versions)]


def _install_pinned(part: Pin, root: Sequence[str]) -> bool:
    """Install what is missing of a part of the pin; False if no archive has it, or apt refuses.

    apt refuses what would replace a newer version, as of a library that is installed.
    """
    folder = cache_folder() / "packages"
    there = installed(part.versions)
    files = tuple(file for file in part.files if file.package not in there)
    if not Pin(part.name, part.suite, part.date, files).fetch(folder):
        return False
    try:
        _apt(root, *INSTALL, *(str((folder / file.name).resolve()) for file in files))
    except StackNotReady:
        return False
    return True


def _apt(root: Sequence[str], *words: str) -> None:
    """Run apt-get; raises StackNotReady with its first error."""
    done = subprocess.run([*root, *APT, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("E: ")]
        why = errors[0].removeprefix("E: ") if errors else f"exit status {done.returncode}"
        raise StackNotReady(f"apt-get cannot {' '.join(words)}: {why}")


if __name__ == "__main__":
    try:
        install(sys.argv[1:], lambda sentence: print(f"qbkit: {sentence}", flush=True))
    except StackNotReady as error:
        sys.exit(f"qbkit: {error}")
