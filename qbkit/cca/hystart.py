"""HyStart: slow start ends when the round trip grows."""

from __future__ import annotations

import math

from .events import Ack
from .rounds import RoundTrips

SAMPLES = 8
LEAST_RISE_S, GREATEST_RISE_S = 0.004, 0.016
RTT_SHARE = 1 / 8
LEAST_WINDOW_PACKETS = 16


class HyStart:
    """The delay increase of Linux's CUBIC: the least of a round's first 8 RTTs is an eighth longer.

    RFC 9406, section 4.2, compares with the round before and not with the least RTT of all, and
    goes on slowly for five rounds; Linux's trains of ACKs need a sender that does not pace.
    """

    def __init__(self) -> None:
        self._rounds = RoundTrips()
        self._samples = 0
        self._round_rtt_s = self._least_rtt_s = math.inf

    def is_over(self, ack: Ack, window_packets: float) -> bool:
        """Whether this ACK ends slow start; call for every ACK in it."""
        if self._rounds.update(ack):
            self._samples = 0
            self._round_rtt_s = math.inf
        if ack.rtt_s is None:
            return False
        self._least_rtt_s = min(self._least_rtt_s, ack.rtt_s)
        if self._samples < SAMPLES:
            self._samples += 1
            self._round_rtt_s = min(self._round_rtt_s, ack.rtt_s)
        if self._samples < SAMPLES or window_packets < LEAST_WINDOW_PACKETS:
            return False
        rise_s = min(max(RTT_SHARE * self._least_rtt_s, LEAST_RISE_S), GREATEST_RISE_S)
        return self._round_rtt_s > self._least_rtt_s + rise_s
