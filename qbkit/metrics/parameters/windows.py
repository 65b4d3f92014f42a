"""What a window does where a sender models its path, and no gain or pace of it."""

from __future__ import annotations

import math

from qbkit.metrics.parameters.between_runs import LEAST_PART, apart, runs_apart
from qbkit.metrics.parameters.difference import Difference
from qbkit.metrics.parameters.estimates import Estimate, Parameters
from qbkit.metrics.parameters.laws import CAP
from qbkit.metrics.parameters.model import ABOVE, UNFILLED

REACH, RATE, DRAIN = "probes_reach_bdp", "probe_rate", "drain_rate"
PEAK, STALE, ROOM = "startup_peak_bdp", "window_gain", "ack_room"
IN_FLIGHT, PACING = "in_flight_bdp", "pacing"
BATCH, CRUISE, LIMITED = "back_to_back_packets", "cruise_part", "limited_percent"
BOUND_BDP, SAME, MORE = 1.8, 0.1, 0.2
"""Most in flight in startup, and where a model is out of date: a BBR has 1.4 BDP or more in one of
them, twice the BDP in the other. Less than this in both, and as much (ln), is a bound of another's,
such as a receive window. Without it, startup has so much more (ln)."""
NEAR_BDP, EQUAL = 2.2, 0.02
"""Up to this a bound shows where the other side has more in both, and this one the same (ln)."""
CRUISES = 0.97
"""Who cruises with more than this part of the BDP in flight has no headroom."""
PACED_BDP = (0.8, 1.3)
"""What is in flight where a BBR cruises at the path's rate; its window alone leaves two BDP."""
TWICE_BDP = 2.0
"""The window of a BBR, but for its room for ACKs that come together."""
STOPS = 0.3
"""A drain below this part of the link's rate is a window that waits; gains of BBRs are higher."""
IDLE_PERCENT = 15.0
"""From this difference of the time on, a window that leaves the link idle makes drains."""


def held(side: Parameters, other: Parameters) -> Estimate:
    """The window at which something holds it: below what fills the path, or with one bound in all
    phases; unknown if nothing does. A pace below the link's rate does not hold it."""
    fills, bounded = not side[REACH].value < UNFILLED, is_bounded(side, other)
    if fills and bounded:  # most in flight on a path of which the cap is the usual
        packets_per_bdp = side[CAP].value / (side[CRUISE].value * side[REACH].value)
        return Estimate(CAP, side[PEAK].value * packets_per_bdp)
    is_held = not fills and (bounded or side[RATE].value > ABOVE)
    return side[CAP] if is_held else Estimate(CAP, math.nan)


def is_bounded(side: Parameters, other: Parameters) -> bool:
    """Whether no more is in flight in startup than where the model is out of date, and little.

    Near twice the BDP, a model's own window is as large. So there the other must clearly have more
    of both, and as much room for aggregated ACKs, which every phase has.
    """
    if not all(name in side and side[name].value > 0 for name in (PEAK, STALE, CRUISE, REACH)):
        return False
    peak, stale = side[PEAK].value, side[STALE].value
    most, unlike = max(peak, stale), abs(math.log(peak / stale))
    if most < BOUND_BDP:
        return unlike < SAME
    seen = [name for name in (PEAK, STALE, ROOM) if name in side and name in other]
    less = [n for n in seen if runs_apart(side[n], other[n]) and side[n].value < other[n].value]
    clear = all(apart(side[name], other[name]) > LEAST_PART for name in less)
    return most < NEAR_BDP and unlike < EQUAL and less == [PEAK, STALE] and clear


def is_held(test: Parameters, reference: Parameters, *, batches: bool) -> bool:
    """Whether something holds the window of one side, and of one only.

    ``batches``: whether the sides differ in the packets that leave together. Those that wait until
    there are enough fill no path either, unless even startup does not.
    """
    sides = test, reference
    if not all(name in side for name in (REACH, CAP, RATE, BATCH) for side in sides):
        return False
    one, other = sides if held(*sides).known else sides[::-1]
    if not held(one, other).known or held(other, one).known:
        return False
    if is_bounded(one, other):
        return PEAK in other and other[PEAK].value > math.exp(MORE) * one[PEAK].value
    waits = batches and one[BATCH].value > other[BATCH].value
    return runs_apart(test[REACH], reference[REACH]) and not waits


def cruise_apart(test: Parameters, reference: Parameters) -> bool:
    """Whether what is in flight while cruising differs, and not only what probes add to it.

    One of the two cruises below what fills the path; more than that is a queue.
    """
    ordered = sorted((test, reference), key=lambda side: side[CRUISE].value)
    low, high = (side[CRUISE].value * side[REACH].value for side in ordered)
    return low < min((1 - LEAST_PART) * high, CRUISES)


def of_windows(drain: Difference, test: Parameters, reference: Parameters) -> bool:
    """Whether a window that leaves the link idle more often, and no gain, makes deeper drains."""
    sides = ours, theirs = test[LIMITED], reference[LIMITED]
    apart = ours.value - theirs.value if all(side.known for side in sides) else 0.0
    deeper = drain.reference.value - drain.test.value
    return abs(apart) > IDLE_PERCENT and apart * deeper > 0 and runs_apart(*sides)


def is_below_twice(test: Parameters, reference: Parameters) -> bool:
    """Whether one side alone has twice the BDP in flight on a path that stays the same.

    Its window lets it. The other's has no room for ACKs beyond twice the BDP because it is less.
    """
    if not all(REACH in side for side in (test, reference)):
        return False
    low, high = sorted(side[REACH].value for side in (test, reference))
    return low < TWICE_BDP < high and runs_apart(test[REACH], reference[REACH])


def paces_later(test: Parameters, reference: Parameters) -> bool:
    """Whether the side whose slow start is in bursts paces all the same: its window, and no pace,
    limits it there, but once slow start is over less is in flight than the window."""
    in_bursts = test if test[PACING].word == "bursts" else reference
    low, high = PACED_BDP
    return in_bursts[IN_FLIGHT].known and low < in_bursts[IN_FLIGHT].value < high


def waits_for_headroom(test: Parameters, reference: Parameters) -> bool:
    """Whether one side alone sends nothing after a probe until less than the BDP is in flight, and
    then keeps to that: the headroom of a window that cruises, and no gain of a drain."""
    sides = test, reference
    if not all(name in p and p[name].known for p in sides for name in (DRAIN, CRUISE, IN_FLIGHT)):
        return False
    low, high = sorted(sides, key=lambda side: side[DRAIN].value)
    stops = low[DRAIN].value < STOPS < high[DRAIN].value
    keeps = low[IN_FLIGHT].value < min(high[IN_FLIGHT].value, CRUISES)
    return stops and keeps and runs_apart(test[IN_FLIGHT], reference[IN_FLIGHT])
