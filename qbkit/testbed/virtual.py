"""Engine ``virtual``: a User Mode Linux guest in time-travel mode, an ordinary process.

Its clock jumps to the next event and computing takes no time. With a seeded ``getrandom`` two runs
are identical to the byte. A guest runs on one processor and ends with the process that started it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from qbkit.errors import EngineError, RunStalled
from qbkit.testbed import guest_root, kernel, memory, native, standstill
from qbkit.testbed.claims import claim_processor
from qbkit.testbed.console import Console, OnProgress, Usage, end_group, measured
from qbkit.testbed.plan import Plan

START_NS = 1_767_225_600 * 10**9
"""The guest's clock starts on 1 January 2026, inside the validity of the test certificate."""

COMMAND = [
    # Always the same words, because the kernel feeds its command line to its random pool.
    "linux",
    "mem={guest_mb}M",
    *["root=/dev/root", "rootfstype=hostfs", "rootflags=/proc/self/cwd/root", "ro", "init=/init"],
    *["seccomp=on", "con=null", "con0=fd:0,fd:1", "ssl=null", "quiet"],
]
TIME_TRAVEL = ["time-travel=inf-cpu", f"time-travel-start={START_NS}"]

MANY_TCP_FLOWS = 30
"""With so many, whose programs call little, the guest's kernel keeps a process of its own."""

BOOT_PROBLEMS = {
    "noexec": "the folder for the guest's memory ({memory}) is mounted noexec; "
    "set TMPDIR to a folder on a file system without noexec",
    "SECCOMP userspace": "this place forbids seccomp filters, which User Mode Linux needs; "
    "allow the system call seccomp (in a container: another seccomp profile)",
    "ptrace": "this place forbids ptrace, which User Mode Linux needs; "
    "allow it (in a container: --cap-add SYS_PTRACE or a seccomp profile that permits it)",
    "No space left": "the folder for the guest's memory ({memory}) is full; "
    "free some, or set TMPDIR elsewhere",
    "Cannot allocate": "there is not enough memory for the guest; free some",
}
RUN_PROBLEMS = {
    # SIGBUS: a page of the file that is the guest's memory cannot be allocated.
    "Kernel mode signal 7": "the folder for the guest's memory ({memory}) became full during the "
    "run; free some, or set TMPDIR elsewhere",
    # The host refuses a page of a program, which then dies of a signal.
    "vm.max_map_count has been reached": "a program of the run holds more pages than this machine "
    "gives a process (vm.max_map_count = {mappings}); let it transfer less, or raise the limit as "
    "root: sysctl -w vm.max_map_count=1048576",
}
"""Words of the guest's console → what they mean for the user."""


def run_guest(
    folder: Path,
    seed: int,
    silence_s: float,
    on_progress: OnProgress,
    plan: Plan,
    *,
    time_travel: bool = True,
) -> Usage:
    """Boot a guest in a prepared folder and wait until it has powered off.

    ``folder`` holds ``agent``, ``run/`` and ``mnt/`` (see `engines`). ``on_progress`` gets the
    virtual time in seconds, None while other guests have all processors. Raises EngineError when
    the guest does not boot, RunStalled when it prints nothing for ``silence_s`` of wall-clock time.
    No process is left in any case.
    """
    binary = kernel.require(plan.kernel).path
    (folder / "root/host").mkdir(parents=True)
    root = guest_root.packed()
    shutil.copy2(guest_root.init(root), folder / "root/init")
    if root is not None:
        (folder / "system").symlink_to(root)
    with claim_processor(lambda: on_progress(None)) as processor, measured() as usage:
        words = [*COMMAND, *TIME_TRAVEL] if time_travel else COMMAND
        command = [word.format(guest_mb=plan.guest_mb) for word in words]
        of_kernel = [flow for flow in plan.data.get("flows", ()) if flow["name"].startswith("tcp:")]
        many = len(of_kernel) >= MANY_TCP_FLOWS
        process = _start(command, binary, folder, seed, processor, many)
        console = Console(process, on_progress)
        try:
            console.follow(silence_s)
        except TimeoutError:
            raise _stalled(process.pid, processor, console, silence_s, plan) from None
        finally:
            end_group(process)
    if console.last_started is None:
        raise EngineError(_why_no_boot(console.lines, process.returncode))
    if problem := _known(RUN_PROBLEMS, console.lines):
        raise EngineError(problem)
    usage.last_words = console.last_words()
    return usage


def _start(
    command: list[str], binary: Path, folder: Path, seed: int, processor: int, many: bool
) -> subprocess.Popen[bytes]:
    preloaded = (native.getrandom(), native.huge_pages(), native.with_parent())
    try:
        return subprocess.Popen(
            command,
            executable=binary,
            cwd=folder,
            env={
                "LD_PRELOAD": ":".join(map(str, preloaded)),
                "QBKIT_SEED": str(seed),
                "QBKIT_PARENT": str(os.getpid()),
                "QBKIT_PROCESSOR": str(processor),
                **({"QBKIT_MANY_PROGRAMS": "1"} if many else {}),
                "HOME": ".",  # the kernel makes .uml in it, and crashes where it may not
                "TMPDIR": str(memory.file_folder()),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise kernel.cannot_start(binary, error) from None


def _stalled(
    pid: int, processor: int, console: Console, silence_s: float, plan: Plan
) -> RunStalled:
    """The error of a guest that is silent for too long; records what it was doing in a file."""
    since = console.last_started or "it booted"
    seen = standstill.observe(pid, processor)
    flows = [str(flow["name"]) for flow in plan.data.get("flows", ())]
    what = standstill.reason(seen, flows) or f"nothing has happened since {since} started"
    path = standstill.keep({"silence_s": silence_s, "last_started": since, **seen})
    return RunStalled(
        f"the run was ended because its clock stood still for {silence_s:.0f} s: {what} "
        f"({path} records what each of its processes did)"
    )


def _known(problems: Mapping[str, str], lines: list[str]) -> str | None:
    """The sentence of the first problem whose words the console has; None without one."""
    text = "\n".join(lines)
    for words, sentence in problems.items():
        if words in text:
            mappings = Path("/proc/sys/vm/max_map_count").read_text().strip()
            return sentence.format(memory=memory.file_folder(), mappings=mappings)
    return None


def _why_no_boot(lines: list[str], code: int | None) -> str:
    if problem := _known(BOOT_PROBLEMS, lines):
        return f"the guest does not boot: {problem}"
    if code == -signal.SIGXFSZ:
        return (
            "the guest does not boot: its memory is a file, and files may not be so large here; "
            "allow it (ulimit -f unlimited)"
        )
    last = lines[-1] if lines else f"exit status {code}, no output"
    return f"the guest does not boot: {last} (see `qbkit doctor`)"
