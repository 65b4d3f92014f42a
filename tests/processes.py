"""Processes that a test started."""

from __future__ import annotations

import time
from collections.abc import Sequence

import psutil


def descendants(pid: int) -> list[int]:
    """The processes below one, as they are now."""
    return [process.pid for process in psutil.Process(pid).children(recursive=True)]


def assert_gone(pids: Sequence[int], within_s: float = 10.0) -> None:
    """All processes end in time."""
    deadline = time.monotonic() + within_s
    while any(map(psutil.pid_exists, pids)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in pids if psutil.pid_exists(pid)]
