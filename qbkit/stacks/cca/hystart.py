"""HyStart: slow start ends when the round trip grows."""

from __future__ import annotations

import math

from aioquic.quic.packet_builder import QuicSentPacket

from .base import sent_s

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
        self._round_start_s = 0.0
        self._samples = 0
        self._round_rtt_s = self._least_rtt_s = math.inf

    def on_acked(self, packet: QuicSentPacket, now: float) -> None:
        """A round ends with the first packet that was sent in it."""
        if sent_s(packet) >= self._round_start_s:
            self._round_start_s = now
            self._samples = 0
            self._round_rtt_s = math.inf

    def is_over(self, rtt_s: float, window_packets: float) -> bool:
        """Whether this RTT ends slow start."""
        self._least_rtt_s = min(self._least_rtt_s, rtt_s)
        if self._samples < SAMPLES:
            self._samples += 1
            self._round_rtt_s = min(self._round_rtt_s, rtt_s)
        if self._samples < SAMPLES or window_packets < LEAST_WINDOW_PACKETS:
            return False
        rise_s = min(max(RTT_SHARE * self._least_rtt_s, LEAST_RISE_S), GREATEST_RISE_S)
        return self._round_rtt_s > self._least_rtt_s + rise_s
