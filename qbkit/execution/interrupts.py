"""Interrupts (Ctrl-C): who does not get them, and when they have to wait."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


def start_deaf(start: Callable[[], object]) -> None:
    """Start processes that no interrupt reaches, and theirs: a terminal sends it to all of them.

    They must end when the process does that the user started. An interrupt that comes meanwhile
    reaches this process afterwards.
    """
    if not _in_main_thread():
        start()
        return
    resource_tracker.ensure_running()  # or multiprocessing would start it here, and unblock
    # Blocked, which they inherit, and not ignored: another thread of this process would drop it.
    with uninterrupted():
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let an interrupt wait until the end of the block; KeyboardInterrupt comes there."""
    if not _in_main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def _in_main_thread() -> bool:
    """Whether Python would interrupt this thread; only there a handler can be set."""
    return threading.current_thread() is threading.main_thread()
