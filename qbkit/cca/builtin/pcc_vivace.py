"""PCC Vivace: gradient ascent on a utility of rate, RTT gradient and loss.

Dong et al., "PCC Vivace: Online-Learning Congestion Control", NSDI 2018. The authors' later code
(PCCproject/PCC-Uspace) has the same t, b, c, ε, θ_0 and ω_0, but δ = 0.05 and m(τ) = τ^1.2.

The RTT gradient of an interval is the slope through the few RTTs of a round trip, so jitter hides
it; the threshold of section 5.3 is the only filter here. Alone on a link of 40 ms, whose senders
have jitter of half a frame's time by default, it takes 18.0 of 20 Mbit/s, 8.7 of 10 and 1.8 of 4;
without jitter 9.0 of 10 and 3.6 of 4 (one seed, the last two thirds of 20 s).
"""

from __future__ import annotations

import random

from ..controller import Settings
from ..monitor_intervals import LEAST_RATE_BYTES_PER_S, MonitorInterval, Trials
from ..pcc import Pcc

EXPONENT, LATENCY_COST, LOSS_COST = 0.9, 900.0, 11.35
"""t, b and c of the utility (section 4.1)."""
STEP = 0.05
"""ε: the two rates tried are 5 % above and below (section 5)."""
FIRST_LIMIT, LIMIT_STEP = 0.05, 0.1
"""ω_0 and δ: a change is at most ω_0 + k·δ of the rate (section 5.2)."""
LEAST_RTT_GRADIENT = 0.01
"""What is less is taken to be noise (section 5.3)."""
MBPS = 1e6 / 8
"""Bytes/s."""


class PccVivace(Pcc):
    """Starting state, then pairs of trials whose utilities give the gradient."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._ascent = Ascent()

    def interval_s(self) -> float:
        """One round trip."""
        return self.smoothed_rtt_s

    def utility(self, interval: MonitorInterval) -> float:
        """u = x^t − b·x·dRTT/dt − c·x·L (equation 1), x in Mbit/s."""
        rate, gradient = interval.rate_mbps, interval.rtt_gradient
        if abs(gradient) < LEAST_RTT_GRADIENT:
            gradient = 0.0
        return float(
            rate**EXPONENT - LATENCY_COST * rate * gradient - LOSS_COST * rate * interval.loss_rate
        )

    def learn(self) -> Trials:
        """γ = (u(r(1 + ε)) − u(r(1 − ε))) / 2εr, and a step along it."""
        self.log(state="online_learning")
        while True:
            rate = self.rate_bytes_per_s
            sign = random.choice((1, -1))
            first, second = yield [rate * (1 + sign * STEP), rate * (1 - sign * STEP)]
            difference = sign * (self.utility(first) - self.utility(second))
            gradient = difference / (2 * STEP * rate / MBPS)
            self.rate_bytes_per_s = max(
                rate + self._ascent.change_mbps(gradient, rate / MBPS) * MBPS,
                LEAST_RATE_BYTES_PER_S,
            )


class Ascent:
    """How far to go along a gradient (section 5.2)."""

    def __init__(self) -> None:
        self._sign = 0
        self._same = 0
        """τ: so many gradients in a row had this sign."""
        self._relaxed = 0
        """k."""

    def change_mbps(self, gradient: float, rate_mbps: float) -> float:
        """Δr = m(τ)·θ_0·γ with θ_0 = 1, within the dynamic boundary ω·r."""
        sign = 1 if gradient > 0 else -1
        if sign != self._sign:
            self._sign, self._same, self._relaxed = sign, 0, 0
        self._same += 1
        change = confidence(self._same) * gradient
        limit = (FIRST_LIMIT + self._relaxed * LIMIT_STEP) * rate_mbps
        if abs(change) > limit:
            self._relaxed += 1
            return sign * limit
        needed = (abs(change) / rate_mbps - FIRST_LIMIT) / LIMIT_STEP
        self._relaxed = max(0, -int(-needed // 1))
        return change


def confidence(same: int) -> int:
    """m(τ): τ up to 3, then 2τ − 3."""
    return same if same <= 3 else 2 * same - 3
