"""nginx as the sender, in two releases: CUBIC since 1.27.5, a Reno before.

It serves one sparse file, which never ends and takes no memory; a flow of a number of bytes gets
the end of it, as a player of Flash video does.

One setting is not nginx's default: ``http3_stream_buffer_size``, which limits what of a response
is not acknowledged yet. The default, 64 KB, is enough for 10 Mbit/s at 50 ms. It must not be too
large either: nginx sends lost data again after all that the buffer holds, and quic-go's client
gives up at 1000 gaps. 1.26, which can lose 63 % of its packets, reaches them with 2 MiB.

The Reno of 1.26 takes 65,527 bytes, the largest datagram that it would receive, for the size of
those that it sends (``src/event/quic/ngx_event_quic_ack.c:354`` of 1.26.3). Its window starts with
131,054 bytes, never falls below them, and grows by 65,527 bytes an RTT. 1.27.5 corrects that.
"""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.base import Transfer
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.debian import DebianPrograms
from qbkit.stacks.web.from_debian import serve
from qbkit.stacks.web.served import Served
from qbkit.stacks.web.servers import nginx as server

ENDLESS_BYTES = 10**12
"""More than a flow can get."""
FOLDER, FILE = "/run/qb", "endless"
"""A tmpfs, where reading a hole takes no memory."""
FLV_HEADER_BYTES = 13
"""What nginx sends before the rest of a file, `ngx_http_flv_module`."""


class Nginx(Served):
    """nginx of Debian forky."""

    name: ClassVar[str] = "nginx"
    source: ClassVar[str] = "package nginx of Debian forky"
    debian: ClassVar[DebianPrograms] = DebianPrograms(
        "nginx-forky", "forky", ("nginx",), (server.PROGRAM,)
    )
    files: ClassVar[tuple[str, ...]] = (__file__, server.__file__)
    stream_buffer: ClassVar[str] = "4m"

    def controllers(self) -> tuple[str, ...]:
        """The only one of this release."""
        return ("cubic",)

    def serve_argv(self, transfer: Transfer) -> list[str]:
        """nginx, after a shell has made the file."""
        listen = (
            f"listen {transfer.address} quic; {server.TLS} root {FOLDER}; location / {{ flv; }}"
        )
        buffer = f"http3_stream_buffer_size {self.stream_buffer};"
        start = server.start(self.debian, f"server {{ {listen} {buffer} }}", transfer.out)
        make = f'truncate -s {ENDLESS_BYTES} "$0" && exec "$@"'
        return serve(transfer.address, ["/bin/sh", "-c", make, f"{FOLDER}/{FILE}", *start])

    def path(self, size_bytes: int | None) -> str:
        """The file, or its last bytes, before which nginx sends a header."""
        if size_bytes is None:
            return f"/{FILE}"
        return f"/{FILE}?start={ENDLESS_BYTES + FLV_HEADER_BYTES - size_bytes}"


class Nginx126(Nginx):
    """The release that is also a web server of qbkit."""

    name: ClassVar[str] = "nginx-1.26"
    source: ClassVar[str] = server.Nginx.source
    debian: ClassVar[DebianPrograms] = server.Nginx.debian
    stream_buffer: ClassVar[str] = "1m"

    def controllers(self) -> tuple[str, ...]:
        """The only one of this release."""
        return ("reno",)


register(Nginx())
register(Nginx126())
