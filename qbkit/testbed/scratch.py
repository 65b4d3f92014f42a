"""The scratch folder of a run, removed with the run however it ends."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path

from filelock import Timeout

from qbkit.errors import StoreError
from qbkit.files import lock
from qbkit.testbed.machine import own_folder

SCRATCH = "scratch"
"""Name of the folder of all scratch folders; see `own_folder`."""
LOCK = "lock"
FORGOTTEN_S = 7 * 86_400
"""Folders of an earlier boot of this machine, or of another machine, are removed when nothing was
written there for this long. A run writes all the time."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """An empty folder for one run; removes the folders of killed runs first.

    A run holds the lock in its folder, and a process that ends releases its locks.
    """
    parent = own_folder(SCRATCH)
    with ExitStack() as held:
        with lock(parent / LOCK):
            _remove_left(parent)
            folder = Path(tempfile.mkdtemp(dir=parent, prefix=f"{os.getpid()}-"))
            held.enter_context(lock(folder / LOCK))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_left(parent: Path) -> None:
    for folder in parent.iterdir():
        if folder.is_dir() and not _in_use(folder):
            shutil.rmtree(folder, ignore_errors=True)
    here = parent.parent
    for machine in here.parent.iterdir():
        if machine != here and _is_forgotten(machine):
            shutil.rmtree(machine, ignore_errors=True)


def _in_use(folder: Path) -> bool:
    try:
        with lock(folder / LOCK, timeout_s=0):
            return False
    except (Timeout, StoreError):  # also if it is being removed, or belongs to another user
        return True


def _is_forgotten(folder: Path) -> bool:
    """Whether nothing in a folder was written recently."""
    limit_s = time.time() - FORGOTTEN_S
    try:
        return all(p.lstat().st_mtime < limit_s for p in chain([folder], folder.rglob("*")))
    except OSError:  # something in it has just been removed
        return False
