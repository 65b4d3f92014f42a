"""What pacing takes of a window in the round trip after a loss: no reduction, but it can hide one.

A sender that paces by the RTT of a full queue has less in flight then than its window allows.
"""

from __future__ import annotations

import math
from dataclasses import replace

from qbkit.metrics.parameters.between_runs import LEAST_PART, apart, estimates_differ
from qbkit.metrics.parameters.estimates import Parameters
from qbkit.metrics.parameters.rules import RULES

SETTLED, DECREASE, INCREASE = "kept_two_rtts", "decrease_factor", "increase_packets_per_rtt"
STEEP = "steep_increase_packets_per_rtt"
DIP = 0.35
"""What pacing takes is at most this part of the window."""
HIDDEN = 0.1
"""Windows that differ by more than this two round trips after a loss were reduced differently."""


def is_a_dip(test: Parameters, reference: Parameters) -> bool:
    """Whether both have the same part of their windows two round trips after a loss."""
    if not _settle(test, reference):
        return False
    same = apart(test[SETTLED], reference[SETTLED]) <= LEAST_PART
    return same and apart(test[DECREASE], reference[DECREASE]) < DIP


def hides_a_reduction(test: Parameters, reference: Parameters) -> bool:
    """Whether both have the same part of their windows at first, and not two round trips later.

    Both windows are seen to grow, by the same line, so what one has more it has kept.
    """
    sides = (test, reference)
    if not _settle(*sides) or any(side["growth"].word != "linear" for side in sides):
        return False
    if not all(side[INCREASE].known for side in sides):
        return False
    if any(estimates_differ(test[name], reference[name]) for name in (DECREASE, INCREASE)):
        return False
    differ = estimates_differ(test[SETTLED], reference[SETTLED])
    return differ and apart(test[SETTLED], reference[SETTLED]) > HIDDEN


def settled(side: Parameters) -> Parameters:
    """The same with a decrease as it is two round trips after a loss."""
    return _with(side, DECREASE, SETTLED)


def with_slopes(test: Parameters, reference: Parameters) -> tuple[Parameters, Parameters]:
    """Both sides, with the slope between close losses as the increase of one that has no time for
    a line, where the other's window grows along a line that is far less steep.

    Slopes are seen from `rules.STEEP` on alone, so their median is too large.
    """
    sides = test, reference
    missing = [not side[INCREASE].known and STEEP in side and side[STEEP].known for side in sides]
    if missing[0] == missing[1] or any(side["growth"].word != "linear" for side in sides):
        return sides
    slope, line = (test, reference) if missing[0] else (reference, test)
    if not slope[STEEP].value > math.exp(RULES[STEEP].apart) * line[INCREASE].value:
        return sides
    ours, theirs = (
        _with(side, INCREASE, STEEP) if misses else side
        for side, misses in zip(sides, missing, strict=True)
    )
    return ours, theirs


def _with(side: Parameters, name: str, source: str) -> Parameters:
    """The same with another of its estimates under a name."""
    kept = [e for e in side.values() if e.name != name]
    return Parameters(side.label, [*kept, replace(side[source], name=name)])


def _settle(*sides: Parameters) -> bool:
    return all(SETTLED in side and side[SETTLED].known for side in sides)
