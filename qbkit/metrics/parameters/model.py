"""What a sender does to its path, measured in units of the path, from packets alone.

The rate of the link and the least RTT are known here, so a BDP is known too, and with it what a
sender that models its path must have in flight: while it cruises, at the end of startup, after its
path has become slower, and after a burst of losses. The last two need a path that does so
(`ProbePath`). A window that losses reduce is measured between two of them.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from qbkit.metrics.parameters.connection import GRID_PARTS, Connection, Load
from qbkit.metrics.parameters.limits import STILL_PACKETS
from qbkit.metrics.parameters.reductions import WindowReduction
from qbkit.metrics.parameters.rules import BURST, FALL, START
from qbkit.traces.arrays import FloatArray

BACK_TO_BACK = 0.25
"""Packets closer than this part of a packet's time on the link left together."""
PACED_PACKETS = 12
"""Packets whose rate is judged: fewer than a drain has, and more than a send quantum."""
EXTREME = (0.02, 0.98)
"""Parts of the time at a lower rate: a drain and a probe are each a larger part of a cycle."""
PEAK_RTTS = 40
"""Startup has its peak within this many round trips."""
FULL_PART = 0.9
"""A path is full when this part of its BDP is in flight."""
FALLEN = 0.75
"""What is in flight has fallen below this part of its peak or plateau."""
RISEN = 1.3
"""What is in flight has risen above this part of a plateau."""
NEAR_BDP = 1.4
SETTLED_S = 1.0
"""A fall that lasts this long is none of ProbeRTT's."""
FEWEST_STALE_ROUNDS = 4
"""Least rounds for which a plateau shows the window of a model that is out of date."""
BURST_RTTS = (4.0, 12.0)
"""When what a burst of losses leaves is judged: after recovery, and for a whole cycle of BBR's.
Until the next probe the path misses what was lost."""
GAINS = (0.75, 1.0, 1.25)
"""BBR's, of the delivery rate: in a drain, while cruising, and in a probe."""
DIP = 0.6
DIP_RTTS = (2.0, 20.0)
"""ProbeRTT: less than this part of the usual in flight, for so long, or `DIP_S` if that is more."""
DIP_S = 2.0
FEW_RTTS = (3.0, 12.0)
"""Losses this far apart leave no time for a line or a curve, only for a slope."""
STEEP = 2.0
"""Packets per RTT: twice Reno's."""
LEAST_BACK = 4.0
"""Fewest packets that a window regains for its way back to be seen."""
C = 0.4
"""CUBIC's, packets/s³ (RFC 9438, section 5.1)."""
MOST_OF = 0.9
"""A window is back when it has regained this part of what it will, and CUBIC then needs
(1 - (1 - `MOST_OF`)^(1/3)) of its K for it."""
CAPPED_PERCENT = 50.0
HELD_PART = 0.05
"""Largest change of a window that something holds, from one half of the time to the other."""
AGGREGATED = 8.0
"""Packets per ACK from which on ACKs are aggregated."""
LINEAR = (0.35, 0.65)
"""Part of its growth after half of its time, if a window grows along a line."""


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
        spec = json.loads(run.attrs.get("spec", "{}"))
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


def within(c: Connection, begin_s: float, end_s: float) -> Connection:
    """A connection as if it had begun and ended then."""

    def parts(sent_s: FloatArray, *others: FloatArray) -> list[FloatArray]:
        kept = (sent_s >= begin_s) & (sent_s < end_s)
        return [values[kept] for values in (sent_s, *others)]

    load = c.load
    sent_s, acked_or_lost_s, delivered_s = parts(c.sent_s, c.acked_or_lost_s, c.delivered_s)
    return replace(
        c,
        sent_s=sent_s,
        acked_or_lost_s=acked_or_lost_s,
        delivered_s=delivered_s,
        ack_s=c.ack_s[(c.ack_s >= begin_s) & (c.ack_s < end_s)],
        load=Load(*parts(load.sent_s, load.acked_or_lost_s, load.delivered_s, load.size_bytes)),
    )


def on_path(c: Connection) -> Connection:
    """A connection whose packets are in flight until they arrive, not until their ACKs do.

    What waits at the receiver for an ACK is in no queue.
    """

    def arrived_s(known: Connection | Load) -> FloatArray:
        delivered_s = known.delivered_s + c.min_rtt_s / 2
        return np.fmin(known.acked_or_lost_s, delivered_s)

    load = replace(c.load, acked_or_lost_s=arrived_s(c.load))
    return replace(c, acked_or_lost_s=arrived_s(c), load=load)


def bdp_packets(c: Connection) -> float:
    """Full packets that fill the link for the least RTT; NaN if its rate is unknown."""
    if c.link is None:
        return math.nan
    return c.link.rate_mbps * 1e6 / 8 * c.min_rtt_s / c.packet_bytes


def steady(c: Connection, after_s: float) -> dict[str, float]:
    """What is in flight while the path does not change, how packets leave, and wait for ACKs."""
    after_s = max(after_s, float(c.sent_s[0]) + PEAK_RTTS * c.min_rtt_s)
    later = c.grid_s > after_s
    window, bdp = on_path(c).in_flight_packets[later], bdp_packets(c)
    if len(window) < 40 * GRID_PARTS or math.isnan(bdp):
        return {}
    low, middle, high = np.quantile(window, [0.1, 0.5, 0.97])
    return {
        "standing_queue_bdp": max(float(low) / bdp - 1, 0.0),
        "cruise_part": float(middle / max(high, 1.0)),
        "probes_reach_bdp": float(high) / bdp,
        **pace(c, after_s),
        "back_to_back_packets": back_to_back(c, after_s),
        "receiver_wait_ms": receiver_wait_ms(c, after_s),
    }


def pace(c: Connection, after_s: float) -> dict[str, float]:
    """Sending rate over the link's in probes and in drains, but not in ProbeRTT."""
    sent_s = c.sent_s[c.sent_s > after_s]
    if c.link is None or len(sent_s) < 10 * PACED_PACKETS:
        return {}
    took_s = np.maximum(sent_s[PACED_PACKETS:] - sent_s[:-PACED_PACKETS], 1e-6)
    window = np.interp(sent_s, c.grid_s, c.in_flight_packets)
    window = np.minimum(window[PACED_PACKETS:], window[:-PACED_PACKETS])
    rate = PACED_PACKETS * c.packet_bytes * 8e-6 / c.link.rate_mbps / took_s
    usual = window > DIP * np.median(window)
    order = np.argsort(rate[usual])
    # Each packet counts by the time until the next one, so that parts of time are chosen.
    passed_s = np.cumsum(np.diff(sent_s)[: -PACED_PACKETS + 1][usual][order])
    at = np.searchsorted(passed_s, np.array([EXTREME[0], 0.5, EXTREME[1]]) * passed_s[-1])
    rates = rate[usual][order][at]
    return {
        "drain_rate": float(rates[0]),
        "probe_rate": float(rates[2]),
        "paced_part": min(float((rates / GAINS).max()), 1.0),
    }


def back_to_back(c: Connection, after_s: float) -> float:
    """Packets that leave together: the median over packets."""
    sent_s = c.sent_s[c.sent_s > after_s]
    if c.link is None or len(sent_s) < 2:
        return math.nan
    apart_s = BACK_TO_BACK * c.packet_bytes * 8e-6 / c.link.rate_mbps
    group = np.cumsum(np.diff(sent_s, prepend=sent_s[0]) > apart_s)
    return float(np.median(np.bincount(group)[group]))


def receiver_wait_ms(c: Connection, after_s: float) -> float:
    """How long the packet that waits longest for an ACK waits for it: the median over ACKs."""
    mine = ~c.lost & (c.sent_s > after_s)
    if not mine.any():
        return math.nan
    waits_s = (c.acked_or_lost_s - c.delivered_s)[mine] - c.min_rtt_s / 2
    _, ack = np.unique(c.acked_or_lost_s[mine], return_inverse=True)
    longest_s = np.zeros(ack.max() + 1)
    np.maximum.at(longest_s, ack, waits_s)
    return 1e3 * float(np.median(longest_s))


def startup(c: Connection) -> dict[str, float]:
    """Peak of startup, how long it lasts, and how it is drained."""
    bdp, begin_s, rtt_s = bdp_packets(c), float(c.sent_s[0]), c.min_rtt_s
    early = c.grid_s < begin_s + PEAK_RTTS * rtt_s
    time_s, window = c.grid_s[early], on_path(c).in_flight_packets[early]
    if math.isnan(bdp) or len(window) < PEAK_RTTS:
        return {}
    peak = float(window.max())
    high = np.flatnonzero(window >= FALLEN * peak)
    end = int(high[np.argmax(np.append(np.diff(high), len(window)) > GRID_PARTS)])
    rounds = np.cumsum(rtt_s / GRID_PARTS / c.rtt_s[early])
    full = np.flatnonzero(window >= FULL_PART * bdp)
    found = {
        "startup_peak_bdp": peak / bdp,
        "startup_reach_rtts": (full[0] + 1) / GRID_PARTS if len(full) else math.nan,
        "startup_hold_rtts": float(rounds[end] - rounds[high[0]]),
    }
    below = np.flatnonzero(window[end:] < NEAR_BDP * bdp)
    if FALLEN * peak > NEAR_BDP * bdp and len(below) and below[0] >= GRID_PARTS / 2:
        ends_s = time_s[[end, end + below[0]]]
        sent, delivered = (
            float(np.diff(count(ends_s))[0])
            for count in (c.load.sent_bytes, c.load.delivered_bytes)
        )
        found["startup_drain_gain"] = sent / max(delivered, 1.0)
    return found


def probe_rtts(c: Connection, spans: Sequence[tuple[float, float]]) -> dict[str, float | str]:
    """Whether less is in flight now and then though nothing was lost, and how little."""
    depths: list[float] = []
    observed_s = 0.0
    most_rtts = max(DIP_RTTS[1], DIP_S / c.min_rtt_s)
    for begin_s, end_s in spans:
        inside = (c.grid_s > begin_s) & (c.grid_s < end_s)
        window = c.in_flight_packets[inside]
        if len(window) < 40:
            continue
        observed_s += end_s - begin_s
        edges = np.flatnonzero(np.diff(window < DIP * np.median(window), prepend=0, append=0))
        for low, high in zip(edges[::2], edges[1::2], strict=True):
            dip = (high - low) / GRID_PARTS
            if low > 0 and high < len(window) and DIP_RTTS[0] <= dip <= most_rtts:
                depths.append(float(window[low:high].min()) / bdp_packets(c))
    if not depths:
        return {"probe_rtt": "never"} if observed_s > 3 * 10.0 else {}
    every_s = observed_s / len(depths)
    depth = float(np.median(depths))
    return {"probe_rtt": "often", "probe_rtt_every_s": every_s, "probe_rtt_bdp": depth}


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
        window = float(c.in_flight_packets[_between(c, *stale_span(path))].max())
        per_ack = _per_ack(c, path)
        room = min(max(window - 2 * bdp, 0.0), per_ack)
        found["window_gain"], found["ack_room"] = window / bdp, 1.0
        if per_ack >= AGGREGATED:  # what has room for ACKs is no gain
            found |= {"window_gain": (window - room) / bdp, "ack_room": room / per_ack}
    before = flight[_between(c, path.burst_s - 2 * SETTLED_S, path.burst_s)]
    begin_s, end_s = (path.burst_s + rtts * rtt_s for rtts in BURST_RTTS)
    after = flight[_between(c, begin_s, end_s)]
    if len(before) and len(after) and np.median(before) > 0:
        # A burst also empties the queue: what fills the path is what is to be kept, and no more.
        kept = float(after.max() / min(np.median(before), 1.0))
        found["kept_after_burst"] = min(kept, 1.0)
    return found


def stale_span(path: ProbePath) -> tuple[float, float]:
    """When what is in flight is the window of a model that is out of date.

    Later, a sender may have taken the RTT of its own queue for the path's.
    """
    return path.fall_s, path.fall_s + SETTLED_S


def _per_ack(c: Connection, path: ProbePath) -> float:
    """Packets per ACK before the path becomes slower."""
    at_s = c.acked_or_lost_s
    mine = ~c.lost & (at_s > path.fall_s / 2) & (at_s < path.fall_s)
    return float(mine.sum()) / max(len(np.unique(at_s[mine])), 1)


def _between(c: Connection, begin_s: float, end_s: float) -> slice:
    low, high = np.searchsorted(c.grid_s, [begin_s, end_s])
    return slice(int(low), int(high))


def _stale(c: Connection, flight: FloatArray, path: ProbePath) -> dict[str, float | str]:
    """How long the old rate is remembered after a fall, and how much is in flight until then."""
    ahead = int(SETTLED_S * GRID_PARTS / c.min_rtt_s)
    span = _between(c, path.fall_s, path.rise_s)
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
        return {"bandwidth_filter": "never forgets", "window_gain": plateau}
    forgot = first + int(low[0])
    if inside[first:forgot].max() > RISEN * plateau:  # of another RTT: it hides the rate
        return {"window_gain": plateau} if forgot - first > ahead else {}
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


def between_losses(
    c: Connection, reductions: Sequence[WindowReduction], limited_percent: float
) -> dict[str, float]:
    """Growth where losses are close to each other, the way back to the last, and a cap."""
    from scipy import ndimage  # slow to load

    window = ndimage.median_filter(c.in_flight_packets, GRID_PARTS + 1, mode="nearest")
    rounds = np.cumsum(c.min_rtt_s / GRID_PARTS / c.rtt_s)
    slopes: list[float] = []
    back: list[float] = []
    for this, following in itertools.pairwise(reductions):
        span = _between(c, this.end_s, following.begin_s)
        grown, rtts = window[span], rounds[span]
        if len(grown) < 2 * GRID_PARTS:
            continue
        low = int(np.argmin(grown))
        took = float(rtts[-1] - rtts[low])
        slope = float(grown[-1] - grown[low]) / max(took, 1.0)
        half = low + int(np.searchsorted(rtts[low:], rtts[low] + took / 2))
        part = float(grown[half] - grown[low]) / max(float(grown[-1] - grown[low]), 1.0)
        if took < FEW_RTTS[1] and slope > STEEP and LINEAR[0] < part < LINEAR[1]:
            slopes.append(slope)
        if len(grown) > FEW_RTTS[1] * GRID_PARTS:
            back.append(_way_back(c, grown))
    found = {}
    if slopes and 2 * len(slopes) > len(reductions) - 1:
        found["steep_increase_packets_per_rtt"] = float(np.median(slopes))
    if back:
        found["back_at_loss_part"] = float(np.nanmedian(back))
    if limited_percent > CAPPED_PERCENT or _is_held(c, window):
        found["window_cap_packets"] = float(np.median(c.in_flight_packets))
    return found


def _is_held(c: Connection, window: FloatArray) -> bool:
    """Whether, for most of the time, the window does not grow, without a loss.

    A receiver that reads slowly holds the window, though it moves with each update of flow control.
    """
    since_s = max([float(c.sent_s[0]), *c.loss_detected_s[-1:]]) + PEAK_RTTS * c.min_rtt_s
    later = c.grid_s > since_s
    if later.mean() < CAPPED_PERCENT / 100:
        return False
    early, late = (float(np.median(half)) for half in np.array_split(window[later], 2))
    return bool(abs(late - early) <= max(STILL_PACKETS, HELD_PART * early))


def _way_back(c: Connection, grown: FloatArray) -> float:
    """When most of what a window regains until the middle of a span is back, over CUBIC's K."""
    third = len(grown) // 3
    most = float(np.median(grown[third : 2 * third]))
    least = float(grown[:GRID_PARTS].min())
    if most - least < LEAST_BACK:
        return math.nan
    at = int(np.argmax(grown >= least + MOST_OF * (most - least)))
    k_s = ((most - least) / C) ** (1 / 3) * (1 - (1 - MOST_OF) ** (1 / 3))
    return float(at * c.min_rtt_s / GRID_PARTS / k_s)
