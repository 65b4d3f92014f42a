"""What one run at a time may have: a processor, and the file that it writes.

A guest has a processor of its own: across processors, kernel and userland switch at twice the cost.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import Timeout

from qbkit.files import lock
from qbkit.testbed.machine import own_folder

LOOK_AGAIN_S = 0.05


@contextmanager
def claim_processor(on_wait: Callable[[], None]) -> Iterator[int]:
    """Number of a processor that this user's other guests leave free.

    Waits for one, and calls ``on_wait`` again and again meanwhile. While one run waits, no other
    may look: the workers of a sweep would take every processor that becomes free.
    """
    folder = own_folder("processors")
    numbers = [str(n) for n in sorted(os.sched_getaffinity(0), reverse=True)]
    with ExitStack() as held:
        with _claim([folder / "next"], on_wait):
            claimed = held.enter_context(_claim([folder / n for n in numbers], on_wait))
        yield int(claimed.name)


@contextmanager
def claim_file(path: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Let no other process of this user on this machine write a file; waits as `claim_processor`.

    So two notebooks that want the same run make it once.
    """
    name = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()
    with _claim([own_folder("files") / name], on_wait) as claimed:
        try:
            yield
        finally:
            claimed.unlink(missing_ok=True)


@contextmanager
def _claim(paths: Iterable[Path], on_wait: Callable[[], None]) -> Iterator[Path]:
    """Lock the first of these files that is free, until the block ends."""
    with ExitStack() as held:
        while (claimed := _lock_one(paths, held)) is None:
            on_wait()
            time.sleep(LOOK_AGAIN_S)
        yield claimed


def _lock_one(paths: Iterable[Path], held: ExitStack) -> Path | None:
    """Lock one of the files until ``held`` closes; None if all are taken."""
    for path in paths:
        with suppress(Timeout):
            held.enter_context(lock(path, timeout_s=0))
            return path
    return None
