"""Copa: sends at 1 / (δ · queueing delay), and more so where others fill the queue.

Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI '18,
sections 2.1 (the rule), 2.2 (competition with flows that fill the buffer) and 2.3 (pacing).

Its window moves as a wave that empties the queue every five round trips, by which it knows that no
other fills it. The wave is a few packets high, so that the paper's limit, a tenth of it, is less
than a packet: by that alone Copa takes its own queue for another's (`EMPTY_PACKETS`).
"""

from __future__ import annotations

import math
from collections import deque
from typing import ClassVar

from ..controller import Settings, WindowController
from ..events import Ack, Loss
from ..filters import WindowedMin
from ..options import Option, number
from ..rounds import RoundTrips

MIN_RTT_WINDOW_S = 10.0
STEADY_ROUNDS = 3
"""The velocity doubles once the window has moved one way for so many round trips."""
EMPTY_ROUNDS, MAX_RTT_ROUNDS = 5, 4
EMPTY_PART, EMPTY_PACKETS = 0.1, 2
"""A queue that was not below a tenth of its range for 5 round trips is filled by others. Less than
two packets at Copa's own rate also count as empty (not in the paper): delays come in packets. Alone
on a simulated path of 4 Mbit/s and 20 ms it competes for 89 % of the time without that, at 20
Mbit/s and 50 ms for 30 %; with it, never."""
MIN_WINDOW_PACKETS = 2


class Copa(WindowController):
    """Moves the window towards the target rate by v / δ packets a round trip."""

    options: ClassVar[dict[str, Option]] = {
        "delta": number("1/δ packets of its own in the queue (0.5)", 0.5, 0.004, 10),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.state = "slow_start"
        self._standing_rtt, self._min_rtt = WindowedMin(), WindowedMin()
        self._rounds = RoundTrips()
        self._round_max_s: deque[float] = deque([0.0], maxlen=MAX_RTT_ROUNDS)
        self._last_empty_round = 0
        self._losses_in_round = False
        self._target_packets = 1 / self.option["delta"]
        """1/δ."""
        self._window_before = self.window_bytes
        self._velocity, self._direction, self._same_rounds = 1.0, 0, 0

    @property
    def is_competing(self) -> bool:
        """Whether others keep the queue from running empty (section 2.2)."""
        return self._rounds.count - self._last_empty_round >= EMPTY_ROUNDS

    def on_ack(self, ack: Ack) -> None:
        """Section 2.1, steps 1 to 3; step 4 once a round trip."""
        if ack.rtt_s is None:
            return
        standing_s = self._standing_rtt.update(ack.now_s, ack.rtt_s, ack.smoothed_rtt_s / 2)
        min_s = self._min_rtt.update(ack.now_s, ack.rtt_s, MIN_RTT_WINDOW_S)
        self._watch_queue(ack.rtt_s, min_s, standing_s)
        if self._rounds.update(ack):
            self._end_round()
        queueing_s = standing_s - min_s
        target_bytes_per_s = math.inf
        if queueing_s > 0:
            target_bytes_per_s = self._target_packets * self.packet_bytes / queueing_s
        self._move(ack, upwards=self.window_bytes / standing_s <= target_bytes_per_s)
        self.pacing_rate_bytes_per_s = 2 * self.window_bytes / standing_s
        self.log(queue_ms=queueing_s * 1e3, target_packets=self._target_packets)

    def on_loss(self, loss: Loss) -> None:
        """Only its competitive mode takes note, and persistent congestion."""
        self._losses_in_round = True
        if loss.is_persistent_congestion:
            self.window_bytes = float(MIN_WINDOW_PACKETS * self.packet_bytes)
            self._turn(0)

    def _move(self, ack: Ack, *, upwards: bool) -> None:
        """By v / (δ window) for each packet acknowledged; double a round trip in slow start.

        A window that the application does not use does not grow (RFC 9002, section 7.8).
        """
        if upwards and ack.is_app_limited:
            self._turn(0)
            return
        if self.state == "slow_start":
            if upwards:
                self.window_bytes += ack.acked_bytes
                return
            self.state = "congestion_avoidance"
        direction = 1 if upwards else -1
        if direction != self._direction:
            self._turn(direction)
        step_packets = self._velocity * self._target_packets / self.window_bytes * ack.acked_bytes
        # Never faster than slow start: a large v comes from before the queue was there.
        step_bytes = min(step_packets * self.packet_bytes, ack.acked_bytes)
        window = self.window_bytes + direction * step_bytes
        self.window_bytes = max(window, MIN_WINDOW_PACKETS * self.packet_bytes)

    def _turn(self, direction: int) -> None:
        self._direction, self._velocity, self._same_rounds = direction, 1.0, 0

    def _end_round(self) -> None:
        """Step 4: v doubles while the window moves one way; section 2.2: 1/δ follows AIMD."""
        moved = math.copysign(1, self.window_bytes - self._window_before)
        self._window_before = self.window_bytes
        if moved == self._direction:
            self._same_rounds += 1
            if self._same_rounds >= STEADY_ROUNDS:
                self._velocity *= 2
        else:
            self._velocity, self._same_rounds = 1.0, 0
        least = 1 / self.option["delta"]
        if not self.is_competing:
            self._target_packets = least
        elif self._losses_in_round:
            self._target_packets = max(self._target_packets / 2, least)
        else:
            self._target_packets += 1
        self._losses_in_round = False
        self._round_max_s.append(0.0)

    def _watch_queue(self, rtt_s: float, min_s: float, standing_s: float) -> None:
        """Is the queue nearly empty?"""
        self._round_max_s[-1] = max(self._round_max_s[-1], rtt_s)
        packet_s = standing_s * self.packet_bytes / self.window_bytes
        range_s = max(self._round_max_s) - min_s
        if rtt_s - min_s < max(EMPTY_PART * range_s, EMPTY_PACKETS * packet_s):
            self._last_empty_round = self._rounds.count
