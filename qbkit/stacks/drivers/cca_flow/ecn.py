"""ECN on a UDP socket: marks what is sent as ECT(0), and counts what arrives marked CE."""

from __future__ import annotations

import socket
from typing import Any

ECT_0, CE, MASK = 0b10, 0b11, 0b11
ANCILLARY_BYTES = socket.CMSG_SPACE(4)


class EcnSocket(socket.socket):
    """An IPv4 socket that replaces another, and behaves like it until `mark` or `count`."""

    def __init__(self, other: socket.socket) -> None:
        super().__init__(fileno=other.detach())
        self.ce_count = 0
        self._is_counting = False

    def mark(self) -> None:
        """Send as ECT(0) from now on."""
        self.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT_0)

    def count(self) -> None:
        """Count CE from now on."""
        self.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        self._is_counting = True

    def recv(self, size_bytes: int, flags: int = 0) -> bytes:
        """Receive as any socket does, and count CE marks if asked to."""
        if not self._is_counting:
            return super().recv(size_bytes, flags)
        data, ancillary, _, _ = self.recvmsg(size_bytes, ANCILLARY_BYTES, flags)
        self.ce_count += sum(map(_is_ce, ancillary))
        return data


def _is_ce(message: tuple[int, int, bytes]) -> bool:
    level, kind, data = message
    is_tos: Any = (level, kind) == (socket.IPPROTO_IP, socket.IP_TOS)
    return is_tos and data[0] & MASK == CE
