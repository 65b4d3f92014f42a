"""Command line of the client.

web_aioquic --connect IP:PORT --host NAME --path /PATH --out DIR [--zero-rtt]

With --zero-rtt, a first connection only fetches a session ticket. The second one, which is
measured, sends its request as early data; it is an error if the server does not accept them.
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import sys
import time
from collections.abc import Callable
from typing import Any

import aioquic
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted
from aioquic.tls import SessionTicket
from aioquic_flow.connection import Connection
from aioquic_flow.ends import LOST_CONNECTION, ConnectionLost, end_of, write_end
from aioquic_flow.failure import FlowFailed
from aioquic_flow.link import Link, open_socket, parse_address
from aioquic_flow.settings import DATAGRAM_BYTES, WINDOW_BYTES
from aioquic_flow.signals import StopSignal

CONNECT_S = 10.0
PAUSE_S = 1.0
"""Between the connection for the ticket and the measured one, so that nothing of the first is left
on the way."""


class Load:
    """One request and the times of its answer, since the client started."""

    def __init__(self, args: argparse.Namespace, ticket: SessionTicket | None = None) -> None:
        self.host, self.path = args.host, args.path
        self.ticket, self.tickets = ticket, []
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
            session_ticket=ticket,
        )
        self.connection = Connection(
            configuration=settings, session_ticket_handler=self.tickets.append
        )
        self.http = H3Connection(self.connection)

    def run(self, address: str) -> None:
        """Load the object; raises FlowFailed."""
        self.turn_until(lambda: "last_byte_s" in self.report, address)

    def fetch_ticket(self, address: str) -> SessionTicket:
        """Connect without a request until the server sends a ticket; raises FlowFailed."""
        self.path = None
        self.turn_until(lambda: self.tickets, address)
        if not self.tickets[0].max_early_data_size:
            raise FlowFailed("the server's session ticket allows no early data")
        return self.tickets[0]

    def turn_until(self, done: Callable[[], object], address: str) -> None:
        """Connect, and act on events until it is done."""
        peer, sock = parse_address(address), open_socket()
        sock.connect(peer)
        link = Link(sock, self.connection, peer, StopSignal())
        self.connection.connect(peer, now=link.now_s)
        if self.ticket:
            self.ask()
        give_up_s = link.now_s + CONNECT_S
        while not done():
            is_connected = "handshake_s" in self.report and self.path is not None
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
            raise ConnectionLost(end_of(self.connection, "receiver"))
        if isinstance(event, HandshakeCompleted):
            self.report |= {
                "protocol": event.alpn_protocol,
                "handshake_s": now_s,
                "connect_s": now_s,
            }
            if self.ticket:
                self.report["early_data_accepted"] = event.early_data_accepted
                if not event.early_data_accepted:
                    raise FlowFailed("the server did not accept early data")
            elif self.path is not None:
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
    parser.add_argument("--zero-rtt", action="store_true")
    args = parser.parse_args()
    try:
        ticket = None
        if args.zero_rtt:
            ticket = Load(args).fetch_ticket(args.connect)
            time.sleep(PAUSE_S)
        load = Load(args, ticket)
        load.run(args.connect)
    except ConnectionLost as lost:
        write_end(lost.report, args.out, "receiver")
        print(lost, file=sys.stderr)
        return LOST_CONNECTION
    except (FlowFailed, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    with open(os.path.join(args.out, "load.json"), "w") as file:
        json.dump(load.report, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
