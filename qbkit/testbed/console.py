"""Follow the agent's output: its progress, its silence, its end."""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

OnProgress = Callable[[float | None], None]
"""Gets the virtual time in seconds; None while the run waits for another."""


@dataclass
class Usage:
    """What a run cost in wall-clock and processor seconds, and its last line that was no report."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    last_words: str = ""


@contextmanager
def measured() -> Iterator[Usage]:
    """Measure the cost of the child processes that end inside the block."""
    usage = Usage()
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    yield usage
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    usage.wall_s = time.monotonic() - started
    usage.cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a process and of its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


class Console:
    """The engine's output: the agent's lines, which start with ``QBKIT``, and all others."""

    def __init__(self, process: subprocess.Popen[bytes], on_progress: OnProgress):
        assert process.stdout is not None
        self.stream = process.stdout
        self.on_progress = on_progress
        self.lines: list[str] = []
        self.last_started: str | None = None

    def follow(self, silence_s: float) -> None:
        """Read until the console closes; raises TimeoutError after that long a silence.

        Reports a progress of 0 first.
        """
        self.on_progress(0.0)
        os.set_blocking(self.stream.fileno(), False)
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.stream, selectors.EVENT_READ)
            while True:
                if not selector.select(silence_s):
                    raise TimeoutError
                chunk = self.stream.read()
                if chunk == b"":
                    return
                *complete, rest = (rest + (chunk or b"")).split(b"\n")
                for line in complete:
                    self._take(line.decode(errors="replace").strip())

    def last_words(self) -> str:
        """The last line that was not one of the agent's reports."""
        return self.lines[-1] if self.lines else ""

    def _take(self, line: str) -> None:
        kind, _, text = line.removeprefix("QBKIT ").partition(" ")
        if line.startswith("QBKIT start"):
            self.last_started = text
        elif line.startswith("QBKIT time"):
            self.on_progress(float(text))
        elif kind:
            self.lines = [*self.lines[-200:], line]
