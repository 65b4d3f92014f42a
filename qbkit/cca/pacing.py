"""When packets may depart at a pacing rate."""

from __future__ import annotations

import math

CREDIT_S = 0.001
"""Lateness up to this is made good by sending sooner: timers of the driver wait whole ms."""


class Departures:
    """Each packet has its earliest departure."""

    def __init__(self, packet_bytes: int) -> None:
        self._packet_bytes = packet_bytes
        self.next_s = -math.inf
        """When the next packet may go."""

    def on_sent(self, now_s: float, rate_bytes_per_s: float) -> None:
        """One packet goes; it is taken to be full."""
        packet_s = self._packet_bytes / rate_bytes_per_s if rate_bytes_per_s else 0.0
        self.next_s = max(self.next_s, now_s - CREDIT_S) + packet_s
