"""The browser's processes."""

import contextlib
import os
import signal
import subprocess
import sys
import threading

END_S = 3.0
"""How long a browser may take to end after SIGTERM."""


class Process:
    """A started browser; puts its end and exit status into ``outcomes``."""

    def __init__(self, argv, env, outcomes):
        self.process = subprocess.Popen(
            argv,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            stderr=sys.stderr,
            start_new_session=True,
        )
        threading.Thread(target=self.watch, args=(outcomes,), daemon=True).start()

    def watch(self, outcomes):
        """Wait for its end."""
        outcomes.put(("ended", self.process.wait()))

    def end(self):
        """Ask it to end, so that it closes its log, and kill its remaining processes."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
