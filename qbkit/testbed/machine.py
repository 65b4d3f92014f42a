"""What only the processes of one running Linux may touch, in a cache that machines may share.

A home directory may be mounted on many machines. Process numbers and processors mean nothing
elsewhere, so whatever is about them lies in a folder named by the kernel that runs here.
"""

from __future__ import annotations

import fcntl
from functools import cache
from pathlib import Path
from typing import IO, Any

from qbkit.errors import EngineError
from qbkit.settings import cache_folder

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""New with each boot; containers on one machine share it, as they share its processors."""


def own_folder(purpose: str) -> Path:
    """The folder of that purpose of this machine, since its last boot."""
    folder = cache_folder() / "machines" / _boot_id() / purpose
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def lock(file: IO[Any], *, wait: bool = False) -> bool:
    """Lock a file until it is closed or this process ends; False where another process has it.

    Raises EngineError on a file system that has no locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise EngineError(
            f"{file.name} cannot be locked: {error.strerror}; set QBKIT_CACHE to a folder on a "
            "disk of this machine"
        ) from None
    return True


@cache
def _boot_id() -> str:
    return BOOT_ID.read_text().strip()
