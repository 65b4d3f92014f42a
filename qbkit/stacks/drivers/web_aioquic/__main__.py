"""Command line of the client.

web_aioquic --connect IP:PORT --host NAME --path /PATH --out DIR
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import sys
import time
from typing import Any

import aioquic
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted
from aioquic_flow.connection import Connection
from aioquic_flow.failure import FlowFailed
from aioquic_flow.link import Link, open_socket, parse_address
from aioquic_flow.settings import DATAGRAM_BYTES, WINDOW_BYTES
from aioquic_flow.signals import StopSignal

CONNECT_S = 10.0


class Load:
    """One request and the times of its answer, since the client started."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.host, self.path = args.host, args.path
        self.started_s, started_ns = time.monotonic(), time.time_ns()
        self.report: dict[str, Any] = {
            "version": 1,
            "client": "aioquic",
            "client_version": aioquic.__version__,
            "started_ns": started_ns,
            "bytes": 0,
        }
        settings = QuicConfiguration(
            alpn_protocols=H3_ALPN,
            is_client=True,
            server_name=self.host,
            verify_mode=ssl.CERT_NONE,
            max_data=WINDOW_BYTES,
            max_stream_data=WINDOW_BYTES,
            max_datagram_size=DATAGRAM_BYTES,
        )
        self.connection = Connection(configuration=settings)
        self.http = H3Connection(self.connection)

    def run(self, address: str) -> None:
        """Load the object; raises FlowFailed."""
        peer, sock = parse_address(address), open_socket()
        sock.connect(peer)
        link = Link(sock, self.connection, peer, StopSignal())
        self.connection.connect(peer, now=link.now_s)
        give_up_s = link.now_s + CONNECT_S
        while "last_byte_s" not in self.report:
            is_connected = "handshake_s" in self.report
            try:
                events = link.turn() if is_connected else link.turn(give_up_s)
            except ConnectionRefusedError:
                raise FlowFailed(f"nothing listens on UDP port {address}") from None
            for event in events:
                self.take(event)
            if not is_connected and link.now_s >= give_up_s:
                raise FlowFailed(f"cannot connect to {address} by h3 within {CONNECT_S:g} s")
        self.connection.close()
        link.transmit()

    def take(self, event: Any) -> None:
        """Act on one event of the connection."""
        now_s = time.monotonic() - self.started_s
        if isinstance(event, ConnectionTerminated):
            raise FlowFailed(f"the connection ended: {event.reason_phrase or event.error_code}")
        if isinstance(event, HandshakeCompleted):
            self.report |= {
                "protocol": event.alpn_protocol,
                "handshake_s": now_s,
                "connect_s": now_s,
            }
            self.ask()
        for answer in self.http.handle_event(event):
            if isinstance(answer, HeadersReceived):
                self.report.setdefault("first_byte_s", now_s)
                self.report["status"] = int(dict(answer.headers)[b":status"])
            if isinstance(answer, DataReceived):
                self.report["bytes"] += len(answer.data)
            if getattr(answer, "stream_ended", False):
                self.report["last_byte_s"] = now_s

    def ask(self) -> None:
        """Send the request."""
        words = {":method": "GET", ":scheme": "https", ":authority": self.host, ":path": self.path}
        headers = [(name.encode(), value.encode()) for name, value in words.items()]
        stream = self.connection.get_next_available_stream_id()
        self.http.send_headers(stream, headers, end_stream=True)


def main() -> int:
    """Load the object and write load.json; a failure is one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="web_aioquic", allow_abbrev=False)
    for name in ("connect", "host", "path", "out"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    load = Load(args)
    try:
        load.run(args.connect)
    except (FlowFailed, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    with open(os.path.join(args.out, "load.json"), "w") as file:
        json.dump(load.report, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
