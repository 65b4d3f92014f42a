"""A user's TCP programs, which know nothing of qbkit, and die as their first argument says.

own.py HOW connect IP PORT OUT, or own.py HOW listen PORT; see tests/test_own_programs_die.py.
"""

import json
import os
import pathlib
import signal
import socket
import struct
import sys
import time

how, role, *words = sys.argv[1:]
DIES_S = 1.0


def die(end):
    """End as ``how`` says for this end: END-status-N, END-signal-N or END-says-WORDS."""
    whose, what, value = how.split("-", 2) if how.count("-") > 1 else ("", "", "")
    if whose != end:
        return
    if what == "status":
        print("the last bug", file=sys.stderr)
        sys.exit(int(value))
    if what == "signal":
        os.kill(os.getpid(), int(value))
    if what == "says":
        sys.exit(value)
    if what == "logs":
        head = {"qlog_version": "0.3", "trace": {"vantage_point": {"type": "client"}}}
        frame = {"frame_type": "connection_close", "error_code": 3, "reason": "too far"}
        event = {"name": "transport:packet_received", "data": {"frames": [frame]}, "time": 990}
        text = "".join(f"\x1e{json.dumps(record)}\n" for record in (head, event))
        pathlib.Path(words[2], "own.sqlog").write_text(text)
        if value.startswith("signal-"):
            os.kill(os.getpid(), int(value.removeprefix("signal-")))
        sys.exit(1)


signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
start_s = time.monotonic()
if role == "listen":
    with socket.create_server(("0.0.0.0", int(words[0]))) as server:
        taken, _ = server.accept()
        while data := taken.recv(1 << 18):
            if time.monotonic() - start_s > 2.0 + DIES_S:
                die("listener")
                if how == "listener-resets":
                    linger = struct.pack("ii", 1, 0)
                    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    taken.close()
                    signal.pause()
    signal.pause()
if how == "client-knows-no-option":
    sys.exit("unknown option --fast")
with socket.create_connection((words[0], int(words[1]))) as sender:
    while True:
        sender.sendall(bytes(1 << 16))
        if time.monotonic() - start_s > DIES_S:
            die("client")
            if how == "client-leaves":
                sys.exit(0)
