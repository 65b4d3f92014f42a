"""Header fields of captured frames, dissected by scapy: TCP, and what QUIC leaves readable."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Any

from qbkit.traces.run.frames import ETHERNET_HEADER, TCP, UDP

if TYPE_CHECKING:
    from scapy.packet import Packet

ECN = ("", "ECT(1)", "ECT(0)", "CE")
FLAGS = {"S": "SYN", "F": "FIN", "R": "RST", "P": "PSH", "A": "ACK", "U": "URG"}
FLAGS |= {"E": "ECE", "C": "CWR", "N": "AE"}
OPTIONS = {"MSS": "MSS {}", "WScale": "window scale {}", "Timestamp": "timestamps {} {}"}
"""Options of TCP with their values; those without words here are padding, or handled apart."""
INTEGERS = ("payload_bytes", "seq", "ack", "window")
"""Fields that are whole numbers; all others are texts."""
LONG = ("Initial", "0-RTT", "Handshake", "Retry")
VERSION_2 = 0x6B3343CF
"""QUIC version 2 numbers the types of long headers from another start (RFC 9369, section 3.2)."""
UDP_HEADER = 8
LONG_HEADER = b"\x80"
"""First bytes of QUIC packets from this one on belong to long headers."""
MODULO = 1 << 32


IP4, IP6 = b"\x08\x00", b"\x86\xdd"
"""Types of Ethernet frames."""
IP6_HEADER = 40


def source_of(frame: bytes) -> str:
    """The source address of an IP frame on Ethernet; empty for other frames."""
    if frame[12:14] == IP4:
        return socket.inet_ntoa(frame[ETHERNET_HEADER + 12 : ETHERNET_HEADER + 16])
    if frame[12:14] == IP6:
        return socket.inet_ntop(socket.AF_INET6, frame[ETHERNET_HEADER + 8 : ETHERNET_HEADER + 24])
    return ""


class Headers:
    """Dissects frames of one capture, all of which it must `see` in order.

    Earlier packets of a host show what a later one does not: where its TCP sequence numbers start,
    and that its datagrams are QUIC, because a connection begins with long headers.
    """

    def __init__(self) -> None:
        self._first_seq: dict[str, int] = {}
        self._quic: set[str] = set()

    def see(self, source: str, frame: bytes) -> None:
        """Remember what a frame of a host shows about its later ones."""
        if not source:
            return
        if frame[12:14] == IP6:
            protocol, at = frame[ETHERNET_HEADER + 6], ETHERNET_HEADER + IP6_HEADER
        else:
            protocol = frame[ETHERNET_HEADER + 9]
            at = ETHERNET_HEADER + 4 * (frame[ETHERNET_HEADER] & 15)
        if protocol == TCP and source not in self._first_seq:
            self._first_seq[source] = int.from_bytes(frame[at + 4 : at + 8])
        elif protocol == UDP and frame[at + UDP_HEADER : at + UDP_HEADER + 1] >= LONG_HEADER:
            self._quic.add(source)

    def fields(self, frame: bytes) -> dict[str, Any]:
        """Fields of a TCP or UDP packet by name: ``protocol``, ``ecn``, `INTEGERS`, ``header``."""
        ip = _ip(frame)
        ecn = ECN[(ip.tc if ip.version == 6 else ip.tos) & 3]
        if "TCP" in ip:
            return {"protocol": "TCP", "ecn": ecn, **self._tcp(ip)}
        length = ip["UDP"].len - UDP_HEADER
        found = {"protocol": "UDP", "ecn": ecn, "payload_bytes": length}
        if ip.src in self._quic:
            words = quic_words(bytes(ip["UDP"].payload), length)
            found |= {"protocol": "QUIC", "header": words}
        return found

    def _tcp(self, ip: Packet) -> dict[str, Any]:
        tcp = ip["TCP"]
        transport_bytes = ip.plen if ip.version == 6 else ip.len - 4 * ip.ihl
        found = {
            "payload_bytes": transport_bytes - 4 * tcp.dataofs,
            "seq": self._since_first(ip.src, tcp.seq),
        }
        words = [FLAGS[letter] for letter in str(tcp.flags)]
        if "A" in tcp.flags:
            found["ack"] = self._since_first(ip.dst, tcp.ack)
        for name, value in tcp.options:
            if name == "SAckOK":
                words.append("SACK permitted")
            elif name == "SAck":
                edges = [self._since_first(ip.dst, edge) for edge in value]
                blocks = zip(edges[::2], edges[1::2], strict=True)
                words.append("SACK " + " ".join(f"{left}–{right}" for left, right in blocks))
            elif name in OPTIONS:
                words.append(
                    OPTIONS[name].format(*(value if isinstance(value, tuple) else [value]))
                )
        return {**found, "window": tcp.window, "header": ", ".join(words)}

    def _since_first(self, host: str, number: int) -> int:
        """A sequence number of a host, counted from that of its first packet."""
        return (number - self._first_seq.get(host, 0)) % MODULO


def quic_words(datagram: bytes, length: int) -> str:
    """The headers of the QUIC packets in a datagram of ``length`` bytes, as far as it is captured.

    Type, version and connection IDs of long headers, and the spin bit of short ones, are not
    encrypted (RFC 9001, section 5.4).
    """
    words, at = [], 0
    while at < len(datagram) and not (at and datagram[at] == 0):  # zeros are padding
        found, size = _quic_packet(datagram[at:])
        words.append(found)
        if size is None:
            return " + ".join(words)
        at += size
    return " + ".join([*words, "…"] if len(datagram) <= at < length else words)


def _quic_packet(octets: bytes) -> tuple[str, int | None]:
    """The header of the first packet, and the packet's size; None where it is the last one."""
    from scapy.layers import quic

    if not octets[0] & 0x80:
        return f"1-RTT, spin {octets[0] >> 5 & 1}", None
    try:
        same = quic.QUIC_Retry(octets)  # begins as all long headers do (RFC 8999)
        ids = f"dcid {same.DstConnID.hex() or '–'}, scid {same.SrcConnID.hex() or '–'}"
    except (IndexError, struct.error):
        return "long header, cut off", None
    if not same.Version:
        return f"Version Negotiation, {ids}", None
    number = ((octets[0] >> 4 & 3) - (same.Version == VERSION_2)) % 4
    kind = (quic.QUIC_Initial, quic.QUIC_0RTT, quic.QUIC_Handshake, quic.QUIC_Retry)[number]
    words = f"{LONG[number]}, version {same.Version:x}, {ids}"
    if kind is quic.QUIC_Retry:
        return words, None
    try:
        packet = kind(octets)
    except (IndexError, struct.error):  # a token that is longer than what is captured
        return words, None
    # The length of the packet number is encrypted; scapy reads it, and the number, as they are.
    begins = len(octets) - len(packet.payload) - packet.PacketNumberLen - 1
    return words, begins + packet.Length


def _ip(frame: bytes) -> Packet:
    from scapy.layers.inet import IP
    from scapy.layers.inet6 import IPv6

    return (IPv6 if frame[12:14] == IP6 else IP)(frame[ETHERNET_HEADER:])
