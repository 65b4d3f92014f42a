"""A designed path that becomes slower, fast again, and loses a burst, and how a sender responds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from qbkit.metrics.parameters.connection import GRID_PARTS, Connection, between
from qbkit.metrics.parameters.model import FALLEN, bdp_packets, on_path
from qbkit.metrics.parameters.rules import BURST, FALL, START
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.attributes import spec_of

RISEN = 1.3
"""What is in flight has risen above this part of a plateau."""
SETTLED_S = 1.0
"""A fall that lasts this long is none of ProbeRTT's."""
FEWEST_STALE_ROUNDS = 4
"""Least rounds for which a plateau shows the window of a model that is out of date."""
BURST_RTTS = (3.0, 7.0)
"""When what a burst of losses leaves is judged: after recovery, and before a bound that a loss sets
for a cycle of BBR's is over."""
AGGREGATED = 8.0
"""Packets per ACK from which on ACKs are aggregated."""
TWICE = 1.9
"""BDP from which on a window is twice the BDP, and has room for ACKs or not."""


@dataclass(frozen=True)
class ProbePath:
    """When a designed path becomes slower, fast again, and loses a burst."""

    fall_s: float
    rise_s: float
    burst_s: float
    end_s: float
    low_part: float
    """Its rate in between, as a part of its usual one."""

    @classmethod
    def of(cls, run: xr.Dataset) -> ProbePath | None:
        """The one of a run; None if its path is another."""
        spec = spec_of(run)
        link = spec.get("bottleneck", {})
        steps = (link.get("capacity") or {}).get("steps", ())
        bursts = (link.get("outages") or {}).get("times", ())
        if len(steps) != 3 or len(bursts) != 1 or not steps[1][1] < steps[0][1] == steps[2][1]:
            return None
        low_part = steps[1][1] / steps[0][1]
        return cls(steps[1][0], steps[2][0], bursts[0][0], float(spec["duration_s"]), low_part)

    def around(self, moment: str) -> tuple[float, tuple[float, float]]:
        """When a moment of `qbkit.metrics.parameters.rules` is, and the seconds that show it."""
        return {
            START: (0.0, (0.0, 4.0)),
            FALL: (self.fall_s, (self.fall_s - 3.0, self.rise_s)),
            BURST: (self.burst_s, (self.burst_s - 2.0, self.burst_s + 5.0)),
        }.get(moment, (self.fall_s / 2, (self.fall_s / 2, self.fall_s)))

    @property
    def spans(self) -> list[tuple[float, float]]:
        """From and until when nothing changes, at the usual rate, after it has settled."""
        return [
            (0.0, self.fall_s),
            (self.rise_s + SETTLED_S, self.burst_s),
            (self.burst_s + 2 * SETTLED_S, self.end_s),
        ]


def response(c: Connection, path: ProbePath) -> dict[str, float | str]:
    """What happens when the path becomes slower, and when it loses a burst."""
    from scipy import ndimage  # slow to load

    bdp, rtt_s = bdp_packets(c), c.min_rtt_s
    if math.isnan(bdp):
        return {}
    packets = on_path(c).in_flight_packets
    flight = ndimage.median_filter(packets, GRID_PARTS + 1, mode="nearest") / bdp
    found = _stale(c, flight, path)
    if isinstance(found.get("window_gain"), float):
        window = float(c.in_flight_packets[between(c.grid_s, *stale_span(path))].max())
        per_ack = _per_ack(c, path)
        room = min(max(window - 2 * bdp, 0.0), per_ack)
        found["window_gain"], found["ack_room"] = window / bdp, 1.0
        if per_ack >= AGGREGATED and window >= TWICE * bdp:  # what has room for ACKs is no gain
            found |= {"window_gain": (window - room) / bdp, "ack_room": room / per_ack}
    before = flight[between(c.grid_s, path.burst_s - 2 * SETTLED_S, path.burst_s)]
    begin_s, end_s = (path.burst_s + rtts * rtt_s for rtts in BURST_RTTS)
    after = flight[between(c.grid_s, begin_s, end_s)]
    if len(before) and len(after) and np.median(before) > 0:
        # A burst also empties the queue: what fills the path is what is to be kept, and no more.
        kept = float(np.median(after) / min(np.median(before), 1.0))
        found["kept_after_burst"] = min(kept, 1.0)
    return found


def stale_span(path: ProbePath) -> tuple[float, float]:
    """When what is in flight is the window of a model that is out of date.

    Later, a sender may have taken the RTT of its own queue for the path's.
    """
    return path.fall_s, path.fall_s + SETTLED_S


def _sends_too_much(c: Connection, path: ProbePath) -> bool:
    """Whether most of what the old rate sends and the slower path cannot take is lost."""
    slow = between(c.sent_s, path.fall_s + SETTLED_S, path.rise_s)
    return bool(c.lost[slow].mean() > (1 - path.low_part) / 2)


def _per_ack(c: Connection, path: ProbePath) -> float:
    """Packets per ACK before the path becomes slower."""
    at_s = c.acked_or_lost_s
    mine = ~c.lost & (at_s > path.fall_s / 2) & (at_s < path.fall_s)
    return float(mine.sum()) / max(len(np.unique(at_s[mine])), 1)


def _stale(c: Connection, flight: FloatArray, path: ProbePath) -> dict[str, float | str]:
    """How long the old rate is remembered after a fall, and how much is in flight until then."""
    ahead = int(SETTLED_S * GRID_PARTS / c.min_rtt_s)
    span = between(c.grid_s, path.fall_s, path.rise_s)
    if span.stop - span.start < 4 * ahead:
        return {}
    inside = flight[span]
    first = int(inside[:ahead].argmax())
    plateau = float(inside[first])
    if plateau < 1.5 * path.low_part:
        return {}
    highest = np.lib.stride_tricks.sliding_window_view(inside, ahead).max(axis=1)
    low = np.flatnonzero(highest[first:] < FALLEN * plateau)
    if not len(low):
        top = int(inside.argmax())
        forgot_later = bool((highest[top:] < path.low_part * inside[top]).any())
        grown = inside[top] > RISEN * plateau  # of another RTT, as below
        if grown and (forgot_later or not _sends_too_much(c, path)):
            return {"window_gain": plateau}
        return {"bandwidth_filter": "never forgets", "window_gain": plateau}
    forgot = first + int(low[0])
    if inside[first:forgot].max() > RISEN * plateau:  # of another RTT: it hides the rate
        gain = {"window_gain": plateau} if forgot - first > ahead else {}
        return {"bandwidth_filter": "forgets", **gain}
    rounds = np.cumsum(c.min_rtt_s / GRID_PARTS / c.rtt_s[span])
    later = c.in_flight_packets[span][forgot + ahead // 2 : forgot + ahead + ahead // 2]
    found: dict[str, float | str] = {
        "bandwidth_filter": "forgets",
        "bandwidth_memory_rounds": float(rounds[forgot]),
        "left_in_flight_bdp": float(np.median(later)) / bdp_packets(c) / path.low_part,
    }
    if rounds[forgot] >= FEWEST_STALE_ROUNDS:
        found["window_gain"] = plateau
    return found
