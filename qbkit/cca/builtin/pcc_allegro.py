"""PCC Allegro: randomised trials of two rates, a utility of throughput and loss.

Dong et al., "PCC: Re-architecting Congestion Control for Consistent High Performance", NSDI 2015.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from ..monitor_intervals import LEAST_RATE_BYTES_PER_S, MonitorInterval, Trials
from ..pcc import Pcc

TOLERATED_LOSS = 0.05
STEEPNESS = 100.0
"""α of the sigmoid (section 2.2: at least 100)."""
LEAST_STEP, GREATEST_STEP = 0.01, 0.05
"""ε_min and ε_max (section 3.2)."""
PAIRS = 2
INTERVAL_RTTS = 1.7, 2.2
"""An interval lasts a random time between these (section 3.1)."""


class PccAllegro(Pcc):
    """Section 3.2's three states: starting, decision making, rate adjusting."""

    def interval_s(self) -> float:
        """Random, so that senders do not try in step."""
        return random.uniform(*INTERVAL_RTTS) * self.smoothed_rtt_s

    def utility(self, interval: MonitorInterval) -> float:
        """u = T·sigmoid(L − 0.05) − x·L (section 2.2), T, x in Mbit/s."""
        loss = interval.loss_rate
        sigmoid = 1 / (1 + math.exp(STEEPNESS * (loss - TOLERATED_LOSS)))
        return interval.throughput_mbps * sigmoid - interval.rate_mbps * loss

    def learn(self) -> Trials:
        """Try both directions until two pairs agree; go on that way while it pays."""
        step = LEAST_STEP
        while True:
            self.log(state="decision_making")
            rate = self.rate_bytes_per_s
            signs = [random.choice((1, -1)) for _ in range(PAIRS)]
            results = yield [rate * (1 + way * sign * step) for sign in signs for way in (1, -1)]
            utilities = [self.utility(interval) for interval in results]
            direction = agreed_direction(signs, utilities)
            if not direction:
                step = min(step + LEAST_STEP, GREATEST_STEP)
                continue
            self.rate_bytes_per_s = max(rate * (1 + direction * step), LEAST_RATE_BYTES_PER_S)
            yield from self._adjust(direction, max(utilities[-2:]))
            step = LEAST_STEP

    def _adjust(self, direction: int, utility: float) -> Trials:
        """r_n = r_(n-1)·(1 + n·ε_min·direction), until the utility falls; then back by one."""
        self.log(state="rate_adjusting")
        steps = 1
        while True:
            rate = self.rate_bytes_per_s * (1 + steps * LEAST_STEP * direction)
            (interval,) = yield [rate]
            now = self.utility(interval)
            if now < utility or rate < LEAST_RATE_BYTES_PER_S:
                return
            self.rate_bytes_per_s, utility = rate, now
            steps += 1


def agreed_direction(signs: Sequence[int], utilities: Sequence[float]) -> int:
    """+1 or −1 where every pair was worth more that way, else 0.

    In pair i the first rate was higher if ``signs[i]`` is 1, the second if it is −1.
    """
    pairs = zip(signs, utilities[::2], utilities[1::2], strict=True)
    ways = {sign if first > second else -sign for sign, first, second in pairs}
    return ways.pop() if len(ways) == 1 else 0
