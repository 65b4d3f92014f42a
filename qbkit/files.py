"""Atomic file writes, and locks between processes."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from qbkit.errors import StoreError

POLL_S = 0.01
FOREVER_S = -1.0


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file atomically: write beside the target, then rename."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def require_ending(path: Path, what: str, endings: Collection[str]) -> str:
    """The ending of the name of a file to write, in small letters; StoreError for another one."""
    ending = path.suffix.lower()
    if ending not in endings:
        raise StoreError(
            f"{what} cannot be saved as {path.name!r}; choose a name with {', '.join(endings)}",
            refused=True,
        )
    return ending


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Raise StoreError if the block cannot write what the user wants at a path."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"{path} cannot be written: {reason}; choose another folder") from None


@contextmanager
def lock(path: Path, *, timeout_s: float = FOREVER_S) -> Iterator[None]:
    """Hold a lock file until the block or this process ends, even if it is killed.

    Raises `filelock.Timeout` if another process still holds it after ``timeout_s``, and StoreError
    where the file cannot be locked, as on a file system without locks.
    """
    held = FileLock(path, poll_interval=POLL_S, fallback_to_soft=False)
    try:
        held.acquire(timeout=timeout_s)
    except Timeout:
        raise
    except OSError as error:
        raise StoreError(
            f"{path} cannot be locked: {error.strerror}; use a folder on a disk of this machine "
            "(QBKIT_CACHE sets the cache)"
        ) from None
    try:
        yield
    finally:
        held.release()
