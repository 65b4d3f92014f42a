"""Which program of a guest computes without end: read from the outside, as the guest cannot say.

User Mode Linux runs each guest process as a host process. The one that spins is running now; the
path of its program is the last string on its stack (execve puts it there).
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

STACK_TAIL_BYTES = 16384


def spinning_program(pid: int) -> str | None:
    """Path in the guest of the program that the guest with this pid is stuck in, if it is."""
    for process in _descendants(pid):
        if process != pid and _state(process) == "R":
            return _program(process)
    return None


def _descendants(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(child) for child in task.read_text().split()]
            except OSError:
                continue
    return found


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _program(pid: int) -> str | None:
    """The last string of the highest readable stack-like mapping."""
    with suppress(OSError):
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            for line in reversed(maps):
                span, flags, *_ = line.split()
                text = _last_string(memory, int(span.split("-")[1], 16))
                if flags.startswith("rw") and text.startswith(b"/") and text.isascii():
                    return text.decode()
    return None


def _last_string(memory: BinaryIO, end: int) -> bytes:
    """The last string below an address; empty where that cannot be read."""
    with suppress(OSError, ValueError, OverflowError):
        memory.seek(end - STACK_TAIL_BYTES)
        return memory.read(STACK_TAIL_BYTES).rstrip(b"\0").rpartition(b"\0")[2]
    return b""
