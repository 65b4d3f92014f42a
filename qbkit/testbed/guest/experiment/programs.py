"""Processes of a run: how they start, say that they are ready, and end."""

import os
import select
import signal
import subprocess
import time

from report import RunAborted, say, write_json

ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/run", "LANG": "C.UTF-8"}
READY_S = 10.0
"""How long a receiver or the capture may take to print ready."""
GRACE_S = 5.0
"""How long a program may take to end after its time."""
FAILURE = "failure.txt"
"""What a controller of a user raised, in the folder of its flow."""
ENDED_WELL = (0, -signal.SIGTERM, 128 + signal.SIGTERM)
"""Exit states of a program asked to end: by itself, by the signal, by a shell around it."""


class Program:
    """One process of the run, with its role in words and the file of its stderr.

    A program on a node is an end of a flow; the capture is on none.
    """

    def __init__(self, node, role, argv, log, env):
        self.role, self.log, self.of_flow = role, log, node is not None
        self.early_end = f"{os.path.splitext(log)[0]}-end.json"
        with open(log, "wb") as file:
            words = {"stdout": subprocess.PIPE, "stderr": file, "stdin": subprocess.DEVNULL}
            start = node.popen if node else subprocess.Popen
            self.process = start(argv, env=env, **words)
        say(f"start {role}")

    def wait_ready(self):
        """Wait until the program prints "ready"; raises RunAborted when it ends or stays silent."""
        ready, _, _ = select.select([self.process.stdout], [], [], READY_S)
        line = self.process.stdout.readline() if ready else b""
        if line.strip() != b"ready":
            if not ready:
                raise RunAborted(f"{self.role} was not ready within {READY_S:g} s")
            self.wait(GRACE_S)
            raise RunAborted(self.how_it_ended())

    def poll(self):
        """Exit status; None while it runs."""
        return self.process.poll()

    def wait(self, seconds):
        """Exit status; None if it still runs after that time."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self):
        """Send SIGTERM and wait; return the exit status. Raises RunAborted if it does not end."""
        if self.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        if self.wait(GRACE_S) is None:
            self.process.kill()
            raise RunAborted(f"{self.role} did not end within {GRACE_S:g} s of SIGTERM")
        return self.process.returncode

    @property
    def lost_connection(self):
        """Whether it ended, and reported how: its flow is over, not the run."""
        return self.poll() is not None and os.path.exists(self.early_end)

    def require_end_of_flow(self):
        """It ended too early: report how, where it did not.

        RunAborted for the capture, and for a controller of a user that failed: its mistake is what
        the run is to show.
        """
        of_controller = os.path.exists(f"{os.path.dirname(self.log)}/{FAILURE}")
        if of_controller or not self.of_flow:
            raise RunAborted(self.how_it_ended())
        if not os.path.exists(self.early_end):
            write_json(self.early_end, {"time_ns": time.time_ns(), "status": self.poll()})

    def kill(self):
        """Kill it if it still runs, and wait, so that its exit flushes files."""
        if self.poll() is None:
            self.process.kill()
            self.process.wait()

    def how_it_ended(self):
        """One sentence on how it ended, with its last line on stderr."""
        code = self.process.returncode
        how = f"was killed by signal {-code}" if code and code < 0 else f"exited with status {code}"
        with open(self.log, errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
        return f"{self.role} {how}" + (f": {lines[-1]}" if lines else "")
