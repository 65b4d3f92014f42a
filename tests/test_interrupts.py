"""Interrupts (Ctrl-C) at awkward moments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from qbkit.execution.interrupts import start_deaf


def test_an_interrupt_while_deaf_processes_start_is_not_lost():
    done = []
    over = threading.Event()
    threading.Thread(target=over.wait).start()  # one that may get the signal

    def start() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        done.append(True)

    # A shell starts what is in its background with interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            start_deaf(start)
    finally:
        signal.signal(signal.SIGINT, before)
        over.set()
    assert done == [True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_no_interrupt_reaches_what_was_started_deaf():
    started: list[subprocess.Popen[bytes]] = []
    words = [sys.executable, "-c", "import time; print(flush=True); time.sleep(100)"]
    start_deaf(lambda: started.append(subprocess.Popen(words, stdout=subprocess.PIPE)))
    (process,) = started
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.poll() is None
        process.kill()
