"""Run a sample client that knows nothing of qbkit for the duration of a flow.

client.py [--duration-s X] -- COMMAND...: with a duration, this script ends the command after it,
and the command must not end earlier. Without one, the command ends by itself. If it fails, this
script ends with its status, or 128 and its signal. It starts in a new
empty folder, because samples write logs to their working folder. SIGTERM also ends it. Standard
library only: it runs in the guest.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time

GRACE_S = 0.5
"""A client that still runs this long after SIGINT is killed."""


def main(words):
    border = words.index("--")
    duration_s = float(words[1]) if border else None
    signals = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    os.chdir(tempfile.mkdtemp())
    started = time.monotonic()
    client = subprocess.Popen(
        words[border + 1 :],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, set()),
    )
    while client.poll() is None:
        left_s = float("inf") if duration_s is None else started + duration_s - time.monotonic()
        if not wait(signals, left_s):
            end(client)
            return 0
    return status(client, words[border + 1], time.monotonic() - started, duration_s)


def wait(signals, left_s):
    """Wait for a change of the client's state; False when its time is over or SIGTERM comes."""
    if left_s <= 0:
        return False
    if left_s == float("inf"):
        return signal.sigwait(signals) == signal.SIGCHLD
    got = signal.sigtimedwait(signals, left_s)
    return got is not None and got.si_signo == signal.SIGCHLD


def end(client):
    client.send_signal(signal.SIGINT)
    try:
        client.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        client.kill()
        client.wait()


def status(client, program, lasted_s, duration_s):
    """Exit status for a client that ended by itself: 0 only if that was expected and it succeeded.

    Where its status says nothing, print a sentence.
    """
    code = client.returncode
    if code == 0 and duration_s is not None:
        name, limit = os.path.basename(program), f"before its {duration_s:g} s were over"
        print(f"{name} ended by itself after {lasted_s:.1f} s, {limit}", file=sys.stderr)
        return 1
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
