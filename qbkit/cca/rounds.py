"""Round trips counted by packets."""

from __future__ import annotations

import math

from .events import Ack


class RoundTrips:
    """A round trip ends when a packet that was sent in it is acknowledged."""

    def __init__(self) -> None:
        self.count = 0
        """Rounds that have ended."""
        self._start_s = -math.inf

    def update(self, ack: Ack) -> bool:
        """Whether this ACK ends a round (and begins the next); once for every ACK."""
        if ack.newest_sent_s < self._start_s:
            return False
        self._start_s = ack.now_s
        self.count += 1
        return True
