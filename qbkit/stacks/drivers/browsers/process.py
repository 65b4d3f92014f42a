"""What every driver of a browser shares: how a browser starts and ends, and the one exception."""

import contextlib
import os
import signal
import subprocess
import sys


class Failed(Exception):
    """The driver cannot go on; the message is a sentence for the user."""


def start(argv, env, **more):
    """Start a browser, the leader of a session of its own."""
    return subprocess.Popen(
        argv,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        stderr=sys.stderr,
        start_new_session=True,
        **more,
    )


def end(process, within_s=0.0):
    """Let it end by itself within a time, if there is one; kill what remains of its session."""
    if within_s:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(within_s)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def how_it_ended(status):
    """An exit status in words."""
    return f"was killed by signal {-status}" if status < 0 else f"exit status {status}"
