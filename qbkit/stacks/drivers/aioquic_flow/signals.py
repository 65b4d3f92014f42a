"""SIGTERM and SIGINT as something to poll."""

from __future__ import annotations

import signal
import socket


class StopSignal:
    """True once SIGTERM or SIGINT has come, which also wakes a poll of ``fileno()``."""

    def __init__(self) -> None:
        self._asked = False
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def __bool__(self) -> bool:
        return self._asked

    def fileno(self) -> int:
        """A file descriptor that is readable from the first signal on."""
        return self._reader.fileno()

    def _ask(self, number: int, frame: object) -> None:
        self._asked = True
