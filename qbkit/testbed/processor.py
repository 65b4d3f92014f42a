"""One guest, one processor: across processors, kernel and userland hand over at twice the cost."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from qbkit.testbed.machine import lock, own_folder


@contextmanager
def claim_processor() -> Iterator[int]:
    """Number of a processor that no other guest of this user runs on; waits for a free one."""
    folder = own_folder("processors")
    processors = sorted(os.sched_getaffinity(0), reverse=True)
    with ExitStack() as opened:
        files = {p: opened.enter_context((folder / str(p)).open("w")) for p in processors}
        while True:
            for processor, file in files.items():
                if lock(file):
                    yield processor
                    return
            time.sleep(0.05)
