"""QUIC packets as tshark dissects and decrypts them.

Most datagrams hold one packet with a short header, for which a line of fields suffices. Where
several packets share a datagram, as in handshakes, only a tree shows which field belongs to which
packet: tshark writes it as PDML, and pyshark reads it. (pyshark's capture objects are ten times
slower than lines of fields, and cannot run in Jupyter's event loop.)
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from qbkit import extras
from qbkit.errors import TraceError
from qbkit.traces.logs.records import Conversation

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
DATAGRAM_FIELDS = ("frame.number", "frame.time_epoch", "ip.src", "ipv6.src", "udp.srcport")
MOST_HANDSHAKE = 2000
"""How many packets of the file, from the connection's first, are searched for handshakes."""

Fields = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Datagram:
    """One UDP packet and the QUIC packets in it."""

    number: int
    """Number of the frame in the file, from 1 on."""
    time_ns: int
    """Since 1970."""
    address: str
    port: int
    """Port of the source."""
    packets: list[Fields]


def datagrams(path: Path, connection: Conversation, keylog: Path | None) -> Iterator[Datagram]:
    """Yield the QUIC datagrams of a connection, in file order.

    Raises TraceError if tshark is missing, or finds nothing, and MissingExtra without pyshark.
    """
    extras.require("pyshark", to="read QUIC captures")
    tshark = shutil.which("tshark")
    if tshark is None:
        raise TraceError("reading QUIC captures needs tshark; apt-get install tshark")
    ports = sorted(port for _, port in connection.ends)
    between = f"udp.port == {ports[0]} && udp.port == {ports[1]}"
    command = [tshark, "-n", "-r", str(path), *("-d", f"udp.port=={ports[0]},quic")]
    command += ["-d", f"udp.port=={ports[1]},quic"]
    command += ["-o", f"tls.keylog_file:{keylog}"] if keylog else []
    limit = ["-c", str(connection.first + MOST_HANDSHAKE)]
    handshake = _handshake([*command, *limit], between)
    wanted = [word for name in DATAGRAM_FIELDS + PACKET_FIELDS for word in ("-e", name)]
    for line in _lines([*command, "-Y", f"quic && {between}", "-T", "fields", *wanted], path):
        values = line.rstrip("\n").split("\t")
        if len(values) != len(DATAGRAM_FIELDS) + len(PACKET_FIELDS) or not values[1]:
            continue  # cut off
        number, time, four, six, port = values[: len(DATAGRAM_FIELDS)]
        packets = handshake.get(number)
        if packets is None:
            lists = [v.split(",") if v else [] for v in values[len(DATAGRAM_FIELDS) :]]
            packets = [dict(zip(PACKET_FIELDS, lists, strict=True))]
        seconds, _, fraction = time.partition(".")
        time_ns = int(seconds) * 10**9 + int(fraction[:9].ljust(9, "0"))
        yield Datagram(int(number), time_ns, four or six, int(port.split(",")[0]), packets)


def _handshake(command: list[str], between: str) -> dict[str, list[Fields]]:
    """Number of the frame → its packets, for frames with a long header."""
    from pyshark.tshark.output_parser.tshark_xml import packet_from_xml_packet

    chosen = f"quic.header_form == 1 && {between}"
    found: dict[str, list[Fields]] = {}
    text: list[str] = []
    for line in _lines([*command, "-Y", chosen, "-T", "pdml"], None):
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
        for name in PACKET_FIELDS
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
