"""Whether a bottleneck queues fairly: two flows of one sender find out while they start.

Bachl, Fabini and Zseby, "Detecting Fair Queuing for Better Congestion Control", section III-A: flow
2 sends twice as fast as flow 1, both double each round trip until both lose packets in one. A
shared queue takes the same part from both; a fair one leaves both with the same rate, and so takes
the larger part from flow 2.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from .controller import RateController, Settings
from .events import Ack, Loss, Packet, Sent, Timeout

CUTOFF = 1.5
"""The loss ratio is 2 with fair queuing and 1 without (step 4)."""
LEAST_PACKETS = 10
"""Of flow 1 in a round trip; where fewer fit, a round lasts longer (as PCC's intervals do)."""
LOSSY_ROUNDS = 3
"""The verdict is that of the third round in which both lose: the first that begins when losses of
both are known. The paper's text takes the first in which both lose; its code (CN-TU/PCC-Uspace,
``pccclient.cpp``) waits until both have lost, then measures a new interval, as this does. In the
first the queue has often just begun to drop; and a queue of one packet a flow is fair only where
the flows together send several times what the link carries, because each must always have a packet
there when its turn comes."""
INTERVAL_SPREAD = 0.5, 1.5
"""Randomised pacing: an interval is a random part of the regular one (section VII)."""


@dataclass
class Tally:
    """Packets of one flow in one round."""

    sent: int = 0
    acked: int = 0
    lost: int = 0

    @property
    def is_known(self) -> bool:
        """What became of all of them."""
        return self.acked + self.lost >= self.sent

    @property
    def received_part(self) -> float:
        """Receiving rate over sending rate."""
        return self.acked / self.sent


@dataclass
class Round:
    """A round trip of both flows."""

    flows: tuple[Tally, Tally] = field(default_factory=lambda: (Tally(), Tally()))
    heard: set[int] = field(default_factory=set)
    """Flows of which a packet sent in it was acknowledged."""

    @property
    def both_lost(self) -> bool:
        """Packets of either flow."""
        return all(flow.lost for flow in self.flows)


@dataclass(frozen=True)
class Verdict:
    """What the start-up found."""

    loss_ratios: tuple[float, ...]
    """Equation 1, (received/sent of flow 1)/(received/sent of flow 2), of the rounds in which both
    lost; infinite if flow 2 got nothing through. The last decides."""
    sent_packets: tuple[int, int]
    """Of the two flows, in the round that decided."""
    lost_packets: tuple[int, int]

    @property
    def loss_ratio(self) -> float:
        """That of the round that decided."""
        return self.loss_ratios[-1]

    @property
    def is_fair(self) -> bool:
        """The bottleneck has fair queuing."""
        return self.loss_ratio > CUTOFF


class FairQueuingProbe:
    """Sets the rates of two flows, indexed 0 and 1, and counts their packets."""

    def __init__(self) -> None:
        self.verdict: Verdict | None = None
        self._rate_bytes_per_s = 0.0
        self._rounds: list[Round] = []
        self._outstanding: dict[tuple[int, int], Round] = {}
        """Flow and number of a packet → its round; both flows may send at the same time."""
        self._lost: dict[tuple[int, int], Round] = {}
        """Likewise; what a timeout takes for lost may be acknowledged yet."""

    @property
    def has_started(self) -> bool:
        """Before, packets are those of handshakes."""
        return bool(self._rounds)

    def start(self, rtt_s: float, window_bytes: float) -> None:
        """Both together send ``window_bytes`` in the first round trip."""
        self._rate_bytes_per_s = window_bytes / rtt_s / 3
        self._rounds.append(Round())

    def rate_bytes_per_s(self, flow: int) -> float:
        """Of a flow, now."""
        return self._rate_bytes_per_s * (1 + flow)

    def on_sent(self, flow: int, packet: Packet) -> None:
        """Begin the next round with it if this one is over."""
        current = self._rounds[-1]
        if len(current.heard) == 2 and current.flows[0].sent >= LEAST_PACKETS:
            if not self._is_saturated():
                self._rate_bytes_per_s *= 2
            current = Round()
            self._rounds.append(current)
        current.flows[flow].sent += 1
        self._outstanding[flow, packet.number] = current

    def on_acked(self, flow: int, packets: Iterable[Packet]) -> None:
        """Count them in the rounds in which they were sent."""
        for packet in packets:
            key = flow, packet.number
            if one := self._lost.pop(key, None):
                one.flows[flow].lost -= 1
            elif not (one := self._outstanding.pop(key, None)):
                continue  # of the handshake
            one.flows[flow].acked += 1
            one.heard.add(flow)
        self._decide()

    def on_lost(self, flow: int, packets: Iterable[Packet]) -> None:
        """Likewise."""
        self._take_for_lost([(flow, packet.number) for packet in packets])
        self._decide()

    def on_timeout(self, flow: int) -> None:
        """Nothing of the flow is acknowledged any more: what is outstanding is taken for lost."""
        self._take_for_lost([key for key in self._outstanding if key[0] == flow])
        for one in self._rounds:
            if one.flows[flow].sent:
                one.heard.add(flow)
        self._decide()

    def _take_for_lost(self, keys: Iterable[tuple[int, int]]) -> None:
        """Once each: a timeout takes packets for lost that loss detection declares lost later."""
        for key in keys:
            if one := self._outstanding.pop(key, None):
                one.flows[key[0]].lost += 1
                self._lost[key] = one

    def _lossy(self) -> list[Round]:
        """Rounds that are over, in which both lost."""
        return [one for one in self._rounds[:-1] if one.both_lost]

    def _is_saturated(self) -> bool:
        """Enough rounds were lossy, or all but one, and the last may be: then wait for its fate."""
        lossy = self._lossy()
        is_last_awaited = len(lossy) == LOSSY_ROUNDS - 1 and lossy[-1] is self._rounds[-2]
        return len(lossy) >= LOSSY_ROUNDS or is_last_awaited

    def _decide(self) -> None:
        lossy = self._lossy()[:LOSSY_ROUNDS]
        if self.verdict or len(lossy) < LOSSY_ROUNDS:
            return
        one, two = lossy[-1].flows
        if one.is_known and two.is_known:
            self.verdict = Verdict(
                tuple(loss_ratio(*each.flows) for each in lossy),
                (one.sent, two.sent),
                (one.lost, two.lost),
            )


def loss_ratio(one: Tally, two: Tally) -> float:
    """Equation 1; 1 if nothing of either flow was received."""
    if not two.acked:
        return math.inf if one.acked else 1.0
    return one.received_part / two.received_part


class ProbingFlow(RateController):
    """One of the two flows, at the rate of their common probe."""

    window_rtts = 8.0
    """Rates differ by exactly two only where no window holds them back."""

    def __init__(
        self, settings: Settings, probe: FairQueuingProbe, index: int, *, is_randomised: bool
    ) -> None:
        super().__init__(settings)
        self.probe = probe
        self.smoothed_rtt_s = self.min_rtt_s = 0.0
        self.delivery_rate_bytes_per_s = 0.0
        """What the path delivered last."""
        self._index = index
        self._is_randomised = is_randomised

    def on_sent(self, sent: Sent) -> None:
        """Count it, and set the interval to the next packet."""
        if self.probe.has_started:
            self.probe.on_sent(self._index, sent.packet)
            self._pace()

    def on_ack(self, ack: Ack) -> None:
        """Count them."""
        self.smoothed_rtt_s, self.min_rtt_s = ack.smoothed_rtt_s, ack.min_rtt_s
        if ack.delivery:
            self.delivery_rate_bytes_per_s = ack.delivery.rate_bytes_per_s
        self.probe.on_acked(self._index, ack.packets)

    def on_loss(self, loss: Loss) -> None:
        """Count them."""
        self.probe.on_lost(self._index, loss.packets)

    def on_timeout(self, timeout: Timeout) -> None:
        """The window is full, and no ACK comes."""
        self.probe.on_timeout(self._index)

    def _pace(self) -> None:
        rate = self.probe.rate_bytes_per_s(self._index)
        if self._is_randomised:
            rate /= random.uniform(*INTERVAL_SPREAD)
        self.set_rate(rate, self.smoothed_rtt_s)
