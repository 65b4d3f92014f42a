"""Engine ``host``: the same agent and topologies on this Linux machine, as root, in real time."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
from pathlib import Path

from qbkit.errors import EngineError, RunFailed
from qbkit.testbed.console import Console, OnProgress, Usage, end_group, measured

AGENT = ["/usr/bin/python3", "-I", "-S", "-B", "agent/agent.pyc"]
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)
TOOLS = {"ip": "iproute2", "tc": "iproute2", "mnexec": "mininet"}


def problem() -> str | None:
    """A sentence that says why this machine cannot run experiments in real time; None if it can."""
    if os.geteuid() != 0:
        return "engine host needs root, for network namespaces and queues; use engine virtual"
    missing = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)})
    return f"install with: apt-get install {' '.join(missing)}" if missing else None


def die_with_parent() -> None:
    """In a child before exec: end when the starting thread ends, even by a kill."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run_on_host(folder: Path, silence_s: float, on_progress: OnProgress) -> Usage:
    """Run the agent in a prepared folder (see `engines`) in real time, and wait for its end.

    Raises EngineError if it cannot start, RunFailed after ``silence_s`` without output.
    """
    why = problem()
    if why:
        raise EngineError(why)
    with measured() as usage:
        process = subprocess.Popen(
            [*AGENT, "run"],
            cwd=folder,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        console = Console(process, on_progress)
        try:
            console.follow(silence_s)
        except TimeoutError:
            raise RunFailed(
                f"the run was ended: nothing has happened for {silence_s:.0f} s "
                f"since {console.last_started or 'the agent'} started"
            ) from None
        finally:
            end_group(process)
    if console.last_started is None:
        raise EngineError(f"the agent did not start: {console.last_words()}")
    usage.last_words = console.last_words()
    return usage
