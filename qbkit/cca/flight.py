"""Between a QUIC stack and a controller: packets in flight become the controller's events.

Whoever carries a controller (the aioquic of `qbkit.stacks.drivers.cca_flow`, or a simulated path
in a test) reports what happened to packets here, so that the same class makes the same decisions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from .controller import Controller
from .delivery import DeliverySampler, Snapshot
from .events import Ack, AppLimited, Idle, Loss, Packet, Sent, SpuriousLoss, Timeout


@dataclass(slots=True)
class InFlight:
    """What is kept of a packet until its fate is known."""

    packet: Packet
    snapshot: Snapshot | None
    """None for a packet of the handshake, which is no sample of the path's rate."""


@dataclass(frozen=True, slots=True)
class RttEstimate:
    """RFC 9002, section 5."""

    latest_s: float | None
    """None if the ACK gave no sample."""
    smoothed_s: float
    min_s: float


class Flight:
    """Counts what is in flight, and reports to the controller once per ACK, in RFC 9002's order.

    `on_acked` and `on_lost` only collect; `end_ack` and `end_losses` report.
    """

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.bytes_in_flight = 0
        self.lost_packets = 0
        self._sampler = DeliverySampler()
        self._number = 0
        self._limited_number = 0
        self._prior_bytes_in_flight: int | None = None
        self._acked: list[Packet] = []
        self._lost: list[Packet] = []
        self._persistent_congestion = False
        self._empty_since_s: float | None = None
        self._min_one_way_delay_s = math.inf

    @property
    def delivered_bytes(self) -> int:
        """Acknowledged since the start, handshake aside."""
        return self._sampler.delivered_bytes

    def on_sent(self, size_bytes: int, now_s: float, *, is_handshake: bool = False) -> InFlight:
        """A packet that counts as in flight was sent."""
        if not self.bytes_in_flight and self._empty_since_s is not None:
            self.controller.on_idle(Idle(now_s, now_s - self._empty_since_s))
        snapshot = None if is_handshake else self._sampler.on_sent(now_s, self.bytes_in_flight)
        packet = Packet(self._number, size_bytes, now_s)
        self._number += 1
        self.bytes_in_flight += size_bytes
        self.controller.on_sent(Sent(packet, self.bytes_in_flight))
        return InFlight(packet, snapshot)

    def on_acked(self, sent: InFlight, now_s: float, one_way_delay_s: float | None = None) -> None:
        """The ACK being read acknowledges it; packets come in the order in which they were sent."""
        packet = sent.packet
        self._remove(packet, now_s)
        if sent.snapshot:
            self._sampler.on_acked(sent.snapshot, packet.sent_s, packet.size_bytes, now_s)
        if one_way_delay_s is not None:
            packet = replace(packet, one_way_delay_s=one_way_delay_s)
            self._min_one_way_delay_s = min(self._min_one_way_delay_s, one_way_delay_s)
        self._acked.append(packet)

    def on_lost(self, sent: InFlight, now_s: float) -> None:
        """It was declared lost."""
        self._remove(sent.packet, now_s)
        self.lost_packets += 1
        self._lost.append(sent.packet)

    def on_persistent_congestion(self) -> None:
        """The losses being collected establish it."""
        self._persistent_congestion = True

    def on_expired(self, sent: InFlight) -> None:
        """Its fate stays unknown: keys were discarded, or a probe sent its data again."""
        self._remove(sent.packet, None)
        self._prior_bytes_in_flight = None

    def end_losses(self, now_s: float) -> None:
        """A loss timer has expired: report what it found."""
        self._tell_losses(now_s)
        self._prior_bytes_in_flight = None

    def _tell_losses(self, now_s: float) -> None:
        if not self._lost:
            return
        packets, self._lost = tuple(sorted(self._lost, key=_number)), []
        persistent, self._persistent_congestion = self._persistent_congestion, False
        lost_bytes = sum(packet.size_bytes for packet in packets)
        self.controller.on_loss(Loss(now_s, packets, lost_bytes, self.bytes_in_flight, persistent))

    def end_ack(
        self,
        now_s: float,
        rtt: RttEstimate,
        *,
        spurious: Iterable[Packet] = (),
        next_departure_s: float = -math.inf,
        ecn_ce_packets: int = 0,
    ) -> None:
        """One ACK frame has been read: report its spurious losses, its losses, and the ACK."""
        if found := tuple(spurious):
            self.controller.on_spurious_loss(SpuriousLoss(now_s, found, self.bytes_in_flight))
        self._tell_losses(now_s)
        prior, self._prior_bytes_in_flight = self._prior_bytes_in_flight, None
        if not self._acked:
            return
        packets, self._acked = tuple(sorted(self._acked, key=_number)), []
        delivery = self._sampler.take()
        one_way_delay_s = packets[-1].one_way_delay_s
        self.controller.on_ack(
            Ack(
                now_s=now_s,
                packets=packets,
                acked_bytes=sum(packet.size_bytes for packet in packets),
                bytes_in_flight=self.bytes_in_flight,
                prior_bytes_in_flight=self.bytes_in_flight if prior is None else prior,
                delivered_bytes=self.delivered_bytes,
                delivery=delivery,
                rtt_s=rtt.latest_s,
                smoothed_rtt_s=rtt.smoothed_s,
                min_rtt_s=rtt.min_s,
                one_way_delay_s=one_way_delay_s,
                one_way_delay_variation_s=(
                    None if one_way_delay_s is None else one_way_delay_s - self._min_one_way_delay_s
                ),
                next_departure_s=next_departure_s,
                ecn_ce_packets=ecn_ce_packets,
                is_app_limited=delivery is not None and packets[-1].number < self._limited_number,
            )
        )
        if self.controller.is_sending_less:
            self._sampler.limit(self.bytes_in_flight)

    def on_timeout(self, now_s: float, consecutive: int) -> None:
        """A probe timeout expired."""
        self.controller.on_timeout(Timeout(now_s, consecutive, self.bytes_in_flight))

    def on_app_limited(self, now_s: float) -> None:
        """There was nothing to send though window and pacing allowed it."""
        self._limited_number = self._number
        self._sampler.limit(self.bytes_in_flight)
        self.controller.on_app_limited(AppLimited(now_s, self.bytes_in_flight))

    def _remove(self, packet: Packet, now_s: float | None) -> None:
        if self._prior_bytes_in_flight is None:
            self._prior_bytes_in_flight = self.bytes_in_flight
        self.bytes_in_flight -= packet.size_bytes
        self._empty_since_s = None if self.bytes_in_flight else now_s


def _number(packet: Packet) -> int:
    return packet.number
