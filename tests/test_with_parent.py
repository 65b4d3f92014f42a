"""The guest's process ends with the program that starts it, and keeps to one processor."""

from __future__ import annotations

import os
import subprocess
import sys

from qbkit.testbed import native

ASK = """
import ctypes, os
found = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(found))  # PR_GET_PDEATHSIG
print(found.value, *os.sched_getaffinity(0))
"""


def started(parent: int, processor: int) -> subprocess.CompletedProcess[str]:
    """What a program with our library prints of itself, and how it ends."""
    words = {"QBKIT_PARENT": str(parent), "QBKIT_PROCESSOR": str(processor)}
    return subprocess.run(
        [sys.executable, "-c", ASK],
        env={**os.environ, "LD_PRELOAD": str(native.with_parent()), **words},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_is_killed_with_its_parent_and_keeps_to_its_processor():
    for processor in os.sched_getaffinity(0):
        assert started(os.getpid(), processor).stdout.split() == ["9", str(processor)]


def test_it_does_not_start_where_its_parent_has_ended():
    done = started(os.getppid(), min(os.sched_getaffinity(0)))
    assert (done.returncode, done.stdout) == (1, "")
