"""How much memory a run needs, how much the machine has, and where a guest keeps it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from qbkit.spec import Experiment

GUEST_MB, LARGE_GUEST_MB = 2048, 6144
"""Memory of a guest; the host allocates it page by page, as the guest touches it."""
GUEST_HOLDS_BYTES = 2**28
"""A flow of more than this in path and queue gets a large guest."""
GUEST_BASE_BYTES, GUEST_BYTES_PER_BYTE = 150e6, 4.5
"""A guest touches this much, and this much per byte in path and queue: slow start has sent twice
what they hold when it learns of a drop, and the kernel stores a packet in about twice its size.
The maximum that benchmarks/high_rates.py has measured."""
TABLES_BASE_BYTES, TABLES_BYTES_PER_FRAME = 200e6, 150
"""Memory to build a dataset, and per frame of the links' rates (benchmarks/memory.py)."""
TABLES_TIMES_WITH_ACKS = 1.25
"""It is as many times that where ACKs meet a queue, and so are followed through it as data are."""

SHARED_MEMORY, LEAST_SHARED_BYTES = Path("/dev/shm"), 2**30
"""Preferred folder for the file that is a guest's memory, and the smallest that serves: a guest
with a browser touches 0.7 GB. Docker's folder holds 64 MB and is mounted noexec."""


def guest_mb(experiment: Experiment) -> int:
    """Memory of the guest of an experiment: the larger of two sizes if its path needs it.

    It depends on the spec alone, because the guest's command line names it, and that feeds the
    guest's random pool.
    """
    return GUEST_MB if experiment.most_path_bytes <= GUEST_HOLDS_BYTES else LARGE_GUEST_MB


def guest_bytes(experiment: Experiment) -> float:
    """Approximate memory that the guest of an experiment touches."""
    return GUEST_BASE_BYTES + GUEST_BYTES_PER_BYTE * experiment.most_path_bytes


def tables_bytes(frames: float, *, with_acks: bool = False) -> float:
    """Approximate memory to build the dataset of a run with so many frames."""
    times = TABLES_TIMES_WITH_ACKS if with_acks else 1
    return TABLES_BASE_BYTES + TABLES_BYTES_PER_FRAME * times * frames


def free_bytes() -> float:
    """Memory available to programs without swapping."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, words = line.partition(":")
        if name == "MemAvailable":
            return float(words.split()[0]) * 1024
    return float("inf")  # kernels older than 3.14 do not report it


def file_folder() -> Path:
    """Where the file that is a guest's memory goes; it has no name there, and ends with the guest.

    TMPDIR if it is set, else `SHARED_MEMORY` where that serves, else the temporary folder.
    """
    chosen = os.environ.get("TMPDIR")
    if chosen:
        return Path(chosen)
    return SHARED_MEMORY if _serves(SHARED_MEMORY) else Path(tempfile.gettempdir())


def _serves(folder: Path) -> bool:
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    executable = not found.f_flag & os.ST_NOEXEC
    return executable and found.f_blocks * found.f_frsize >= LEAST_SHARED_BYTES
