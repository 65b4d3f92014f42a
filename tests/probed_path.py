"""The simulated bottleneck of `simulated_path` with the events of a probe path, as a connection."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
from simulated_path import PACKET_BYTES, SimulatedPath, make

from qbkit.cca import Controller
from qbkit.metrics.parameters import Parameters, infer
from qbkit.metrics.parameters.behaviour import of_samples, samples_of_path
from qbkit.metrics.parameters.connection import Connection, Load, SharedLink
from qbkit.metrics.parameters.model import within
from qbkit.metrics.parameters.probe_path import ProbePath

RATE_MBPS, RTT_S = 5.0, 0.05
PATH = ProbePath(fall_s=15.0, rise_s=40.0, burst_s=46.0, end_s=60.0, low_part=0.4)


@dataclass
class ProbedPath(SimulatedPath):
    """Records each packet, and changes as `PATH` does."""

    sent_s: list[float] = field(default_factory=list)
    delivered_s: dict[int, float] = field(default_factory=dict)
    acked_s: dict[int, float] = field(default_factory=dict)

    def _send(self) -> None:
        at_s = self.now_s - self.start_s
        slow = PATH.fall_s <= at_s < PATH.rise_s
        self.rate_mbps = RATE_MBPS * (PATH.low_part if slow else 1.0)
        self.loss = float(PATH.burst_s <= at_s < PATH.burst_s + 0.2 * RTT_S)
        waiting = len(self._acks)
        super()._send()
        self.sent_s.append(at_s)
        if len(self._acks) > waiting:
            self.delivered_s[next(reversed(self._outstanding))] = self._free_s - self.start_s

    def _acknowledge(self) -> None:
        ack_s, number, _, _ = self._acks[0]
        self.acked_s[number] = ack_s - self.start_s
        super()._acknowledge()

    def connection(self) -> Connection:
        """What was sent and acknowledged; what was lost is known by the next ACK."""
        first = max(self._outstanding, default=len(self.sent_s)) - len(self.sent_s) + 1
        numbers = range(first, first + len(self.sent_s))
        acked_s, delivered_s = (
            np.array([known.get(n, np.nan) for n in numbers])
            for known in (self.acked_s, self.delivered_s)
        )
        known = np.isfinite(acked_s) | np.isnan(delivered_s)
        acked_s, delivered_s = acked_s[known], delivered_s[known]
        later_s = np.minimum.accumulate(np.where(np.isnan(acked_s), np.inf, acked_s)[::-1])[::-1]
        reported_s = np.where(np.isfinite(later_s), later_s, np.nanmax(acked_s))
        sizes = np.full(len(acked_s), float(PACKET_BYTES))
        sent_s = np.array(self.sent_s)[known]
        load = Load(sent_s, reported_s, delivered_s, sizes)
        left_s = np.sort(delivered_s[np.isfinite(delivered_s)])
        link = SharedLink(RATE_MBPS, left_s, PACKET_BYTES * np.arange(1.0, len(left_s) + 1))
        ack_s = np.sort(acked_s[np.isfinite(acked_s)])
        return Connection(
            "simulated", sent_s, reported_s, delivered_s, ack_s, PACKET_BYTES, RTT_S, load, link
        )


def connection_of(kind: type[Controller], *, seed: int = 1, **options: object) -> Connection:
    """A controller on the path."""
    random.seed(seed)
    bdp = RATE_MBPS * 1e6 / 8 * RTT_S / PACKET_BYTES
    path = ProbedPath(make(kind, **options), RATE_MBPS, RTT_S, buffer_packets=6 * bdp)
    path.finish(PATH.end_s)
    return path.connection()


def probed(kind: type[Controller], **options: object) -> Parameters:
    """What a controller shows on the path."""
    c = connection_of(kind, **options)
    found = infer(within(c, 0.0, PATH.fall_s))
    return Parameters("simulated", [*found.values(), *of_samples([samples_of_path(c, PATH)])])
