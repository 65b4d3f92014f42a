"""What PCC Allegro and PCC Vivace share: the starting state."""

from __future__ import annotations

import math
from abc import abstractmethod

from .monitor_intervals import MonitoringController, MonitorInterval, Trials


class Pcc(MonitoringController):
    """Tries rates, and goes where its utility function says.

    Between a trial and its result the rate stays, as in PCC's own code: the starting state doubles
    every two round trips.
    """

    @abstractmethod
    def utility(self, interval: MonitorInterval) -> float:
        """What the interval was worth."""

    @abstractmethod
    def learn(self) -> Trials:
        """What comes after the starting state."""

    def trials(self) -> Trials:
        """Double until the utility falls, and go back to the rate before that."""
        if not self.knows_its_rate:
            yield from self._start_up()
        yield from self.learn()

    def _start_up(self) -> Trials:
        self.log(state="starting")
        best = -math.inf
        while True:
            (interval,) = yield [self.rate_bytes_per_s]
            utility = self.utility(interval)
            if utility < best:
                self.rate_bytes_per_s /= 2
                return
            best = utility
            self.rate_bytes_per_s *= 2
