"""BBR's probing for bandwidth: a cycle of pacing gains."""

from __future__ import annotations

import random
from collections.abc import Callable

GAINS = (1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)


class GainCycle:
    """Sends faster for about a round trip, slower for the next, and as fast for the other six."""

    def __init__(self) -> None:
        self._phase = 0
        self._start_s = 0.0

    @property
    def gain(self) -> float:
        """Of the phase."""
        return GAINS[self._phase]

    def begin(self, now: float) -> None:
        """At a random phase, but not in the one that drains: flows are not to march in step."""
        self._phase = (len(GAINS) - random.randrange(len(GAINS) - 1)) % len(GAINS)
        self._start_s = now

    def update(
        self,
        now: float,
        *,
        min_rtt_s: float,
        has_lost: bool,
        in_flight: float,
        target: Callable[[float], float],
    ) -> None:
        """Go on when the phase is over; ``target`` gives the bytes in flight at a gain.

        A phase takes a round trip. Probing lasts until the pipe holds what it puts in, or loses it;
        draining ends when the pipe holds no more than it should.
        """
        over = now - self._start_s > min_rtt_s
        if self.gain > 1:
            over = over and (has_lost or in_flight >= target(self.gain))
        elif self.gain < 1:
            over = over or in_flight <= target(1.0)
        if over:
            self._phase = (self._phase + 1) % len(GAINS)
            self._start_s = now
