"""Where qbkit keeps what it builds and measures, and how it displays charts."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import warnings
from functools import cache
from pathlib import Path

import platformdirs

from qbkit.errors import StoreError

CHARTS = "QBKIT_CHARTS"
"""Environment variable; ``png`` displays charts as pictures, for pages that run no scripts."""


def cache_folder() -> Path:
    """``QBKIT_CACHE``, else the user's cache (Linux: ``$XDG_CACHE_HOME`` or ``~/.cache``)/qbkit."""
    chosen = os.environ.get("QBKIT_CACHE")
    return Path(chosen) if chosen else platformdirs.user_cache_path("qbkit")


def writable_folder() -> Path:
    """The cache folder; if it cannot be written to, ``qbkit-UID`` in the temporary folder.

    A container may have a read-only home, with a kernel and drivers in its cache. Warns once.
    Raises StoreError if the temporary folder holds that name for another user.
    """
    wanted = cache_folder()
    return wanted if _is_writable(wanted) else _temporary_folder(wanted)


def _is_writable(folder: Path) -> bool:
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return os.access(there, os.W_OK | os.X_OK)


@cache
def _temporary_folder(wanted: Path) -> Path:
    folder = Path(tempfile.gettempdir()) / f"qbkit-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise StoreError(f"{folder} belongs to another user; set QBKIT_CACHE to another folder")
    if multiprocessing.parent_process() is None:  # its workers need not repeat it
        warnings.warn(
            f"{wanted} cannot be written to: runs go to {folder}, which may not last "
            "(QBKIT_RUNS sets their folder)",
            stacklevel=2,
        )
    return folder
