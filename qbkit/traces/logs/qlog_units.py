"""The units and the special values of a qlog's metrics."""

from __future__ import annotations

import math
from collections.abc import Callable

from qbkit.traces.logs.qlog_records import Metrics

NO_LIMIT = (1 << 53) - 1
"""The largest integer of JSON (RFC 8259 §6): from here on, a window or a rate is no limit."""
NO_LIMITS = ((1 << 31) - 1, (1 << 32) - 1)
"""The largest integers of 32 bits mean the same."""
LONGEST_RTT_MS = 1e9
"""A longer RTT, of 11 days, says that there is no sample."""
APART = math.sqrt(1000)
"""A factor between two units; below its root the smaller one fits better."""


def limit(value: float | None) -> float | None:
    """A window or a rate; infinite where it is the largest number of its type."""
    return math.inf if value is not None and (value >= NO_LIMIT or value in NO_LIMITS) else value


class RttUnit:
    """Finds the unit of a trace's RTTs: that of its times, but not of every writer.

    quinn writes RTTs in s beside times in ms, and some writers RTTs in ms beside times in µs.
    """

    def __init__(self, time_unit_ms: float, warn: Callable[[str], None]) -> None:
        self._time_unit_ms, self._warn = time_unit_ms, warn
        self._unit_ms: float | None = None
        self._probe: tuple[str, int, float] | None = None
        self._measured_ms: float | None = None
        self._any_received = False

    def sent(self, time_s: float, space: str, number: int) -> None:
        """A packet was sent: its acknowledgement, or that of a later one, measures the RTT."""
        if self._probe is None:
            self._probe = space, number, time_s

    def received(self) -> None:
        """A packet was received."""
        self._any_received = True

    def acked(self, time_s: float, space: str, low: int, high: int) -> None:
        """The peer acknowledged packets ``low`` to ``high``."""
        if self._measured_ms is None and self._probe and self._probe[0] == space:
            _, number, sent_s = self._probe
            if low <= number <= high and time_s > sent_s:
                self._measured_ms = (time_s - sent_s) * 1e3

    def of(self, m: Metrics) -> float:
        """The unit of the RTTs in these metrics, in ms."""
        rtt = m.smoothed_rtt or m.latest_rtt or m.min_rtt
        if self._unit_ms is not None or not rtt:
            return self._unit_ms or self._time_unit_ms
        if self._time_unit_ms == 1:
            return self._of_ms(m)
        if self._measured_ms is None:  # an assumed RTT is longer than 1 ms (RFC 9002 §6.2.2)
            return 1.0 if self._probe and rtt * self._time_unit_ms < 1 else self._time_unit_ms
        self._unit_ms = 1.0 if rtt < APART * self._measured_ms else self._time_unit_ms
        if self._unit_ms == 1:
            self._warn("has times in µs, but RTTs in ms")
        return self._unit_ms

    def _of_ms(self, m: Metrics) -> float:
        """s or ms: before the first sample, no stack assumes an RTT below 1 ms.

        An assumed RTT has half its value as variation (RFC 9002 §5.3), before any packet was
        received; or it is the RFC's 333 ms, as on a server whose log begins later.
        """
        if m.smoothed_rtt is None:
            return 1.0
        srtt = m.smoothed_rtt
        assumed = m.rtt_variance is not None and srtt == 2 * m.rtt_variance
        seconds = assumed and 0 < srtt < 1 and (srtt == 0.333 or not self._any_received)
        self._unit_ms = 1e3 if seconds else 1.0
        return self._unit_ms
