"""What only the processes of one running Linux may touch, in a cache that machines may share.

A home directory may be mounted on many machines. Process numbers and processors mean nothing
elsewhere, so whatever is about them lies in a folder named by the kernel that runs here.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from qbkit.settings import cache_folder

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""New with each boot; containers on one machine share it, as they share its processors."""


def own_folder(purpose: str) -> Path:
    """The folder of that purpose of this machine, since its last boot."""
    folder = cache_folder() / "machines" / _boot_id() / purpose
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def _boot_id() -> str:
    return BOOT_ID.read_text().strip()
