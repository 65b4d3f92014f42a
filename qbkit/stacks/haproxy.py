"""HAProxy as the sender, with its CUBIC, its NewReno and its BBR, which it calls experimental.

HAProxy serves no files, so our program on the same host supplies it with endless data, as it does
for Envoy (`qbkit.stacks.google_quiche`). HAProxy paces all three. By default it limits the window
to 480 KB; here the limit is 128 MB.
"""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.base import Transfer
from qbkit.stacks.google_quiche import ORIGIN
from qbkit.stacks.quic_go import MOUNT as QUIC_GO_MOUNT
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.debian import DebianPrograms
from qbkit.stacks.web.from_debian import serve
from qbkit.stacks.web.served import Served
from qbkit.stacks.web.servers import haproxy as server

WINDOW = "128m"


class HAProxy(Served):
    """HAProxy of Debian forky."""

    name: ClassVar[str] = "haproxy"
    source: ClassVar[str] = "package haproxy of Debian forky"
    debian: ClassVar[DebianPrograms] = DebianPrograms(
        "haproxy-forky", "forky", ("haproxy",), (server.PROGRAM,)
    )
    files: ClassVar[tuple[str, ...]] = (__file__, server.__file__)

    def controllers(self) -> tuple[str, ...]:
        """All but ``nocc``, a window of fixed size."""
        return ("cubic", "newreno", "bbr")

    def serve_argv(self, transfer: Transfer) -> list[str]:
        """HAProxy in front of a source of endless bytes."""
        origin = [f"{QUIC_GO_MOUNT}/quic-go", "origin", "--listen", ORIGIN]
        listen = f"quic4@{transfer.address} alpn h3 quic-cc-algo {transfer.controller}({WINDOW})"
        # abnsz: a socket whose name ends with a zero, as everybody but HAProxy means it
        behind = f"abnsz@{ORIGIN.removeprefix('@')}"
        start = server.start(self.debian, [listen], behind, transfer.out)
        return serve(transfer.address, origin, start)


register(HAProxy())
