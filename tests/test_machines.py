"""One home directory on many machines: none touches what belongs to a run of another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from qbkit.errors import EngineError
from qbkit.testbed import machine, processor, scratch

HOLDS_A_FOLDER = """
import time
from qbkit.testbed.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "capture").write_text("packets")
    print(folder, flush=True)
    time.sleep(600)
"""
LONG_AGO_S = 1.0


@pytest.fixture(autouse=True)
def shared_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def another_run():
    """A process with a scratch folder of its own, and that folder."""
    words = [sys.executable, "-c", HOLDS_A_FOLDER]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_a_run_is_left_alone_while_its_process_lives(another_run):
    process, folder = another_run
    with scratch.scratch_folder() as mine:
        assert mine != folder
    assert (folder / "capture").exists()
    assert not mine.exists()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert folder.exists()
    with scratch.scratch_folder():
        assert not folder.exists()


def test_another_machines_run_is_left_alone_until_it_is_forgotten(shared_cache: Path):
    # Its process number is none of this machine; nothing here can tell whether it lives.
    theirs = shared_cache / "machines/another-boot/scratch/4194305-abc/run"
    theirs.mkdir(parents=True)
    (theirs / "before.pcap").write_text("packets")
    with scratch.scratch_folder():
        assert theirs.exists()
    for path in [theirs, *theirs.parents[:3]]:
        os.utime(path, (LONG_AGO_S, LONG_AGO_S))
    with scratch.scratch_folder():  # its capture was written just now
        assert theirs.exists()
    os.utime(theirs / "before.pcap", (LONG_AGO_S, LONG_AGO_S))
    with scratch.scratch_folder():
        assert not theirs.exists()


def test_processors_of_another_machine_have_the_same_numbers(shared_cache: Path):
    count = len(os.sched_getaffinity(0))
    theirs = shared_cache / "machines/another-boot/processors"
    theirs.mkdir(parents=True)
    for number in os.sched_getaffinity(0):
        assert machine.lock((theirs / str(number)).open("w"))
    claims = [processor.claim_processor() for _ in range(count)]
    assert {claim.__enter__() for claim in claims} == os.sched_getaffinity(0)
    for claim in claims:
        claim.__exit__(None, None, None)


def test_a_file_system_without_locks_is_one_sentence():
    with pytest.raises(EngineError, match=r"cannot be locked: .*; set QBKIT_CACHE to a folder on"):
        machine.lock(ClosedFile())


class ClosedFile:
    """flock fails on it as on a file system without locks: with an OSError."""

    name = "a file"

    def fileno(self) -> int:
        return 2**20
