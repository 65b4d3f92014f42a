"""One guest, one processor: across processors, kernel and userland hand over at twice the cost."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from qbkit.settings import cache_folder


@contextmanager
def claim_processor() -> Iterator[int]:
    """Number of a processor that no other guest of this user runs on; waits for a free one."""
    folder = cache_folder() / "processors"
    folder.mkdir(parents=True, exist_ok=True)
    processors = sorted(os.sched_getaffinity(0), reverse=True)
    files = {p: (folder / str(p)).open("w") for p in processors}
    try:
        while True:
            for processor, file in files.items():
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield processor
                return
            time.sleep(0.05)
    finally:
        for file in files.values():
            file.close()
