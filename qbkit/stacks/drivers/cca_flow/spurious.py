"""Packets declared lost, remembered in case their ACK comes after all."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from aioquic.quic.packet_builder import QuicSentPacket
from aioquic.quic.rangeset import RangeSet

from qbkit.cca.events import Packet

REMEMBERED = 1000
"""Packets; RFC 9002, section 6.1, suggests one PTO, which is less at 100 Mbit/s and 100 ms."""


class LostPackets:
    """The latest packets declared lost, by packet number."""

    def __init__(self) -> None:
        self._numbers: list[int] = []  # ascending
        self._packets: dict[int, Packet] = {}

    def add(self, packets: Iterable[QuicSentPacket]) -> None:
        """Remember packets that were just declared lost."""
        for packet in packets:
            if packet.in_flight:
                self._packets[packet.packet_number] = packet.in_flight_record.packet  # type: ignore[attr-defined]
        self._numbers = sorted(self._packets)[-REMEMBERED:]
        self._packets = {number: self._packets[number] for number in self._numbers}

    def found_in(self, acked: RangeSet) -> list[Packet]:
        """Remove and return those that an ACK acknowledges."""
        if not self._numbers:
            return []
        found = []
        for one in acked:
            first, end = (bisect_left(self._numbers, n) for n in (one.start, one.stop))
            found += [self._packets.pop(number) for number in self._numbers[first:end]]
            del self._numbers[first:end]
        return found
