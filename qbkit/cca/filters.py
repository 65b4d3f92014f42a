"""What BBR remembers of the path: maxima and minima that grow old."""

from __future__ import annotations

import math
from collections import deque

MIN_RTT_WINDOW_S = 10.0
FULL_GROWTH = 1.25
FULL_ROUNDS = 3
EXTRA_ACKED_ROUNDS = 5


class WindowedMax:
    """The greatest of the values whose time is at most ``window`` before the latest's."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._best: deque[tuple[int, float]] = deque()  # later and smaller from left to right

    def update(self, at: int, value: float) -> None:
        """Times do not go back."""
        while self._best and self._best[-1][1] <= value:
            self._best.pop()
        self._best.append((at, value))
        while self._best[0][0] < at - self._window:
            self._best.popleft()

    @property
    def value(self) -> float:
        """0 before the first."""
        return self._best[0][1] if self._best else 0.0


class WindowedMin:
    """The least of the values of the last so many seconds, a number that may change."""

    def __init__(self) -> None:
        self._best: deque[tuple[float, float]] = deque()  # later and larger from left to right

    def update(self, now_s: float, value: float, window_s: float) -> float:
        """Take a value; the least now. Times do not go back."""
        while self._best and self._best[-1][1] >= value:
            self._best.pop()
        self._best.append((now_s, value))
        while self._best[0][0] < now_s - window_s:
            self._best.popleft()
        return self._best[0][1]


class MinRtt:
    """The least round trip; after 10 s without a smaller one, the next takes its place."""

    def __init__(self) -> None:
        self.value_s = math.inf
        self.found_s = -math.inf

    def update(self, rtt_s: float | None, now: float) -> bool:
        """Whether the old one had expired; ``rtt_s`` is None for an ACK without a sample."""
        expired = now > self.found_s + MIN_RTT_WINDOW_S and math.isfinite(self.value_s)
        if rtt_s is not None and (rtt_s < self.value_s or expired):
            self.value_s, self.found_s = rtt_s, now
        return expired


class FullPipe:
    """Three rounds in which the bandwidth grew by less than a quarter: there is no more."""

    def __init__(self) -> None:
        self.reached = False
        self._best = 0.0
        self._rounds = 0

    def update(self, bandwidth: float) -> None:
        """Once a round, with a sample that the application did not limit."""
        if self.reached:
            return
        if bandwidth >= FULL_GROWTH * self._best:
            self._best, self._rounds = bandwidth, 0
            return
        self._rounds += 1
        self.reached = self._rounds >= FULL_ROUNDS


class ExtraAcked:
    """How much more than expected was acknowledged at once, at most, in 5 to 10 rounds.

    Linux's addition to the draft: paths that aggregate ACKs need a larger window.
    """

    def __init__(self) -> None:
        self._epoch_s = 0.0
        self._epoch_bytes = 0.0
        self._best = [0.0, 0.0]
        self._rounds = 0

    @property
    def value_bytes(self) -> float:
        """0 where ACKs come evenly."""
        return max(self._best)

    def update(
        self, acked_bytes: int, bandwidth: float, window_bytes: float, round_start: bool, now: float
    ) -> None:
        """Every ACK."""
        if round_start:
            self._rounds += 1
            if self._rounds >= EXTRA_ACKED_ROUNDS:
                self._rounds = 0
                self._best = [0.0, self._best[0]]
        expected = bandwidth * (now - self._epoch_s)
        if self._epoch_bytes <= expected:
            self._epoch_s, self._epoch_bytes, expected = now, 0.0, 0.0
        self._epoch_bytes += acked_bytes
        extra = min(self._epoch_bytes - expected, window_bytes)
        self._best[0] = max(self._best[0], extra)
