"""Delivery rate samples: draft-cheng-iccrg-delivery-rate-estimation, for packets of QUIC."""

from __future__ import annotations

from typing import NamedTuple

from .events import DeliverySample


class Snapshot(NamedTuple):
    """The connection when a packet was sent."""

    delivered_bytes: int
    delivered_s: float
    first_sent_s: float
    is_app_limited: bool


class DeliverySampler:
    """Sees every packet that is sent and acknowledged; takes one sample per ACK."""

    def __init__(self) -> None:
        self.delivered_bytes = 0
        self._delivered_s = 0.0
        self._first_sent_s = 0.0
        self._app_limited_until_bytes = 0
        self._newest: Snapshot | None = None
        self._newest_sent_s = 0.0

    def on_sent(self, sent_s: float, bytes_in_flight: int) -> Snapshot:
        """What to remember of the packet; ``bytes_in_flight`` without it."""
        if not bytes_in_flight:
            self._first_sent_s = self._delivered_s = sent_s
        return Snapshot(
            self.delivered_bytes,
            self._delivered_s,
            self._first_sent_s,
            self._app_limited_until_bytes > 0,
        )

    def on_acked(self, snapshot: Snapshot, sent_s: float, size_bytes: int, now_s: float) -> None:
        """Count the packet, and keep the newest of the ACK."""
        self.delivered_bytes += size_bytes
        self._delivered_s = now_s
        if self._newest is None or snapshot.delivered_bytes >= self._newest.delivered_bytes:
            self._newest = snapshot
            self._newest_sent_s = self._first_sent_s = sent_s

    def limit(self, bytes_in_flight: int) -> None:
        """Mark the samples of what is sent until all that is in flight now is delivered."""
        self._app_limited_until_bytes = (self.delivered_bytes + bytes_in_flight) or 1

    def take(self) -> DeliverySample | None:
        """The sample of the ACK whose packets were counted; None without any."""
        newest, self._newest = self._newest, None
        if self.delivered_bytes > self._app_limited_until_bytes:
            self._app_limited_until_bytes = 0
        if newest is None:
            return None
        sending_s = self._newest_sent_s - newest.first_sent_s
        return DeliverySample(
            delivered_bytes=self.delivered_bytes - newest.delivered_bytes,
            interval_s=max(sending_s, self._delivered_s - newest.delivered_s),
            prior_delivered_bytes=newest.delivered_bytes,
            is_app_limited=newest.is_app_limited,
        )
