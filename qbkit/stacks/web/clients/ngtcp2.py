"""ngtcp2's sample client ``gtlsclient`` as Debian 12 packages it; its log and qlog become the load.

The qlog has whole milliseconds only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from qbkit.errors import RunFailed
from qbkit.stacks.ngtcp2_0_12 import Ngtcp2012
from qbkit.stacks.registry import get
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.stacks.web.base import HOST, OfStack, WebClient, register_client

QLOG = "client.qlog"
ALPN, STATUS = re.compile(r"Negotiated ALPN is (\S+)"), re.compile(r"\[:status: (\d+)\]")
REQUEST_STREAM = 0


class Ngtcp2Client(OfStack, WebClient):
    """It verifies no certificates, and offers X25519 first."""

    name: ClassVar[str] = "ngtcp2"
    stack: ClassVar[str] = Ngtcp2012.name
    source: ClassVar[str] = "package ngtcp2-client of Debian 12"
    protocols: ClassVar[tuple[str, ...]] = ("h3",)

    def version(self) -> str:
        """Version of the stack and of this file."""
        return f"{get(self.stack).version()}, client {fingerprint([Path(__file__)])}"

    def argv(
        self, *, address: str, protocol: str, path: str, out: str, zero_rtt: bool
    ) -> list[str]:
        """The client, which saves the object, its qlog, and its log on stderr."""
        ip, _, port = address.rpartition(":")
        logs = ["--no-quic-dump", "--no-http-dump", f"--qlog-file={out}/{QLOG}"]
        how = ["--exit-on-all-streams-close", f"--download={out}"]
        url = f"https://{HOST}:{port}{path}"
        return [*get(self.stack).program(), *logs, *how, ip, port, url]

    def load(self, folder: Path) -> dict[str, Any]:
        """Protocol and status from its log, times from its qlog, the size of what it saved."""
        log = (folder / "receiver.log").read_text(errors="replace")
        alpn, status = ALPN.search(log), STATUS.search(log)
        saved = [path for path in folder.iterdir() if path.name.isdigit()]
        received = list(_received(folder / QLOG))
        if not (alpn and status and saved and received):
            raise RunFailed("ngtcp2's client ended without the object; its log names no answer")
        times_ms = [time for time, streams in received if REQUEST_STREAM in streams]
        size_bytes = saved[0].stat().st_size
        saved[0].unlink()
        return {
            "version": 1,
            "client": self.name,
            "client_version": self.version(),
            "protocol": alpn[1],
            "connect_s": received[0][0] / 1e3,
            "handshake_s": received[0][0] / 1e3,
            "first_byte_s": times_ms[0] / 1e3,
            "last_byte_s": times_ms[-1] / 1e3,
            "bytes": size_bytes,
            "status": int(status[1]),
        }


def _received(qlog: Path) -> Iterator[tuple[int, set[int]]]:
    """Time in ms and streams of each 1-RTT packet, the first of which ends the handshake."""
    for record in qlog.read_text(errors="replace").split("\x1e"):
        if '"transport:packet_received"' in record:
            event = json.loads(record)
            data = event["data"]
            if data["header"]["packet_type"] == "1RTT":
                frames = (f for f in data["frames"] if f["frame_type"] == "stream")
                yield event["time"], {frame["stream_id"] for frame in frames}


register_client(Ngtcp2Client())
