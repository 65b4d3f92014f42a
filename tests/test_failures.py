"""Drivers that crash, hang, spin: one clear sentence, no process and no file left."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import assert_gone, descendants

from qbkit import stacks
from qbkit.errors import EngineError, RunFailed, RunStalled, SpecError, StackNotReady, StoreError
from qbkit.execution import runner
from qbkit.spec import Experiment
from qbkit.stacks import Stack, Status
from qbkit.stacks.base import ServingStack
from qbkit.testbed import kernel
from qbkit.testbed.machine import own_folder

BAD = Path(__file__).parent / "bad"


class Bad(Stack):
    """A stack whose controller's name says how it misbehaves."""

    name = "bad"
    source = "tests/bad/bad.py"

    def controllers(self):
        return (
            *("crash", "panic", "segfault", "spin", "falls-silent"),
            *("never-ends", "never-ready", "receiver-dies", "deaf", "fails-at-its-end"),
            *("closes", "says-nothing", "bad-report"),
        )

    def version(self):
        return "1"

    def program(self):
        return ["/usr/bin/python3", "-I", "-S", "-B", "/run/qb/stacks/bad/bad.py"]

    def mounts(self):
        return {"/run/qb/stacks/bad": BAD}


class BadServer(ServingStack, Bad):
    """The same as a server that listens and sends."""

    name = "bad-server"

    def serve_argv(self, _transfer):
        return [*self.program(), "serve"]

    def fetch_argv(self, _transfer):
        return ["/bin/true"]


class Absent(Bad):
    name = "absent"

    def status(self):
        return Status(False, "apt-get install presence")


@pytest.fixture(autouse=True)
def bad_stacks(monkeypatch):
    """Register the bad stacks for these tests only."""
    ours = {stack.name: stack for stack in (Bad(), BadServer(), Absent())}
    known = {**stacks.registry._registered, **ours}
    monkeypatch.setattr(stacks.registry, "_registered", known)


def run_bad(how: str, monkeypatch: pytest.MonkeyPatch, stack: str = "bad") -> str:
    """Run a bad driver; return the error's sentence."""
    monkeypatch.setattr(Bad, "program", lambda _: [*BAD_WORDS, how])
    with pytest.raises(RunStalled if how == "spin" else RunFailed) as caught:
        Experiment(flows=[f"{stack}:{how}"], duration_s=2).run(engine="virtual")
    return str(caught.value)


BAD_WORDS = ["/usr/bin/python3", "-I", "-S", "-B", "/run/qb/stacks/bad/bad.py"]


def guests() -> list[int]:
    """Processes of guests that this process has started."""
    found = subprocess.run(["pgrep", "-P", str(os.getpid()), "linux"], capture_output=True)
    return [int(pid) for pid in found.stdout.split()]


@pytest.mark.guest
@pytest.mark.parametrize(
    ("how", "words"),
    [
        (
            "crash",
            "flow 1 (bad:crash) sent no packet to the bottleneck: the sender's program ended with "
            "status 1: the driver tripped",
        ),
        ("panic", "ended with status 1: panic: runtime error: index out of range"),
        ("segfault", "the sender's program ended with SIGSEGV"),
        ("never-ready", "the receiver of flow 1 (bad:never-ready) was not ready within 10 s"),
        ("receiver-dies", "receiver's program ended with status 1: the receiver lost its mind"),
        ("never-ends", "still ran 5 s after its time was over"),
        ("deaf", "did not end within 5 s of SIGTERM"),
        (
            "fails-at-its-end",
            "the receiver of flow 1 (bad:fails-at-its-end) exited with status 1: the table could "
            "not be written",
        ),
        ("bad-report", "0/sender-end.json of a driver says that 'the moon' ended the connection"),
    ],
)
def test_bad_driver_is_named_and_nothing_is_left(how, words, monkeypatch, own_runs):
    assert words in run_bad(how, monkeypatch)
    assert guests() == []
    assert not list(own_runs.glob("*"))
    assert not list(own_folder("scratch").glob(f"{os.getpid()}-*"))


@pytest.mark.guest
def test_a_server_that_fails_at_its_end_fails_the_run(monkeypatch, own_runs):
    sentence = run_bad("fails-at-its-end", monkeypatch, "bad-server")
    assert "the sender of flow 1 (bad-server:fails-at-its-end) exited with status 1" in sentence
    assert "the table could not be written" in sentence
    assert not list(own_runs.glob("*"))


SERVE = Path(stacks.__file__).parent / "drivers/server/serve.py"
BINDS = "import signal, socket, sys, time; s = socket.socket(type=socket.SOCK_DGRAM); "


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "status", "words"),
    [
        ("", 0, ""),
        ("signal.signal(15, lambda *_: sys.exit(0)); ", 0, ""),
        ("signal.signal(15, lambda *_: sys.exit('no disk')); ", 1, "no disk"),
        ("signal.signal(15, lambda *_: sys.exit(7)); ", 7, ""),
        ("signal.signal(15, signal.SIG_IGN); ", 1, "did not end within 3 s of SIGTERM"),
    ],
)
def test_the_exit_status_of_a_server_is_passed_on(program, status, words):
    with socket.socket(type=socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = f"{BINDS}{program}s.bind(('127.0.0.1', {port})); time.sleep(60)"
    command = [sys.executable, str(SERVE), str(port), "--", sys.executable, "-c", code]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    server.terminate()
    _, complaints = server.communicate(timeout=20)
    assert server.returncode == status
    assert words in complaints


@pytest.mark.guest
def test_a_flow_that_falls_silent_is_reported(monkeypatch, own_runs):
    monkeypatch.setattr(Bad, "program", lambda _: [*BAD_WORDS, "falls-silent"])
    run = Experiment(flows=["bad:falls-silent", "tcp:cubic"], duration_s=8).run(engine="virtual")
    assert "bad:falls-silent delivered nothing from 0." in run.attrs["warnings"]
    assert "tcp:cubic delivered nothing" not in run.attrs["warnings"]


@pytest.mark.guest
def test_driver_that_spins_is_found_and_ended(monkeypatch, own_runs):
    # A guest that computes without a system call stops virtual time for ever.
    monkeypatch.setattr(runner, "_silence_s", lambda _: 3.0)
    sentence = run_bad("spin", monkeypatch)
    assert "clock stood still for 3 s" in sentence
    words = "flow 1 (bad:spin): /usr/bin/python3 computes without ever letting time pass"
    assert words in sentence
    assert guests() == []
    assert not list(own_runs.glob("*"))
    record = Path(re.search(r"\((\S+) records", sentence)[1])
    seen = json.loads(record.read_text())
    record.unlink()
    assert "flow 1 (bad:spin)" in seen["last_started"]
    _, *programs = seen["processes"]
    assert {each["program"] for each in programs} >= {"/usr/bin/python3"}
    spinning = max(programs, key=lambda each: each["cpu_share"])
    assert (spinning["state"], spinning["syscall"]) == ("R", "running")
    waiting = [each for each in programs if each is not spinning]
    assert waiting
    assert {each["syscall"].split()[0] for each in waiting} == {"202"}  # futex: not their turn


SLOW_RUN = """
from qbkit.spec import Experiment
Experiment(flows=["tcp:cubic", "tcp:cubic"], duration_s=3000).run(engine="virtual")
"""


@pytest.mark.guest
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_guest_ends_with_whoever_started_it(number, own_runs):
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_RUN], stderr=subprocess.PIPE, preexec_fn=heed_interrupts
    )
    children = wait_for_guest(process.pid)
    process.send_signal(number)
    process.wait(20)
    assert_gone(children)
    assert not list(own_runs.glob("*.nc"))


def heed_interrupts() -> None:
    """As at a terminal; a job that a shell put into the background ignores SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def wait_for_guest(pid: int) -> list[int]:
    """The guest's processes, once there are some of its programs."""
    for _ in range(600):  # others may hold the processors for a while
        found = descendants(pid)
        if len(found) > 5:
            return found
        time.sleep(0.1)
    raise AssertionError("the guest did not start")


@pytest.mark.parametrize(
    ("flow", "error", "words"),
    [
        ("nostack:cubic", SpecError, "there is no stack 'nostack'; known are"),
        ("tcp:nocc", SpecError, "tcp has no controller 'nocc'; it has cubic, reno, bbr"),
        pytest.param(
            *("absent:crash", StackNotReady, "absent is not ready: apt-get install presence"),
            marks=pytest.mark.guest,  # a missing kernel is reported before a missing stack
        ),
    ],
)
def test_impossible_flows_say_what_is_possible(flow, error, words):
    with pytest.raises(error, match=words):
        Experiment(flows=[flow]).run()


def test_unknown_option_names_the_supported_ones():
    flow = {"stack": "tcp", "controller": "cubic", "options": {"warp": 9}}
    with pytest.raises(SpecError, match="tcp has no option warp; supported: ecn, hystart"):
        Experiment(flows=[flow]).run()


def test_unknown_engine_names_the_engines():
    with pytest.raises(SpecError, match="no engine 'moon'; choose from virtual, physical, host"):
        Experiment(flows=["tcp:cubic"]).run(engine="moon")


@pytest.mark.guest  # a missing kernel is reported before it
def test_unwritable_place_is_reported_before_anything_runs(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(StoreError, match="cannot write to"):
        Experiment(flows=["tcp:cubic"]).run(out=file / "run.nc")


def test_kernel_for_another_machine_is_one_sentence(tmp_path, monkeypatch):
    foreign = tmp_path / "linux"
    foreign.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00" + bytes(44))
    foreign.chmod(0o755)
    monkeypatch.setenv("QBKIT_KERNEL", str(foreign))
    with pytest.raises(EngineError, match="cannot be started here"):
        Experiment(flows=["tcp:cubic"], duration_s=1).run(engine="virtual")


@pytest.mark.guest
def test_noexec_memory_folder_is_one_sentence(tmp_path, monkeypatch):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec", "none", str(tmp_path)])
    if mounted.returncode:
        pytest.skip("only root can mount a noexec folder to try")
    try:
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        with pytest.raises(EngineError, match="does not boot: the folder for the guest's memory"):
            Experiment(flows=["tcp:cubic"], duration_s=1).run(engine="virtual")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.guest
def test_more_pages_than_the_machine_gives_a_process_is_one_sentence(tmp_path, monkeypatch):
    real, wrapper = kernel.require(kernel.Kind.CONSTANT).path, tmp_path / "linux"
    words = "UML ran out of memory on the host side! vm.max_map_count has been reached."
    wrapper.write_text(f"#!/bin/bash\necho '{words}'\nexec -a linux {real} \"$@\"\n")
    wrapper.chmod(0o755)
    monkeypatch.setenv("QBKIT_KERNEL", str(wrapper))
    with pytest.raises(EngineError, match=r"holds more pages than .*max_map_count = \d+\); let it"):
        Experiment(flows=["tcp:cubic"], duration_s=1).run(engine="virtual")


@pytest.mark.guest
def test_a_limit_on_file_sizes_is_one_sentence():
    limited = "import resource as r, sys; r.setrlimit(r.RLIMIT_FSIZE, (10**8, 10**8)); "
    limited += "from qbkit.cli import main; sys.argv = ['qbkit', 'kernel']; main()"
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True)
    assert done.returncode == 1
    assert "its memory is a file, and files may not be so large here; allow it (u" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.guest
def test_forbidden_seccomp_is_one_sentence():
    wrapper = Path(__file__).with_name("forbidding.py")
    forbidding = [sys.executable, str(wrapper), "ptrace,seccomp"]
    command = [*forbidding, sys.executable, "-m", "qbkit.cli", "kernel"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "the guest does not boot: this place forbids seccomp" in done.stderr
    assert done.stderr.count("\n") == 1
