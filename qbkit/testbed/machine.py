"""Folders for the processes of one running machine, in a cache that machines may share.

A home directory may be mounted on many machines. Process numbers and processors mean nothing on
another machine, so files about them go to a folder named by the running kernel's boot.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from qbkit.settings import writable_folder

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Changes with each boot; containers on one machine share it, as they share its processors."""


def own_folder(purpose: str) -> Path:
    """This machine's folder for a purpose, since its last boot."""
    folder = writable_folder() / "machines" / _boot_id() / purpose
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def _boot_id() -> str:
    return BOOT_ID.read_text().strip()
