"""Run servers that know nothing of qbkit: print ``ready`` for them, and end them on SIGTERM.

serve.py PORT [SETTLE_S] -- COMMAND [-- COMMAND ...]: starts the commands in order, prints ``ready``
once the UDP port is bound or the TCP port listens, SETTLE_S later where given, and on SIGTERM ends
the commands, last first. Its status is then 0, or that of the first command that failed while
ending. When a command ends by itself, this script ends with its status. Standard library only: it
runs in the guest.
"""

import os
import signal
import subprocess
import sys
import time

LOOK_EVERY_S = 0.02
GRACE_S = 3.0
LISTENING = "0A"
"""TCP_LISTEN in /proc/net/tcp."""
ENDED_WELL = (0, -signal.SIGTERM, 128 + signal.SIGTERM)


def main(words):
    own = words[: words.index("--")]
    port, settle_s = int(own[0]), float(own[1]) if own[1:] else 0.0
    commands = split(words[len(own) :])
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD})
    children = [start(command) for command in commands]
    while not bound(port):
        if any(child.poll() is not None for child in children):
            return end_others(children)
        time.sleep(LOOK_EVERY_S)
    time.sleep(settle_s)
    print("ready", flush=True)
    while signal.sigwait({signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}) == signal.SIGCHLD:
        if any(child.poll() is not None for child in children):
            return end_others(children)
    failures = [status for child in reversed(children) if (status := end(child))]
    return failures[0] if failures else 0


def split(words):
    """The commands, each after a ``--``."""
    commands = []
    for word in words:
        if word == "--":
            commands.append([])
        else:
            commands[-1].append(word)
    return commands


def start(command):
    def unblock():
        signal.pthread_sigmask(signal.SIG_SETMASK, set())

    return subprocess.Popen(command, stdout=sys.stderr, preexec_fn=unblock)


def bound(port):
    """Whether a UDP socket or a listening TCP socket of this network namespace has the port."""
    for name in ("udp", "udp6", "tcp", "tcp6"):
        with open(f"/proc/net/{name}") as file:
            sockets = [line.split() for line in list(file)[1:]]
        mine = [fields for fields in sockets if fields[1].endswith(f":{port:04X}")]
        if any(name.startswith("udp") or fields[3] == LISTENING for fields in mine):
            return True
    return False


def end_others(children):
    """End the others; return the status of the one that ended first."""
    status = next(c.returncode for c in children if c.returncode is not None)
    for child in children:
        end(child)
    return 128 - status if status < 0 else status or 1


def end(child):
    """End a command; return 0, or the status with which it failed."""
    if child.poll() is None:
        child.terminate()
    try:
        status = child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        print(f"{child.args[0]} did not end within {GRACE_S:g} s of SIGTERM", file=sys.stderr)
        return 1
    return 0 if status in ENDED_WELL else abs(status)


if __name__ == "__main__":
    os.chdir("/")
    sys.exit(main(sys.argv[1:]))
