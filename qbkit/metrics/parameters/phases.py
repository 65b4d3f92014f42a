"""BBR's phases: probing for bandwidth, draining, and probing for the RTT."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbkit.metrics.parameters.connection import GRID_PARTS, Connection
from qbkit.traces.arrays import BoolArray, FloatArray

LEAST_PACKETS = 40
"""Packets from which on the ratio of two counts is known to about 3 %."""
PROMINENT = 0.08
"""Least prominence of probing in the ratio; it must also exceed the step of one ACK."""
APART_RTTS, CLEAN_RTTS = 2, 3
"""Peaks of two probes are farther apart. Where nothing is lost, a probe of several rounds may begin
and end with one; two close peaks of a sawtooth show that it does not probe."""
FEWEST_CYCLES = 6
"""Fewest cycles of probing; random losses sometimes look like three regular ones."""
FEWEST_CLEAN = 3
"""The same where nothing is lost."""
REGULAR = 0.5
"""Largest interquartile range of regular cycle lengths, as a fraction of their median."""
LEAST_QUIET = 0.5
"""Least fraction of time without losses; with less, repeated patterns may come from losses."""
DIP = 0.6
"""ProbeRTT has fewer bytes in flight than this fraction of the usual."""
DIP_RTTS = (1.0, 20.0)
"""Shortest and longest ProbeRTT, or `DIP_S` if that is longer."""
DIP_S = 2.0
SAWTOOTH_RTTS, SAWTOOTH_S, MOST = 100, 3.5, 0.7
"""Probes of BBR are closer; cycles that are not, and mostly have a loss, are a sawtooth's."""


@dataclass(frozen=True, eq=False)
class Phases:
    """Gains and durations of BBR's phases: one entry per cycle, empty without cycles."""

    up_gain: FloatArray
    """Sending rate over delivery rate while probing up."""
    down_gain: FloatArray
    """The same ratio while draining afterwards."""
    cycle_rtts: FloatArray
    """Minimum RTTs from one probe to the next."""
    probe_rtt_begin_s: FloatArray
    probe_rtt_duration_s: FloatArray


def phases_of(connection: Connection, after_s: float) -> Phases:
    """Phases after slow start; no cycles unless they repeat regularly."""
    from scipy import signal  # slow to load

    begins_s, durations_s = _dips(connection, after_s)
    time_s, ratio, step = _ratio(connection, after_s)
    least = max(PROMINENT, 1.2 * step)
    quiet = _far_from(time_s, begins_s, durations_s, connection)
    none = np.empty(0)
    lossy = quiet.mean() < LEAST_QUIET if len(quiet) else True
    time_s, ratio = time_s[quiet], ratio[quiet]
    losses = connection.loss_detected_between(time_s[:1], time_s[-1:]).any()
    apart = GRID_PARTS * (APART_RTTS if losses else CLEAN_RTTS)
    if lossy or len(ratio) < 4 * apart:
        return Phases(none, none, none, begins_s, durations_s)
    ups, _ = signal.find_peaks(ratio, prominence=least, height=1 + least, distance=apart)
    downs, _ = signal.find_peaks(-ratio, prominence=least, height=-1 + least, distance=apart)
    cycles = np.diff(time_s[ups]) / connection.min_rtt_s
    if (
        len(ups) < (FEWEST_CYCLES if losses else FEWEST_CLEAN)
        or not len(downs)
        or not _regular(cycles)
        or _is_sawtooth(connection, time_s[ups])
    ):
        return Phases(none, none, none, begins_s, durations_s)
    return Phases(ratio[ups], ratio[downs], cycles, begins_s, durations_s)


def _is_sawtooth(connection: Connection, peaks_s: FloatArray) -> bool:
    """Whether losses make the cycles, as those of a window that they reduce."""
    each_s = float(np.median(np.diff(peaks_s)))
    if each_s < max(SAWTOOTH_S, SAWTOOTH_RTTS * connection.min_rtt_s):
        return False
    return bool(connection.loss_detected_between(peaks_s[:-1], peaks_s[1:]).mean() > MOST)


def _regular(cycles: FloatArray) -> bool:
    low, middle, high = np.quantile(cycles, [0.25, 0.5, 0.75])
    return bool(high - low < REGULAR * middle)


def _ratio(connection: Connection, after_s: float) -> tuple[FloatArray, FloatArray, float]:
    """Times, bytes sent over bytes delivered in sliding windows, and the step of this ratio.

    A window is half an RTT, or longer if `LEAST_PACKETS` or ten ACKs take longer.
    """
    delivered_s = np.sort(connection.delivered_s[~connection.lost])
    span_s = delivered_s[-1] - delivered_s[0]
    each_s = span_s / max(len(delivered_s) - 1, 1)
    per_ack = len(delivered_s) / max(len(connection.ack_s), 1)
    width_s = max(connection.min_rtt_s / 2, LEAST_PACKETS * each_s, 10 * per_ack * each_s)
    time_s = connection.grid_s[(connection.grid_s > after_s)]
    time_s = time_s[time_s + width_s < connection.sent_s[-1]]
    # Without queueing, a packet is delivered half an RTT after it was sent.
    later_s = time_s + connection.min_rtt_s / 2
    load = connection.load
    sent = load.sent_bytes(time_s + width_s) - load.sent_bytes(time_s)
    delivered = load.delivered_bytes(later_s + width_s) - load.delivered_bytes(later_s)
    return time_s, sent / np.maximum(delivered, 1), per_ack * each_s / width_s


def _dips(connection: Connection, after_s: float) -> tuple[FloatArray, FloatArray]:
    """Begin and length of spans with few packets in flight and no loss before."""
    window, grid_s = connection.in_flight_packets, connection.grid_s
    usual = np.median(window[grid_s > after_s]) if (grid_s > after_s).any() else np.inf
    low = (window < DIP * usual) & (grid_s > after_s)
    edges = np.flatnonzero(np.diff(low.astype(np.int8), prepend=0, append=0))
    begins, ends = edges[::2], edges[1::2]
    rtt_s = connection.min_rtt_s
    inside = ends < len(grid_s)
    begins_s, ends_s = grid_s[begins[inside]], grid_s[ends[inside]]
    lossy = connection.loss_detected_between(begins_s - 4 * rtt_s, begins_s + rtt_s)
    kept = [
        (b, _at_bottom_s(connection, b, e))
        for b, e in zip(begins_s[~lossy], ends_s[~lossy], strict=True)
    ]
    least_s, most_s = DIP_RTTS[0] * rtt_s, max(DIP_RTTS[1] * rtt_s, DIP_S)
    kept = [(b, d) for b, d in kept if least_s <= d <= most_s]
    return np.array([b for b, _ in kept]), np.array([d for _, d in kept])


def _at_bottom_s(connection: Connection, begin_s: float, end_s: float) -> float:
    """How long a dip stays near its minimum, between draining and filling up again."""
    inside = (connection.grid_s >= begin_s) & (connection.grid_s <= end_s)
    window = connection.in_flight_packets[inside]
    near = window <= 1.25 * window.min() + 1
    return float(near.sum()) * connection.min_rtt_s / GRID_PARTS


def _far_from(
    time_s: FloatArray, begins_s: FloatArray, durations_s: FloatArray, connection: Connection
) -> BoolArray:
    """Which times are neither in a ProbeRTT nor near a loss."""
    rtt_s = connection.min_rtt_s
    far = np.ones(len(time_s), dtype=bool)
    for begin_s, duration_s in zip(begins_s, durations_s, strict=True):
        far &= (time_s < begin_s - 2 * rtt_s) | (time_s > begin_s + duration_s + 3 * rtt_s)
    return far & ~connection.loss_detected_between(time_s - 3 * rtt_s, time_s + rtt_s)
