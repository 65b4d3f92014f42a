"""What a sender does to its path, measured in units of the path, from packets alone.

The rate of the link and the least RTT are known here, so a BDP is known too, and with it what a
sender that models its path must have in flight: while it cruises, and at the end of startup.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from qbkit.metrics.parameters.connection import GRID_PARTS, Connection, Load
from qbkit.metrics.parameters.phases import DIP, DIP_S
from qbkit.traces.arrays import BoolArray, FloatArray

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
NEAR_BDP = 1.4
GAINS = (0.75, 1.0, 1.25)
"""BBR's, of the delivery rate: in a drain, while cruising, and in a probe."""
FALLS_BDP = 0.015
"""What is in flight falls by more than this in the round trip of a drain."""
CRUISING = 0.15
"""Of the time outside of drains, the part with the least in flight: it shows the rate of cruising
before the window ends one that is too fast, and hardly any probe."""
DRAINED = 0.88
"""A drain is slower than this times cruising; drains that are not are too short to be seen."""
UNFILLED = 0.95
"""Something holds a window that never fills this part of the path, unless it is paced below it."""
ABOVE = 1.03
"""A sender that cruises faster than this times the link's rate fills a queue after each drain."""
DIP_RTTS = (2.0, 20.0)
"""ProbeRTT: less than `DIP` of the usual in flight, for so long, or `DIP_S` if that is more."""
BOTTOM_POINTS = 5
"""ProbeRTT keeps the same in flight for more than an RTT; a drain that goes too far turns."""
BOTTOM_PACKETS, BOTTOM_BDP = 2.0, 0.05
"""What is the same: it differs by less than one or the other."""
INTERVAL_S = 10.0
"""From ProbeRTT to ProbeRTT in BBR."""


def within(c: Connection, begin_s: float, end_s: float) -> Connection:
    """A connection as if it had begun and ended then."""

    def parts(sent_s: FloatArray, *others: FloatArray) -> list[FloatArray]:
        kept = (sent_s >= begin_s) & (sent_s < end_s)
        return [values[kept] for values in (sent_s, *others)]

    load, receiver_ack_s = c.load, c.receiver_ack_s
    if receiver_ack_s is not None:
        (receiver_ack_s,) = parts(receiver_ack_s)
    sent_s, acked_or_lost_s, delivered_s = parts(c.sent_s, c.acked_or_lost_s, c.delivered_s)
    return replace(
        c,
        sent_s=sent_s,
        acked_or_lost_s=acked_or_lost_s,
        delivered_s=delivered_s,
        ack_s=c.ack_s[(c.ack_s >= begin_s) & (c.ack_s < end_s)],
        receiver_ack_s=receiver_ack_s,
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
    paces = pace(c, after_s)
    fills = paces.get("paced_part", 1.0) > ABOVE
    held = high < UNFILLED * bdp and paces.get("probe_rate", 0.0) > ABOVE
    return {
        "standing_queue_bdp": max(float(middle if fills else low) / bdp - 1, 0.0),
        "cruise_part": float(middle / max(high, 1.0)),
        "probes_reach_bdp": float(high) / bdp,
        **({"window_cap_packets": float(high)} if held else {}),
        **paces,
        "back_to_back_packets": back_to_back(c, after_s),
        "receiver_wait_ms": receiver_wait_ms(c, after_s),
    }


def pace(c: Connection, after_s: float) -> dict[str, float]:
    """Sending rate over the link's in drains and probes, and the factor that all phases share.

    A window may hide how fast a probe is, so a factor above 1 is read while cruising.
    """
    rates = phase_rates(c, after_s)
    if rates is None:
        return {}
    drain, cruise, probe = (float(rate) for rate in rates)
    factors = rates / GAINS
    seen = factors if drain < DRAINED * cruise else factors[1:]
    shared = max(min(float(seen.max()), 1.0), cruise)
    return {"drain_rate": drain, "probe_rate": probe, "paced_part": shared}


def phase_rates(c: Connection, after_s: float) -> FloatArray | None:
    """(3,) sending rate over the link's in a drain, while cruising, and in a probe.

    ProbeRTT does not count. None if too few packets are sent.
    """
    sent_s = c.sent_s[c.sent_s > after_s]
    if c.link is None or len(sent_s) < 10 * PACED_PACKETS:
        return None
    took_s = np.maximum(sent_s[PACED_PACKETS:] - sent_s[:-PACED_PACKETS], 1e-6)
    window = np.interp(sent_s, c.grid_s, c.in_flight_packets)
    window = np.minimum(window[PACED_PACKETS:], window[:-PACED_PACKETS])
    rate = PACED_PACKETS * c.packet_bytes * 8e-6 / c.link.rate_mbps / took_s
    usual = window > DIP * np.median(window)
    # Each packet counts by the time until the next one, so that parts of time are chosen.
    passed_s = np.diff(sent_s)[: -PACED_PACKETS + 1]
    drain, middle, probe = _at([EXTREME[0], 0.5, EXTREME[1]], rate[usual], passed_s[usual])
    kept = usual & ~_falls(c, (sent_s[PACED_PACKETS:] + sent_s[:-PACED_PACKETS]) / 2)
    if not kept.any():
        return np.array([drain, middle, probe])
    (least,) = _at([CRUISING], window[kept], passed_s[kept])
    cruising = kept & (window <= least)
    (cruise,) = _at([0.5], rate[cruising], passed_s[cruising])
    return np.array([drain, cruise, probe])


def _falls(c: Connection, at_s: FloatArray) -> BoolArray:
    """Whether what is in flight falls around each time, as in a drain."""
    before, after = (
        np.interp(at_s + side * c.min_rtt_s / 2, c.grid_s, c.in_flight_packets) for side in (-1, 1)
    )
    falls: BoolArray = after - before <= -FALLS_BDP * bdp_packets(c)
    return falls


def _at(parts: Sequence[float], values: FloatArray, weights: FloatArray) -> FloatArray:
    """Quantiles of values with weights, one for each part."""
    order = np.argsort(values)
    passed = np.cumsum(weights[order])
    found: FloatArray = values[order][np.searchsorted(passed, np.multiply(parts, passed[-1]))]
    return found


def back_to_back(c: Connection, after_s: float) -> float:
    """Packets that leave together: the median over packets."""
    sent_s = c.sent_s[c.sent_s > after_s]
    if c.link is None or len(sent_s) < 2:
        return math.nan
    apart_s = BACK_TO_BACK * c.packet_bytes * 8e-6 / c.link.rate_mbps
    group = np.cumsum(np.diff(sent_s, prepend=sent_s[0]) > apart_s)
    return float(np.median(np.bincount(group)[group]))


def receiver_wait_ms(c: Connection, after_s: float) -> float:
    """How long the packet that waits longest for an ACK waits for it: the median over ACKs.

    NaN where a way back makes it wait.
    """
    mine = ~c.lost & (c.sent_s > after_s)
    if c.receiver_ack_s is not None or not mine.any():
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
    if FALLEN * peak > NEAR_BDP * bdp and len(below) and below[0] > 0:
        ends_s = time_s[[end, end + below[0]]]
        sent, delivered = (
            float(np.diff(count(ends_s))[0])
            for count in (c.load.sent_bytes, c.load.delivered_bytes)
        )
        found["startup_drain_gain"] = sent / max(delivered, 1.0)
    return found


def probe_rtts(c: Connection, spans: Sequence[tuple[float, float]]) -> dict[str, float | str]:
    """Whether less is in flight now and then though nothing was lost, and how little.

    ``never`` is what was seen in three of BBR's intervals; a longer interval may hide in it.
    """
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
            level = _bottom(window[low:high], bdp_packets(c))
            whole = low > 0 and high < len(window) and math.isfinite(level)
            if whole and DIP_RTTS[0] <= dip <= most_rtts:
                depths.append(level / bdp_packets(c))
    if not depths:
        return {"probe_rtt": "never"} if observed_s > 3 * INTERVAL_S else {}
    every_s = observed_s / len(depths)
    depth = float(np.median(depths))
    return {"probe_rtt": "often", "probe_rtt_every_s": every_s, "probe_rtt_bdp": depth}


def _bottom(window: FloatArray, bdp: float) -> float:
    """The least number of packets at which a dip stays; NaN if it turns at once."""
    near, least = max(BOTTOM_PACKETS, BOTTOM_BDP * bdp), np.sort(window)
    more = BOTTOM_POINTS - 1
    stays = np.flatnonzero(least[more:] - least[:-more] <= near)
    if not len(stays):
        return math.nan
    level = least[stays[0]]
    return float(np.median(least[(least >= level) & (least <= level + near)]))
