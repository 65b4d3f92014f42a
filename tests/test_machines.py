"""One home directory on many machines: no machine touches the files of another's run."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from filelock import Timeout

import qbkit as qb
from qbkit import progress
from qbkit.errors import StoreError
from qbkit.execution import runner
from qbkit.files import lock
from qbkit.testbed import claims, scratch

HOLDS_A_FOLDER = """
import time
from qbkit.testbed.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "capture").write_text("packets")
    print(folder, flush=True)
    time.sleep(600)
"""
HOLDS_A_LOCK = """
import sys, time
from pathlib import Path
from qbkit.files import lock
with lock(Path(sys.argv[1])):
    print("held", flush=True)
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
    # Its process number is not of this machine, so nothing here can know whether it lives.
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
    theirs = shared_cache / "machines/another-boot/processors"
    theirs.mkdir(parents=True)
    count = len(os.sched_getaffinity(0))
    with ExitStack() as held:
        for number in os.sched_getaffinity(0):
            held.enter_context(lock(theirs / str(number)))
        claimed = [held.enter_context(claims.claim_processor(pytest.fail)) for _ in range(count)]
        assert set(claimed) == os.sched_getaffinity(0)


def test_a_run_that_waits_for_a_processor_says_so(
    shared_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(progress, "LOG_INTERVAL_S", 0)
    experiment = qb.Experiment(flows=["tcp:cubic"], duration_s=5)
    others = ExitStack()
    for _ in os.sched_getaffinity(0):
        others.enter_context(claims.claim_processor(pytest.fail))
    with runner._progress(experiment, wanted=True) as report:

        def wait() -> None:
            report(None)
            others.close()

        with claims.claim_processor(wait):
            assert "tcp:cubic waits for another run: " in capsys.readouterr().err
            report(1.0)
            assert "waits" not in capsys.readouterr().err


def test_who_waits_for_a_processor_is_the_next_to_have_one(shared_cache: Path):
    others = ExitStack()
    for _ in os.sched_getaffinity(0):
        others.enter_context(claims.claim_processor(pytest.fail))
    asked_later: list[int] = []

    def ask_later() -> None:
        """As a worker of a sweep does, at the moment in which a run of it has ended."""

        def give_up() -> None:
            raise TimeoutError

        others.close()
        with suppress(TimeoutError), claims.claim_processor(give_up) as number:
            asked_later.append(number)

    with claims.claim_processor(ask_later):
        assert asked_later == []


def test_a_lock_ends_with_its_process(tmp_path: Path):
    words = [sys.executable, "-c", HOLDS_A_LOCK, str(tmp_path / "lock")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(Timeout), lock(tmp_path / "lock", timeout_s=0):
            pass
        process.kill()
    with lock(tmp_path / "lock", timeout_s=0):
        pass


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
):
    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    why = r"cannot be locked: .*; use a folder on a disk of this"
    with pytest.raises(StoreError, match=why), lock(tmp_path / "lock"):
        pass
