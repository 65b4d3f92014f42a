"""The programs of a run, and what the agent says of them. Standard library only."""

import json
import os
import select
import signal
import subprocess

READY_S = 10.0
"""How long a receiver or the capture may take to print ready."""
GRACE_S = 5.0
"""How long a program may take to end after its time."""
LOST_CONNECTION = 3
"""Exit status of a driver whose connection ended before its time, and which wrote how it ended."""
ENDED_WELL = (0, -signal.SIGTERM, 128 + signal.SIGTERM)
"""Exit states of a program asked to end: by itself, by the signal, by a shell around it."""


class RunAborted(Exception):
    """The run cannot continue; the message is a sentence for the user."""


def write_json(path, data):
    """Write beside and rename, so that the file is whole or absent."""
    with open(path + ".part", "w") as file:
        json.dump(data, file)
    os.replace(path + ".part", path)


def say(text):
    """Print one line for the engine."""
    print("QBKIT", text, flush=True)


class Program:
    """One process of the run, with its role in words and the file of its stderr."""

    def __init__(self, node, role, argv, log, env):
        self.role, self.log = role, log
        self.early_end = f"{os.path.splitext(log)[0]}-end.json"
        with open(log, "wb") as file:
            words = {"stdout": subprocess.PIPE, "stderr": file, "stdin": subprocess.DEVNULL}
            self.process = node.popen(argv, **words, env=env) if node else None
            if not node:
                self.process = subprocess.Popen(argv, env=env, **words)
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
        """Whether it ended because its connection did: the flow is over, not the run."""
        return self.poll() == LOST_CONNECTION and os.path.exists(self.early_end)

    def require_good_end(self):
        """Raise RunAborted if it ended in a state that fails the run."""
        if self.poll() not in ENDED_WELL and not self.lost_connection:
            raise RunAborted(self.how_it_ended())

    def how_it_ended(self):
        """One sentence on how it ended, with its last line on stderr."""
        code = self.process.returncode
        how = f"was killed by signal {-code}" if code and code < 0 else f"exited with status {code}"
        with open(self.log, errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
        return f"{self.role} {how}" + (f": {lines[-1]}" if lines else "")
