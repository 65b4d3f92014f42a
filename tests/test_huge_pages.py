"""The guest's memory begins in huge pages where the machine gives any, with the same contents."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from qbkit.execution.runner import run
from qbkit.spec import Experiment
from qbkit.store.digests import digests
from qbkit.testbed import native

MAP = """
import ctypes, mmap, os, re, sys, tempfile
from pathlib import Path

opened, mb = tempfile.TemporaryFile(dir=sys.argv[1]), int(sys.argv[2])
file = opened.fileno()
os.truncate(file, mb << 20)
call = ctypes.CDLL(None).mmap64
call.restype = ctypes.c_void_p
call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
skipped = 12 << 20  # of the kernel itself, as in a guest
length = (mb << 20) - skipped
flags = mmap.MAP_SHARED | 0x10  # MAP_FIXED
at = call(0x600000000000 + skipped, length, mmap.PROT_READ | mmap.PROT_WRITE, flags, file, skipped)
zeros = ctypes.string_at(at, 1 << 20) + ctypes.string_at(at + length - (1 << 20), 1 << 20)
ctypes.memset(at + length - 1, 7, 1)
written = os.pread(file, 1, (mb << 20) - 1)
maps = Path("/proc/self/smaps").read_text()
huge = re.search(rf"^{at:x}-.*?^ShmemPmdMapped: +(\\d+) kB", maps, re.DOTALL | re.MULTILINE)
print(int(huge[1]) // 1024, not any(zeros), written == b"\\x07")
"""
GUEST_MB = 2048
FIRST_MB, TABLE_MB = 40, 32
SINCE = 6, 1
"""Linux has MADV_COLLAPSE since this version."""


def mapped(folder: Path, mb: int) -> str:
    """What a program with our library says of a mapping: MB in huge pages, all zero, written."""
    done = subprocess.run(
        [sys.executable, "-c", MAP, folder, str(mb)],
        env={**os.environ, "LD_PRELOAD": str(native.huge_pages())},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def can_collapse() -> bool:
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    there = Path("/sys/kernel/mm/transparent_hugepage/enabled").exists()
    return there and (int(version[1]), int(version[2])) >= SINCE


@pytest.mark.skipif(not can_collapse(), reason="this machine's Linux makes no huge pages of others")
def test_both_ends_of_the_guests_memory_are_in_huge_pages():
    mb, *same = mapped(Path("/dev/shm"), GUEST_MB).split()
    assert int(mb) == FIRST_MB + TABLE_MB
    assert same == ["True", "True"]


def test_a_shorter_mapping_is_left_alone():
    assert mapped(Path("/dev/shm"), GUEST_MB // 4) == "0 True True"


def test_memory_on_another_file_system_has_the_same_contents(tmp_path):
    assert mapped(tmp_path, GUEST_MB).split()[1:] == ["True", "True"]


@pytest.mark.guest
def test_a_run_has_the_same_bytes_without_huge_pages(monkeypatch):
    experiment = Experiment(flows=["tcp:cubic", "tcp:bbr"], duration_s=1, seed=5)
    with_them = digests(run(experiment))
    monkeypatch.setattr(native, "huge_pages", native.getrandom)
    assert digests(run(experiment)) == with_them
