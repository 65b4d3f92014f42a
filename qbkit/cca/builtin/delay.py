"""The simple delay-based controller of Bachl, Fabini and Zseby (section III-B).

"Detecting Fair Queuing for Better Congestion Control": 1 % faster while the RTT is at most 5 ms
above the least, else 5 % slower; after a slow start like New Reno's. A loss changes nothing: where
the queue cannot hold 5 ms, the rate grows without end. An interval that the application does not
fill makes it no faster (RFC 9002, section 7.8).
"""

from __future__ import annotations

from ..monitor_intervals import LEAST_RATE_BYTES_PER_S, MonitoringController, Trials

TOLERATED_DELAY_S = 0.005
FASTER, SLOWER = 1.01, 0.95
INTERVAL_RTTS = 1.5
"""The paper does not say how often; its code decides by the mean RTT of intervals this long."""


class Delay(MonitoringController):
    """Changes its rate by the mean RTT of each interval."""

    def interval_s(self) -> float:
        """One decision takes 1.5 RTTs, and one more until its effect is known."""
        return INTERVAL_RTTS * self.smoothed_rtt_s

    def trials(self) -> Trials:
        """Double until something is lost, go on at what arrives; then the two rules."""
        if not self.knows_its_rate:
            yield from self._start_slowly()
        self.log(state="delay_control")
        while True:
            (interval,) = yield [self.rate_bytes_per_s]
            is_short = interval.mean_rtt_s <= self.min_rtt_s + TOLERATED_DELAY_S
            if is_short and interval.is_app_limited:
                continue
            rate = self.rate_bytes_per_s * (FASTER if is_short else SLOWER)
            self.rate_bytes_per_s = max(rate, LEAST_RATE_BYTES_PER_S)

    def _start_slowly(self) -> Trials:
        self.log(state="slow_start")
        while True:
            (interval,) = yield [self.rate_bytes_per_s]
            if interval.lost_bytes:
                self.rate_bytes_per_s = self.delivery_rate_bytes_per_s
                return
            if not interval.is_app_limited:
                self.rate_bytes_per_s *= 2
