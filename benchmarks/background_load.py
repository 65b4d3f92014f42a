"""Programs that load the processors beside a guest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

SPINNING = ["-c", "while True: pass"]
PREEMPTING = [str(Path(__file__).with_name("preempting_load.py"))]
"""Arguments of Python: a program that spins, and one that preempts a guest at any instruction."""


@contextmanager
def background_load(programs: Iterable[list[str]]) -> Iterator[None]:
    """Run a Python process for each list of arguments while the block lasts."""
    processes = [subprocess.Popen([sys.executable, *words]) for words in programs]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
