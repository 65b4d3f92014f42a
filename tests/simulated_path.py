"""A simulated bottleneck: one sender, a drop-tail queue, a fixed delay; for unit tests.

It reports packets to the same `Flight` as the QUIC stack, so controllers see the same events.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from qbkit.cca import Controller, Settings
from qbkit.cca.events import Ack, Packet
from qbkit.cca.flight import Flight, InFlight, RttEstimate
from qbkit.cca.pacing import Departures

PACKET_BYTES = 1000
PACKET_THRESHOLD = 3
TICKS_PER_S = 2**30
"""Events happen at ticks, so that floats hold differences of times exactly."""


def tick(time_s: float) -> float:
    """The first tick that is not before a time."""
    return math.ceil(time_s * TICKS_PER_S) / TICKS_PER_S


def ack(now_s: float, packet: Packet, rtt_s: float) -> Ack:
    """The ACK of a packet that was alone in flight."""
    size = packet.size_bytes
    return Ack(now_s, (packet,), size, 0, size, size, None, rtt_s, rtt_s, rtt_s)


def make(kind: type[Controller], **options: object) -> Controller:
    return kind(Settings(PACKET_BYTES, options))


@dataclass
class SimulatedPath:
    """Yields the time after every ACK. Packets have `PACKET_BYTES`; each is acknowledged."""

    controller: Controller
    rate_mbps: float = 10.0
    rtt_s: float = 0.1
    buffer_packets: float = math.inf
    loss: float = 0.0
    """Part of the packets that are lost at random."""
    reverse_delay_s: Callable[[float], float] = lambda now_s: 0.0
    """Extra delay of the ACK that leaves the receiver at that time."""
    ce_above_packets: float = math.inf
    """Packets that find a longer queue are marked."""
    start_s: float = 1.0
    now_s: float = 0.0
    dropped: int = 0
    queue_delay_s: float = 0.0
    """Of the packet acknowledged last."""
    flight: Flight = field(init=False)

    def __post_init__(self) -> None:
        self.flight = Flight(self.controller)
        self._random = random.Random(1)
        self._departures = Departures(PACKET_BYTES)
        self._outstanding: dict[int, InFlight] = {}
        self._acks: list[tuple[float, int, float, bool]] = []
        self._free_s = 0.0
        self._smoothed_s = self._min_s = self.rtt_s
        self._handshake()

    @property
    def bdp_packets(self) -> float:
        return self.rate_mbps * 1e6 / 8 * self.rtt_s / PACKET_BYTES

    def run(self, duration_s: float) -> Iterator[float]:
        """Seconds since the start, after every ACK that comes in."""
        end_s = self.now_s + duration_s
        while self.now_s < end_s:
            departure_s = self._departure_s()
            if departure_s <= self.now_s:
                self._send()
            elif self._acks and self._acks[0][0] <= departure_s:
                self._acknowledge()
                yield self.now_s - self.start_s
            elif departure_s < math.inf:
                self.now_s = tick(departure_s)
            else:
                self._time_out()

    def finish(self, duration_s: float) -> SimulatedPath:
        """Run without looking."""
        for _ in self.run(duration_s):
            pass
        return self

    def _handshake(self) -> None:
        sent = self.flight.on_sent(PACKET_BYTES, self.start_s - self.rtt_s, is_handshake=True)
        self.now_s = self.start_s
        self.flight.on_acked(sent, self.now_s)
        self._end_ack(self.rtt_s, marked=False)

    def _departure_s(self) -> float:
        if self.flight.bytes_in_flight + PACKET_BYTES > self.controller.window_bytes:
            return math.inf
        rate = self.controller.pacing_rate_bytes_per_s
        if rate is None or math.isinf(rate):
            return self.now_s
        return self._departures.next_s if rate else math.inf

    def _send(self) -> None:
        sent = self.flight.on_sent(PACKET_BYTES, self.now_s)
        rate = self.controller.pacing_rate_bytes_per_s
        if rate and math.isfinite(rate):
            self._departures.on_sent(self.now_s, rate)
        packet = sent.packet
        self._outstanding[packet.number] = sent
        packet_s = PACKET_BYTES * 8e-6 / self.rate_mbps
        at_queue_s = self.now_s + self.rtt_s / 4
        queued = max(0.0, self._free_s - at_queue_s) / packet_s
        if queued >= self.buffer_packets or self._random.random() < self.loss:
            self.dropped += 1
            return
        self._free_s = max(self._free_s, at_queue_s) + packet_s
        arrival_s = tick(self._free_s + self.rtt_s / 4)
        ack_s = tick(arrival_s + self.rtt_s / 2 + self.reverse_delay_s(arrival_s))
        marked = queued > self.ce_above_packets
        heapq.heappush(self._acks, (ack_s, packet.number, arrival_s, marked))

    def _acknowledge(self) -> None:
        self.now_s, number, arrival_s, marked = heapq.heappop(self._acks)
        sent = self._outstanding.pop(number, None)
        if sent is None:  # declared lost by a timeout
            return
        delay_s = arrival_s - sent.packet.sent_s
        self.queue_delay_s = delay_s - self.rtt_s / 2
        wanted = self.controller.uses_one_way_delay
        self.flight.on_acked(sent, self.now_s, delay_s if wanted else None)
        last = number - PACKET_THRESHOLD
        for lost in list(takewhile(lambda n: n <= last, self._outstanding)):  # in order of sending
            self.flight.on_lost(self._outstanding.pop(lost), self.now_s)
        self._end_ack(self.now_s - sent.packet.sent_s, marked)

    def _end_ack(self, rtt_s: float, marked: bool) -> None:
        self._min_s = min(self._min_s, rtt_s)
        self._smoothed_s += (rtt_s - self._smoothed_s) / 8
        estimate = RttEstimate(rtt_s, self._smoothed_s, self._min_s)
        marks = int(marked and self.controller.uses_ecn)
        self.flight.end_ack(
            self.now_s, estimate, next_departure_s=self._departures.next_s, ecn_ce_packets=marks
        )

    def _time_out(self) -> None:
        """All that is outstanding was lost: a probe would find that after two smoothed RTTs."""
        self.now_s = tick(self.now_s + 2 * self._smoothed_s)
        self.flight.on_timeout(self.now_s, 1)
        for sent in self._outstanding.values():
            self.flight.on_lost(sent, self.now_s)
        self._outstanding.clear()
        self.flight.end_losses(self.now_s)
