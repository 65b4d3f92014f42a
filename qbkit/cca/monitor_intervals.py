"""Monitor intervals: PCC's way to learn what a sending rate does.

Dong et al., "PCC: Re-architecting Congestion Control for Consistent High Performance", NSDI 2015:
a sender tries rates, each for an interval, and sees one RTT later what became of the packets that
it sent in it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from statistics import fmean, linear_regression

from .controller import RateController, Settings
from .events import Ack, AppLimited, Loss, Sent

LEAST_PACKETS = 10
"""That an interval lasts for (NSDI 2015, section 3.1)."""
LEAST_RATE_BYTES_PER_S = 62_500.0
"""0.5 Mbit/s, as in PCC's own code: a packet goes before the receiver's ACK timer (25 ms) fires."""
REORDERED_PACKETS = 3
"""RFC 9002, section 6.1.1: a packet that is acknowledged so much later shows a loss."""


@dataclass
class MonitorInterval:
    """What was sent in an interval, and what became of it."""

    start_s: float
    duration_s: float
    first_number: int
    is_trial: bool
    """False: it only waits for the results of others."""
    last_number: int = -1
    sent_packets: int = 0
    sent_bytes: int = 0
    acked_bytes: int = 0
    lost_bytes: int = 0
    rtts: list[tuple[float, float]] = field(default_factory=list)
    """When a packet was sent, and its RTT, in s."""
    end_s: float | None = None
    """None while it lasts."""
    is_app_limited: bool = False
    """There was nothing to send for a part of it."""

    def is_over(self, now_s: float) -> bool:
        """It has lasted long enough."""
        return now_s >= self.start_s + self.duration_s and self.sent_packets >= LEAST_PACKETS

    def is_known(self, newest_number: int) -> bool:
        """What became of all its packets, once so new a packet is acknowledged."""
        if self.end_s is None:
            return False
        resolved = self.acked_bytes + self.lost_bytes >= self.sent_bytes
        return resolved or newest_number >= self.last_number + REORDERED_PACKETS

    @property
    def length_s(self) -> float:
        """From its begin to that of the next."""
        assert self.end_s is not None
        return self.end_s - self.start_s

    @property
    def rate_mbps(self) -> float:
        """What was sent."""
        return self.sent_bytes * 8e-6 / self.length_s

    @property
    def throughput_mbps(self) -> float:
        """What of it arrived."""
        return self.acked_bytes * 8e-6 / self.length_s

    @property
    def loss_rate(self) -> float:
        """Part of the bytes that did not arrive."""
        return 1 - self.acked_bytes / self.sent_bytes

    @property
    def mean_rtt_s(self) -> float:
        """NaN where nothing arrived."""
        return fmean(rtt for _, rtt in self.rtts) if self.rtts else math.nan

    @property
    def rtt_gradient(self) -> float:
        """Seconds of RTT per second: slope of the regression line, 0 for fewer than two RTTs."""
        times = [sent_s for sent_s, _ in self.rtts]
        if len(times) < 2 or times[0] == times[-1]:
            return 0.0
        return linear_regression(times, [rtt for _, rtt in self.rtts]).slope


Trials = Generator[list[float], list[MonitorInterval], None]
"""Yields the rates (bytes/s) of the next trials, one interval each; is sent what they showed."""


class MonitoringController(RateController):
    """Tries rates by the plan that `trials` yields.

    Between the last trial and its results, one RTT later, the sender keeps the rate of
    ``self.rate_bytes_per_s``.
    """

    window_rtts = 4.0

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.rate_bytes_per_s = 0.0
        """The rate that it goes on from."""
        self.knows_its_rate = False
        """True: no start-up is needed."""
        self.smoothed_rtt_s = self.min_rtt_s = math.nan
        self.delivery_rate_bytes_per_s = 0.0
        """What the path delivered last."""
        self._trials: Trials | None = None
        self._rates: deque[float] = deque()
        self._intervals: deque[MonitorInterval] = deque()
        self._results: list[MonitorInterval] = []
        self._open_trials = 0

    @abstractmethod
    def trials(self) -> Trials:
        """The algorithm; begins at ``self.rate_bytes_per_s``."""

    @abstractmethod
    def interval_s(self) -> float:
        """How long the next interval shall last, in s."""

    def start_at(self, rate_bytes_per_s: float, smoothed_rtt_s: float, min_rtt_s: float) -> None:
        """Begin without a start-up, at a rate known from elsewhere."""
        self.knows_its_rate = True
        self._start(rate_bytes_per_s, smoothed_rtt_s, min_rtt_s)

    def on_sent(self, sent: Sent) -> None:
        """Count it in its interval; begin the next when that is over."""
        if math.isnan(self.smoothed_rtt_s):
            return
        packet = sent.packet
        current = self._intervals[-1] if self._intervals else None
        if current is None or current.is_over(packet.sent_s) or self._is_waiting_in_vain(current):
            current = self._begin(packet.sent_s, packet.number)
        current.last_number = packet.number
        current.sent_packets += 1
        current.sent_bytes += packet.size_bytes

    def on_app_limited(self, limited: AppLimited) -> None:
        """Say so of the interval; in the handshake there is nothing to send either."""
        if self._intervals and self.delivery_rate_bytes_per_s:
            self._intervals[-1].is_app_limited = True

    def on_loss(self, loss: Loss) -> None:
        """Count the packets in their intervals."""
        for packet in loss.packets:
            if interval := self._interval_of(packet.number):
                interval.lost_bytes += packet.size_bytes

    def on_ack(self, ack: Ack) -> None:
        """Likewise; then look which intervals are known now."""
        newest = ack.packets[-1]
        for packet in ack.packets:
            if interval := self._interval_of(packet.number):
                interval.acked_bytes += packet.size_bytes
                if packet is newest:  # the others waited for it at the receiver
                    interval.rtts.append((packet.sent_s, ack.now_s - packet.sent_s))
        if math.isnan(self.smoothed_rtt_s):
            rate = self.window_bytes / ack.smoothed_rtt_s
            self._start(rate, ack.smoothed_rtt_s, ack.min_rtt_s)
        self.smoothed_rtt_s, self.min_rtt_s = ack.smoothed_rtt_s, ack.min_rtt_s
        if ack.delivery:
            self.delivery_rate_bytes_per_s = ack.delivery.rate_bytes_per_s
        assert self.pacing_rate_bytes_per_s is not None
        self.set_rate(self.pacing_rate_bytes_per_s, ack.smoothed_rtt_s)
        while self._intervals and self._intervals[0].is_known(newest.number):
            interval = self._intervals.popleft()
            if interval.is_trial:
                self._results.append(interval)
                self._open_trials -= 1

    def _start(self, rate_bytes_per_s: float, smoothed_rtt_s: float, min_rtt_s: float) -> None:
        self.rate_bytes_per_s = rate_bytes_per_s
        self.smoothed_rtt_s, self.min_rtt_s = smoothed_rtt_s, min_rtt_s
        self.set_rate(rate_bytes_per_s, smoothed_rtt_s)

    def _interval_of(self, number: int) -> MonitorInterval | None:
        for interval in self._intervals:
            if interval.first_number <= number <= interval.last_number:
                return interval
        return None

    def _is_waiting_in_vain(self, current: MonitorInterval) -> bool:
        """All results are there."""
        return not current.is_trial and not self._open_trials

    def _begin(self, now_s: float, number: int) -> MonitorInterval:
        """The next trial, or an interval that waits."""
        if self._intervals:
            self._intervals[-1].end_s = now_s
        if not self._open_trials and not self._rates:
            self._plan()
        is_trial = bool(self._rates)
        rate = self._rates.popleft() if is_trial else self.rate_bytes_per_s
        self._open_trials += is_trial
        self.set_rate(max(rate, LEAST_RATE_BYTES_PER_S), self.smoothed_rtt_s)
        self._intervals.append(MonitorInterval(now_s, self.interval_s(), number, is_trial))
        return self._intervals[-1]

    def _plan(self) -> None:
        """Give the algorithm what it asked for."""
        results, self._results = self._results, []
        if self._trials is None:
            self._trials = self.trials()
            self._rates.extend(next(self._trials))
        else:
            self._rates.extend(self._trials.send(results))
