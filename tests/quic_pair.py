"""Two real aioquic peers in one process over a link in virtual time, with a capture, the key log,
and the qlog of each."""

from __future__ import annotations

import heapq
import io
import itertools
from dataclasses import dataclass, field
from pathlib import Path

from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.logger import QuicLogger, QuicLoggerTrace
from aioquic.quic.packet import encode_quic_retry

from qbkit.stacks.toolchains import certificate

CLIENT, SERVER = ("10.1.0.1", 40000), ("10.2.0.1", 4433)
DELAY_S = 0.02
RATE_BYTES_S = 2.5e6
START_S = 1_800_000_000.0


class _Trace(QuicLoggerTrace):
    """A trace with the link's clock."""

    clock = 0.0

    def log_event(self, *, category: str, event: str, data: dict) -> None:
        now_ms = self.encode_time(START_S + _Trace.clock)
        self._events.append({"data": data, "name": f"{category}:{event}", "time": now_ms})


class _Logger(QuicLogger):
    def start_trace(self, is_client: bool, odcid: bytes) -> QuicLoggerTrace:
        self._traces.append(_Trace(is_client=is_client, odcid=odcid))
        return self._traces[-1]


@dataclass
class Seen:
    """Datagrams as (time in s since 1970, source, destination, bytes); secrets; the qlogs."""

    datagrams: list[tuple[float, tuple[str, int], tuple[str, int], bytes]] = field(
        default_factory=list
    )
    keylog: str = ""
    client_qlog: dict = field(default_factory=dict)
    server_qlog: dict = field(default_factory=dict)

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Capture and key log, as files."""
        from scapy.layers.inet import IP, UDP
        from scapy.layers.l2 import Ether
        from scapy.utils import PcapWriter

        path, keys = folder / "quic.pcap", folder / "quic.keys"
        keys.write_text(self.keylog)
        with PcapWriter(str(path), nano=True) as out:
            for time_s, source, destination, data in self.datagrams:
                packet = (
                    Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
                    / IP(src=source[0], dst=destination[0])
                    / UDP(sport=source[1], dport=destination[1])
                    / data
                )
                packet.time = time_s
                out.write(packet)
        return path, keys


def upload(count_bytes: int, lost: frozenset[int] = frozenset(), *, retry: bool = False) -> Seen:
    """An HTTP/3 upload, captured at the client; the datagrams with these indices are lost.

    With ``retry`` the server answers the client's first packet by a Retry.
    """
    _Trace.clock = clock = 0.0  # not that of an earlier transfer
    seen, secrets = Seen(), io.StringIO()
    client, server = _peers(secrets)
    http = {id(client): H3Connection(client), id(server): H3Connection(server)}
    order, sent = itertools.count(), itertools.count()
    free = {id(client): 0.0, id(server): 0.0}
    arriving: list[tuple[float, int, QuicConnection, bytes]] = []

    def transmit(peer: QuicConnection, other: QuicConnection) -> None:
        ends = (CLIENT, SERVER) if peer is client else (SERVER, CLIENT)
        if peer not in awake:
            return
        for data, _ in peer.datagrams_to_send(clock):
            leaves_s = max(clock, free[id(peer)]) + len(data) / RATE_BYTES_S
            seen_s = clock if peer is client else leaves_s + DELAY_S
            seen.datagrams.append((START_S + seen_s, *ends, data))
            free[id(peer)] = leaves_s
            if peer is server or next(sent) not in lost:
                heapq.heappush(arriving, (leaves_s + DELAY_S, next(order), other, data))

    client.connect(SERVER, now=clock)
    stream = client.get_next_available_stream_id()
    http[id(client)].send_headers(stream, [(b":method", b"POST"), (b":scheme", b"https"),
                                           (b":authority", b"a"), (b":path", b"/")])  # fmt: skip
    http[id(client)].send_data(stream, bytes(count_bytes), end_stream=True)
    got, answered, awake = 0, False, {client}
    if retry:
        clock = _Trace.clock = _retry(client, server, seen)
    while clock < 60:
        transmit(client, server)
        transmit(server, client)
        timers = [(t, p) for p in awake if (t := p.get_timer()) is not None]
        due_s, peer = min(timers, key=lambda t: t[0], default=(61.0, client))
        if arriving and arriving[0][0] <= due_s:
            clock, _, peer, data = heapq.heappop(arriving)
            _Trace.clock = clock
            awake.add(peer)
            peer.receive_datagram(data, SERVER if peer is client else CLIENT, now=clock)
        else:
            clock = _Trace.clock = max(clock, due_s)
            peer.handle_timer(now=clock)
        while (event := peer.next_event()) is not None:
            for found in http[id(peer)].handle_event(event):
                if isinstance(found, DataReceived) and peer is server:
                    got += len(found.data)
        if got == count_bytes and not answered:
            answered = True
            http[id(server)].send_headers(stream, [(b":status", b"200")])
            http[id(server)].send_data(stream, b"thanks", end_stream=True)
            transmit(server, client)
            client.close()
        if answered and not arriving:
            break
    seen.datagrams.sort(key=lambda datagram: datagram[0])
    seen.keylog = secrets.getvalue()
    seen.client_qlog = client.configuration.quic_logger.to_dict()
    seen.server_qlog = server.configuration.quic_logger.to_dict()
    return seen


def _retry(client: QuicConnection, server: QuicConnection, seen: Seen) -> float:
    """Let the client send its first packet and get a Retry; the time of that."""
    ((first, _),) = client.datagrams_to_send(0.0)
    now, chosen = 2 * DELAY_S, b"by Retry"
    original = client.original_destination_connection_id
    answer = encode_quic_retry(client._version, chosen, client.host_cid, original, b"a token")
    seen.datagrams.append((START_S, CLIENT, SERVER, first))
    seen.datagrams.append((START_S + now, SERVER, CLIENT, answer))
    client.receive_datagram(answer, SERVER, now=now)
    server._retry_source_connection_id = chosen
    return now


def _peers(secrets: io.StringIO) -> tuple[QuicConnection, QuicConnection]:
    folder = certificate.folder()
    theirs = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN, quic_logger=_Logger())
    theirs.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    ours = QuicConfiguration(
        is_client=True, alpn_protocols=H3_ALPN, quic_logger=_Logger(), verify_mode=0,
        secrets_log_file=secrets, server_name="qbkit",
    )  # fmt: skip
    client = QuicConnection(configuration=ours)
    first = client.original_destination_connection_id
    return client, QuicConnection(configuration=theirs, original_destination_connection_id=first)
