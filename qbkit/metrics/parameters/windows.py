"""What a window does where a sender models its path, and no gain or pace of it."""

from __future__ import annotations

from qbkit.metrics.parameters.between_runs import LEAST_PART, runs_apart
from qbkit.metrics.parameters.difference import Difference
from qbkit.metrics.parameters.estimates import Parameters
from qbkit.metrics.parameters.laws import CAP
from qbkit.metrics.parameters.model import ABOVE, UNFILLED

REACH, RATE, DRAIN = "probes_reach_bdp", "probe_rate", "drain_rate"
IN_FLIGHT, PACING = "in_flight_bdp", "pacing"
BATCH, CRUISE, LIMITED = "back_to_back_packets", "cruise_part", "limited_percent"
CRUISES = 0.97
"""Who cruises with more than this part of the BDP in flight has no headroom."""
PACED_BDP = (0.8, 1.3)
"""What is in flight where a BBR cruises at the path's rate; its window alone leaves two BDP."""
STOPS = 0.3
"""A drain below this part of the link's rate is a window that waits; gains of BBRs are higher."""
IDLE_PERCENT = 15.0
"""From this difference of the time on, a window that leaves the link idle makes drains."""


def never_fills(side: Parameters) -> bool:
    """Whether its window is held below what fills the path; a pace below the link's rate is not."""
    return side[CAP].known and side[REACH].value < UNFILLED and side[RATE].value > ABOVE


def is_held_below(test: Parameters, reference: Parameters, *, batches: bool) -> bool:
    """Whether something holds the window of one side, and of one only, below what fills the path.

    ``batches``: whether the sides differ in the packets that leave together. Those that wait until
    there are enough fill no path either.
    """
    sides = test, reference
    if not all(name in side for name in (REACH, CAP, RATE, BATCH) for side in sides):
        return False
    held = [never_fills(side) for side in sides]
    if held[0] == held[1] or not runs_apart(test[REACH], reference[REACH]):
        return False
    batch, usual = (side[BATCH].value for side in (sides if held[0] else sides[::-1]))
    return not (batches and batch > usual)


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
