"""The receiver of a second connection that comes to the same address as the first.

A process of its own, so that the driver's receiver, which serves one connection, serves either.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

from aioquic_flow import receiver

PR_SET_PDEATHSIG = 1
FOLDER = "companion"
OPTION = "companion=true"
"""Says that a second connection will come."""


def fork(out: str) -> str:
    """Start it; returns, in either process, the folder for its results.

    It binds first: of two sockets at one address, Linux prefers the one that was bound last, until
    that is connected. So the first connection is served here.
    """
    receiver.open_socket = _shared(receiver.open_socket)
    ready, says_ready = os.pipe()
    if os.fork():
        os.close(says_ready)
        os.read(ready, 1)
        os.close(ready)
        return out
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    os.dup2(says_ready, 1)
    folder = Path(out) / FOLDER
    folder.mkdir(exist_ok=True)
    return str(folder)


def _shared(open_socket: Callable[[], socket.socket]) -> Callable[[], socket.socket]:
    """Sockets whose address another may bind, too."""

    def open_shared() -> socket.socket:
        sock = open_socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return sock

    return open_shared
