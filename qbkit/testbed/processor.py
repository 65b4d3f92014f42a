"""One processor per guest: across processors, kernel and userland switch at twice the cost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import Timeout

from qbkit.files import lock
from qbkit.testbed.machine import own_folder

LOOK_AGAIN_S = 0.05


@contextmanager
def claim_processor(on_wait: Callable[[], None]) -> Iterator[int]:
    """Number of a processor that this user's other guests leave free.

    Waits for one, and calls ``on_wait`` again and again meanwhile.
    """
    folder = own_folder("processors")
    with ExitStack() as held:
        while (processor := _lock_one(folder, held)) is None:
            on_wait()
            time.sleep(LOOK_AGAIN_S)
        yield processor


def _lock_one(folder: Path, held: ExitStack) -> int | None:
    """Lock a processor until ``held`` closes; None if all are taken."""
    for processor in sorted(os.sched_getaffinity(0), reverse=True):
        with suppress(Timeout):
            held.enter_context(lock(folder / str(processor), timeout_s=0))
            return processor
    return None
