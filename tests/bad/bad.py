"""A driver that misbehaves for real, as its first argument says; see tests/test_failures.py."""

import os
import signal
import sys
import time

how, role = sys.argv[1:3]

if role == "recv":
    if how == "never-ready":
        time.sleep(1e6)
    print("ready", flush=True)
    if how == "receiver-dies":
        time.sleep(0.5)
        sys.exit("the receiver lost its mind")
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
