#!/usr/bin/python3
"""An example of a program with a command line of its own, for `qbkit new-stack`: bytes over TCP.

flow.py listen PORT: receives from one client after the other, until it is ended.
flow.py connect IP PORT CONTROLLER BYTES: sends that many bytes.
"""

import contextlib
import signal
import socket
import struct
import sys

CHUNK = bytes(1 << 16)
AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: a socket that is closed drops what is unsent, so that the flow stops on time."""


def listen(port):
    server = socket.create_server(("", int(port)))
    while True:
        peer, _ = server.accept()
        with peer, contextlib.suppress(ConnectionResetError):  # a client that was ended
            while peer.recv(1 << 20):
                pass


def connect(ip, port, controller, count):
    peer = socket.create_connection((ip, int(port)))
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
    left = int(count)
    while left > 0:
        left -= peer.send(CHUNK[: min(left, len(CHUNK))])
    peer.shutdown(socket.SHUT_WR)
    peer.recv(1)  # returns when the server has read everything and leaves


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    {"listen": listen, "connect": connect}[sys.argv[1]](*sys.argv[2:])
