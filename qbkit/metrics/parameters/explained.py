"""Which of the differences of two senders come of another one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from qbkit.metrics.parameters.between_runs import apart
from qbkit.metrics.parameters.difference import CLEAR, Difference
from qbkit.metrics.parameters.estimates import Parameters
from qbkit.metrics.parameters.model import ABOVE
from qbkit.metrics.parameters.relations import (
    ACK_CLOCK,
    DECISIVE,
    DIRECTIONS,
    EXPLAINS,
    GREATER_WITH,
    OVERFLOWS,
    PROBES,
    STRONGER,
)
from qbkit.metrics.parameters.rules import RULES
from qbkit.metrics.parameters.start import OVERSHOOTS
from qbkit.metrics.parameters.windows import BATCH, RATE, REACH

QUEUE, PACE, WINDOW = "standing_queue_bdp", "paced_part", "window_gain"
DRAIN, START = "drain_rate", "start_growth"
PROBES_ALONE = 2.0
"""Where probes differ by so many times (ln) what all phases do, it is theirs."""
FILLED = (QUEUE, REACH)
CYCLE, LONG = "probe_cycle_rtts", 0.5
BY_CYCLE = ("probe_up_gain", "probe_down_gain", QUEUE)
"""Probes that last longer, so that cycles are so much (ln) longer, show more of their gains and
leave a longer queue."""
FILLED_BDP = 0.25
"""A queue or a probe is as long as a window allows if it is within this part of the BDP of it."""
PROBING_RATES = (*PROBES, RATE)
FRIENDLY = 0.2
"""By how much (ln) an increase may differ from what β makes of it."""


def explained(causes: Sequence[Difference], test: Parameters, reference: Parameters) -> set[str]:
    """Those that another one explains; of two that explain each other, the first of `EXPLAINS`."""
    found = {d.name: d for d in causes}
    fast_drains_leave_a_queue = {DRAIN, QUEUE} <= {*found} and _alike(found[DRAIN], found[QUEUE])
    too_fast = fast_drains_leave_a_queue or any(
        PACE in side and side[PACE].value > ABOVE for side in (test, reference)
    )
    filled = _fill_windows(found)
    explaining = {
        name: [
            other
            for other in EXPLAINS[name]
            if other in found and other != name and _follows(d, found[other], too_fast, filled)
        ]
        for name, d in found.items()
        if name in EXPLAINS
        and _explains(d)
        and not (name == BATCH and _by_ack_clock(test, reference))
    }
    order = [*EXPLAINS]
    return {
        other
        for name, others in explaining.items()
        for other in others
        if name not in explaining.get(other, ()) or order.index(name) < order.index(other)
    }


def _by_ack_clock(*sides: Parameters) -> bool:
    """Whether an ACK can let out as many packets as leave together, where more do."""
    more = max(sides, key=lambda side: side[BATCH].value)
    return not more[BATCH].value > ACK_CLOCK * more["packets_per_ack"].value


def _fill_windows(found: Mapping[str, Difference]) -> bool:
    """Whether both sides keep a queue, or send in probes, as much as their windows let them."""
    window = found.get(WINDOW)
    kept = [(found[name], bdp) for name, bdp in ((QUEUE, 1), (REACH, 0)) if name in found]
    return window is not None and any(
        abs(most.test.value + path_bdp - window.test.value) < FILLED_BDP
        and abs(most.reference.value + path_bdp - window.reference.value) < FILLED_BDP
        for most, path_bdp in kept
    )


def _follows(cause: Difference, other: Difference, too_fast: bool, filled: bool) -> bool:
    """Whether the other difference comes of the cause.

    Where all phases of a side are ``too_fast``, as cruising or its drains show, a queue is not left
    by probes, and the probes are fast as well. Where windows are ``filled``, they make the queue.
    """
    if cause.name == CYCLE and other.name in BY_CYCLE:
        return _lasts(cause)
    if cause.name in BY_CYCLE and other.name == CYCLE and _lasts(other):
        return False
    if cause.name == WINDOW and other.name in FILLED:
        return filled
    if filled and cause.name in FILLED and other.name == WINDOW:
        return False
    if cause.name == START and other.name in OVERFLOWS:
        return max(cause.test.value, cause.reference.value) > OVERSHOOTS
    if {cause.name, other.name} == {RATE, PACE}:
        rate, pace = (cause, other) if cause.name == RATE else (other, cause)
        of_probes = _times(rate) > PROBES_ALONE * _times(pace)
        return of_probes is (cause is rate)
    if too_fast and other.name == QUEUE and cause.name in PROBING_RATES:
        return False
    if too_fast and cause.name == QUEUE and other.name in PROBING_RATES:
        return True
    return _fits(cause, other)


def _lasts(cycle: Difference) -> bool:
    """Whether the cycles of one side are much longer."""
    return _times(cycle) > LONG


def _fits(cause: Difference, other: Difference) -> bool:
    """Whether the other differs in the direction in which the cause would change it."""
    if (cause.name, other.name) == ("decrease_factor", "increase_packets_per_rtt"):
        return _is_friendly(cause, other)
    if (cause.name, other.name) in STRONGER:
        return _times(cause) >= _times(other)
    if word := GREATER_WITH.get((cause.name, other.name)):
        sides = (cause.test.word, other.test), (cause.reference.word, other.reference)
        values = {said == word: estimate.value for said, estimate in sides}
        return len(values) == 2 and values[True] > values[False]
    direction = DIRECTIONS.get((cause.name, other.name))
    return direction is None or _alike(cause, other, direction)


def _alike(one: Difference, other: Difference, direction: int = 1) -> bool:
    """Whether the side that has more of the one has more of the other; less if ``direction`` is -1.

    Neither, if a value is unknown.
    """
    changes = (d.test.value - d.reference.value for d in (one, other))
    return math.prod(changes) * direction > 0


def _times(d: Difference) -> float:
    """By how much (ln) the sides differ."""
    ours, theirs = (max(e.value, 1e-3) for e in (d.test, d.reference))
    return abs(math.log(ours / theirs))


def _is_friendly(decrease: Difference, increase: Difference) -> bool:
    """Whether the increase follows from β as in CUBIC: 3 (1 - β)/(1 + β) (RFC 9438, equation 4)."""
    ours, theirs = (1 - e.value for e in (decrease.test, decrease.reference))
    if min(ours, theirs, increase.test.value, increase.reference.value) <= 0:
        return False
    wanted = ours / theirs * (2 - theirs) / (2 - ours)
    seen = increase.test.value / increase.reference.value
    return abs(math.log(seen / wanted)) < FRIENDLY


def _explains(d: Difference) -> bool:
    """Whether a difference is large enough to explain others."""
    rule = RULES.get(d.name)
    if rule and min(d.test.value, d.reference.value) >= rule.explains_below:
        return False
    large = bool(rule or d.test.word) or apart(d.test, d.reference) > DECISIVE.get(d.name, 0.0)
    return large and not d.score <= CLEAR
