"""QUIC packets as tshark dissects and decrypts them.

Most datagrams hold one packet with a short header, for which a line of fields suffices. Where
several packets share a datagram, as in handshakes, only a tree shows which field belongs to which
packet: tshark writes it as PDML, and pyshark reads it. (pyshark's capture objects are ten times
slower than lines of fields, and cannot run in Jupyter's event loop.)
"""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from qbkit import extras
from qbkit.errors import TraceError
from qbkit.traces.logs.records import Conversation, End

PACKET_FIELDS = (
    "quic.fixed_bit",
    "quic.packet_length",
    "quic.packet_number",
    "quic.long.packet_type",
    "quic.frame_type",
    "quic.ack.largest_acknowledged",
    "quic.ack.ack_delay",
    "quic.ack.first_ack_range",
    "quic.ack.ack_range_count",
    "quic.ack.gap",
    "quic.ack.ack_range",
    "quic.stream.stream_id",
    "quic.stream.offset",
    "quic.stream.length",
    "quic.stream_data",
)
DATAGRAM_FIELDS = (
    *("frame.number", "frame.time_epoch", "quic.connection.number"),
    *("ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "udp.srcport", "udp.dstport"),
)
HANDSHAKE_FIELDS = (
    *("quic.long.packet_type_v2", "quic.token"),
    "tls.quic.parameter.ack_delay_exponent",
)
"""What only handshakes have; an older tshark does not know all of them."""
MOST_HANDSHAKE = 2000
"""How many packets of one path are searched for handshakes."""

Fields = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Datagram:
    """One UDP packet and the QUIC packets in it."""

    time_ns: int
    """Since 1970."""
    connection: str
    """A number of its connection; empty where tshark knows none."""
    source: End
    destination: End
    packets: list[Fields]


def datagrams(path: Path, paths: Sequence[Conversation], keys: Path) -> Iterator[Datagram]:
    """Yield the QUIC datagrams of a file that has those of ``paths`` alone, in file order.

    Raises TraceError if tshark is missing, or finds nothing, and MissingExtra without pyshark.
    """
    extras.require("pyshark", to="read QUIC captures")
    tshark = shutil.which("tshark")
    if tshark is None:
        raise TraceError("reading QUIC captures needs tshark; apt-get install tshark")
    command = [tshark, "-n", "-r", str(path), "-o", f"tls.keylog_file:{keys}"]
    for port in sorted({port for path in paths for _, port in path.ends}):
        command += ["-d", f"udp.port=={port},quic"]
    limit = ["-c", str(MOST_HANDSHAKE)] if len(paths) == 1 else []
    handshake = _handshake([*command, *limit])
    wanted = [word for name in DATAGRAM_FIELDS + PACKET_FIELDS for word in ("-e", name)]
    for line in _lines([*command, "-Y", "quic", "-T", "fields", *wanted], path):
        values = line.rstrip("\n").split("\t")
        if len(values) != len(DATAGRAM_FIELDS) + len(PACKET_FIELDS) or not values[1]:
            continue  # cut off
        number, time, connection, *ends = values[: len(DATAGRAM_FIELDS)]
        packets = handshake.get(number)
        if packets is None:
            lists = [v.split(",") if v else [] for v in values[len(DATAGRAM_FIELDS) :]]
            packets = [dict(zip(PACKET_FIELDS, lists, strict=True))]
        seconds, _, fraction = time.partition(".")
        time_ns = int(seconds) * 10**9 + int(fraction[:9].ljust(9, "0"))
        source, destination = (
            (_packed(four or six), int(port))
            for four, six, port in zip(ends[0:2], ends[2:4], ends[4:6], strict=True)
        )
        yield Datagram(time_ns, connection.partition(",")[0], source, destination, packets)


@lru_cache
def _packed(address: str) -> bytes:
    return ipaddress.ip_address(address).packed


def _handshake(command: list[str]) -> dict[str, list[Fields]]:
    """Number of the frame → its packets, for frames with a long header."""
    from pyshark.tshark.output_parser.tshark_xml import packet_from_xml_packet

    found: dict[str, list[Fields]] = {}
    text: list[str] = []
    for line in _lines([*command, "-Y", "quic.header_form == 1", "-T", "pdml"], None):
        if line.startswith("<packet>"):
            text = []
        text.append(line)
        if line.startswith("</packet>"):
            packet = packet_from_xml_packet("".join(text).encode())
            layers = [layer for layer in packet.layers if layer.layer_name == "quic"]
            found[str(packet.number)] = [_fields(layer) for layer in layers]
    return found


def _fields(layer: object) -> Fields:
    """The fields of one packet from pyshark."""
    known = layer._all_fields  # type: ignore[attr-defined]  # the public ones drop repetitions
    return {
        name: [field.show.replace(":", "") for field in known[name].all_fields]
        if name in known
        else []
        for name in PACKET_FIELDS + HANDSHAKE_FIELDS
    }


def _lines(command: list[str], path: Path | None) -> Iterator[str]:
    """Yield the lines that tshark prints; raises TraceError with its complaint if none come."""
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=complaints, text=True, errors="replace"
        )
        assert process.stdout is not None
        empty = True
        try:
            for line in process.stdout:
                empty = False
                yield line
        finally:
            process.stdout.close()
            process.kill()
            status = process.wait()
        complaints.seek(0)
        said = [s for s in complaints.read(10_000).splitlines() if not s.startswith("Running as")]
        if empty and path is not None:
            why = f": {said[-1][:200]}" if said and status else ""
            raise TraceError(f"tshark finds no QUIC in {path.name}{why}")
