"""Processes that a test started."""

from __future__ import annotations

import psutil


def descendants(pid: int) -> list[int]:
    """The processes below one, as they are now."""
    return [process.pid for process in psutil.Process(pid).children(recursive=True)]
