"""A driver that misbehaves for real, as its first argument says; see tests/test_failures.py."""

import itertools
import json
import os
import pathlib
import signal
import socket
import sys
import time

how, role = sys.argv[1:3]
words = dict(itertools.pairwise(sys.argv))


def leave(role, report, status=3):
    """End as a driver whose connection is gone; see docs/howto/own-stack.md."""
    name = {"recv": "receiver", "send": "sender"}[role]
    report = {"time_ns": time.time_ns(), **report}
    pathlib.Path(f"{words['--out']}/{name}-end.json").write_text(json.dumps(report))
    sys.exit(status)


if role in ("recv", "serve"):
    if how == "never-ready":
        time.sleep(1e6)
    print("ready", flush=True)
    if how == "receiver-dies":
        time.sleep(0.5)
        sys.exit("the receiver lost its mind")
    if how == "closes" and role == "recv":
        time.sleep(1.5)
        leave(role, {"by": "receiver", "kind": "transport", "code": 0xA, "reason": 'no\n"way"'})
    if how == "fails-at-its-end":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("the table could not be written"))
    if how == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)
if how == "crash":
    sys.exit("the driver tripped over its own feet")
if how == "segfault":
    os.kill(os.getpid(), signal.SIGSEGV)
if how == "spin":
    while True:
        pass
if how == "never-ends":
    time.sleep(1e6)
if how == "panic":
    sys.exit(
        "panic: runtime error: index out of range\n\n"
        "goroutine 7 [running]:\nmain.send()\n\t/src/main.go:42 +0x1"
    )
if how in ("falls-silent", "fails-at-its-end", "closes", "says-nothing", "bad-report"):
    host, _, port = words["--connect"].rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(10):
            sender.sendto(bytes(100), (host, int(port)))
    if how == "says-nothing":
        sys.exit(3)
    if how == "bad-report":
        leave(role, {"by": "the moon"})
    if how == "closes":
        time.sleep(1.6)
        leave(role, {"by": "timeout"})
    time.sleep(float(words["--duration-s"]))
