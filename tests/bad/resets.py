"""A TCP receiver that aborts its connection after a second; see tests/test_ends.py."""

import itertools
import signal
import socket
import struct
import sys
import time

words = dict(itertools.pairwise(sys.argv))
host, _, port = words["--listen"].rpartition(":")
with socket.create_server((host, int(port))) as server:
    print("ready", flush=True)
    taken, _ = server.accept()
    end_s = time.monotonic() + 1
    while time.monotonic() < end_s:
        taken.recv(1 << 20)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    taken.close()
    signal.pause()
