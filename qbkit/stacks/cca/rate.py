"""How fast a path delivers: draft-cheng-iccrg-delivery-rate-estimation, by packets of QUIC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from aioquic.quic.packet_builder import QuicSentPacket

from .base import sent_s


class Snapshot(NamedTuple):
    """The connection when a packet was sent."""

    delivered_bytes: int
    delivered_s: float
    first_sent_s: float
    app_limited: bool


@dataclass(frozen=True)
class Sample:
    """What one ACK tells of the path."""

    acked_bytes: int
    prior_delivered_bytes: int
    """Delivered when the newest of the acknowledged packets was sent."""
    delivered_bytes: int
    """From then to now."""
    interval_s: float
    app_limited: bool

    @property
    def bytes_per_s(self) -> float:
        """A lower bound of the bottleneck's rate."""
        return self.delivered_bytes / self.interval_s


class DeliveryRate:
    """Takes every packet that is sent, acknowledged, or given up; makes a sample an ACK."""

    def __init__(self) -> None:
        self.delivered_bytes = 0
        self._delivered_s = 0.0
        self._first_sent_s = 0.0
        self._app_limited_until_bytes = 0
        self._snapshots: dict[int, Snapshot] = {}
        self._newest: Snapshot | None = None
        self._newest_sent_s = 0.0
        self._acked_bytes = 0

    def on_sent(self, packet: QuicSentPacket, bytes_in_flight: int) -> None:
        """``bytes_in_flight`` are those before it."""
        if not bytes_in_flight:
            self._first_sent_s = self._delivered_s = sent_s(packet)
        self._snapshots[packet.packet_number] = Snapshot(
            self.delivered_bytes,
            self._delivered_s,
            self._first_sent_s,
            self._app_limited_until_bytes > 0,
        )

    def on_acked(self, packet: QuicSentPacket, now: float) -> None:
        """Count it, and keep the newest of the ACK."""
        snapshot = self._snapshots.pop(packet.packet_number, None)
        if snapshot is None:
            return
        self.delivered_bytes += packet.sent_bytes
        self._delivered_s = now
        self._acked_bytes += packet.sent_bytes
        if self._newest is None or snapshot.delivered_bytes >= self._newest.delivered_bytes:
            self._newest = snapshot
            self._newest_sent_s = self._first_sent_s = sent_s(packet)

    def on_gone(self, packet: QuicSentPacket) -> None:
        """It will not be acknowledged."""
        self._snapshots.pop(packet.packet_number, None)

    def limit(self, bytes_in_flight: int) -> None:
        """Samples of what is sent until all in flight is delivered tell less than the path can."""
        self._app_limited_until_bytes = (self.delivered_bytes + bytes_in_flight) or 1

    def take(self) -> Sample | None:
        """The sample of the ACK that was just reported; None if nothing of it counts."""
        newest, acked = self._newest, self._acked_bytes
        self._newest, self._acked_bytes = None, 0
        if self.delivered_bytes > self._app_limited_until_bytes:
            self._app_limited_until_bytes = 0
        if newest is None:
            return None
        sending_s = self._newest_sent_s - newest.first_sent_s
        return Sample(
            acked_bytes=acked,
            prior_delivered_bytes=newest.delivered_bytes,
            delivered_bytes=self.delivered_bytes - newest.delivered_bytes,
            interval_s=max(sending_s, self._delivered_s - newest.delivered_s),
            app_limited=newest.app_limited,
        )
