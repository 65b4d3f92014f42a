"""What every driver of a browser shares: how a browser starts and ends, and the one exception."""

import contextlib
import os
import signal
import subprocess
import sys
import time


class Failed(Exception):
    """The driver cannot go on; the message is a sentence for the user."""


class Died(Failed):
    """The browser, or its page, ended by itself; ``known`` is what is known of that."""

    def __init__(self, words, **known):
        super().__init__(words)
        self.known = {"time_ns": time.time_ns(), **known}


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


def ended_by_itself(status):
    """The exception for a browser that ended with this status."""
    how = f"was killed by signal {-status}" if status < 0 else f"exit status {status}"
    return Died(f"the browser ended by itself: {how}", status=status)
