"""What a controller hears: packets, and the events of RFC 9002 that concern them.

All times are seconds of the sender's monotonic clock; sizes are bytes of UDP payload.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet that counts as in flight."""

    number: int
    """Counts all packets of the connection from 0 (QUIC's own numbers restart per space)."""
    size_bytes: int
    sent_s: float
    one_way_delay_s: float | None = None
    """Receiver's time of arrival less the time sent, once acknowledged and if
    `Controller.uses_one_way_delay`. The clocks' offset is in it: only differences mean anything."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A packet was sent."""

    packet: Packet
    bytes_in_flight: int
    """With this packet."""


@dataclass(frozen=True, slots=True)
class DeliverySample:
    """How fast the path delivered (draft-ietf-ccwg-bbr, section 4.1, delivery rate samples)."""

    delivered_bytes: int
    """Delivered from when the newest acknowledged packet was sent until now."""
    interval_s: float
    prior_delivered_bytes: int
    """Delivered in all when that packet was sent."""
    is_app_limited: bool
    """The sender had less to send than the path could take: the rate is too small."""

    @property
    def rate_bytes_per_s(self) -> float:
        """A lower bound of the bottleneck's rate."""
        return self.delivered_bytes / self.interval_s


@dataclass(frozen=True, slots=True)
class Ack:
    """An ACK acknowledged packets for the first time."""

    now_s: float
    packets: tuple[Packet, ...]
    """Those newly acknowledged, in the order in which they were sent."""
    acked_bytes: int
    """Their sizes together."""
    bytes_in_flight: int
    """What is still in flight."""
    prior_bytes_in_flight: int
    """What was in flight before this ACK and the losses that it shows."""
    delivered_bytes: int
    """Acknowledged since the connection's start, handshake aside."""
    delivery: DeliverySample | None
    """None for an ACK of the handshake."""
    rtt_s: float | None
    """RTT sample, with the receiver's ACK delay; None if its largest packet was known already."""
    smoothed_rtt_s: float
    min_rtt_s: float
    """Least RTT of the connection."""
    next_departure_s: float = -math.inf
    """When pacing lets the next packet go; not after ``now_s`` if at once."""
    one_way_delay_s: float | None = None
    """Of the newest packet; None unless `Controller.uses_one_way_delay`."""
    one_way_delay_variation_s: float | None = None
    """By how much that exceeds the least of the connection: the queueing delay of the forward path,
    if its queue was ever empty."""
    ecn_ce_packets: int = 0
    """Packets newly reported as marked "congestion experienced", if `Controller.uses_ecn`."""
    is_app_limited: bool = False
    """Whether, since the newest of the packets was sent, there was nothing to send though window
    and pacing allowed it: the window is underutilised (RFC 9002, section 7.8). False in the
    handshake."""

    @property
    def newest_sent_s(self) -> float:
        """When the newest of the packets was sent."""
        return self.packets[-1].sent_s


@dataclass(frozen=True, slots=True)
class Loss:
    """Packets were declared lost (RFC 9002, section 6.1); comes before the ACK that shows it."""

    now_s: float
    packets: tuple[Packet, ...]
    """In the order in which they were sent."""
    lost_bytes: int
    bytes_in_flight: int
    """Without them."""
    is_persistent_congestion: bool
    """RFC 9002, section 7.6: all packets of three probe timeouts were lost."""

    @property
    def newest_sent_s(self) -> float:
        """When the newest of the packets was sent."""
        return self.packets[-1].sent_s


@dataclass(frozen=True, slots=True)
class SpuriousLoss:
    """Packets that were declared lost have been acknowledged after all."""

    now_s: float
    packets: tuple[Packet, ...]
    bytes_in_flight: int


@dataclass(frozen=True, slots=True)
class Timeout:
    """A probe timeout expired (RFC 9002, section 6.2): no ACK came. No packet is lost by that."""

    now_s: float
    consecutive: int
    """1 for the first since the last ACK."""
    bytes_in_flight: int


@dataclass(frozen=True, slots=True)
class Idle:
    """The next packet is the first after a time in which nothing was in flight."""

    now_s: float
    idle_s: float


@dataclass(frozen=True, slots=True)
class AppLimited:
    """There was nothing to send, though window and pacing allowed it."""

    now_s: float
    bytes_in_flight: int
