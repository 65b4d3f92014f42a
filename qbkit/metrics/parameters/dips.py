"""What pacing takes of a window in the round trip after a loss: no reduction, but it can hide one.

A sender that paces by the RTT of a full queue has less in flight then than its window allows.
"""

from __future__ import annotations

from dataclasses import replace

from qbkit.metrics.parameters.between_runs import LEAST_PART, apart, estimates_differ
from qbkit.metrics.parameters.estimates import Parameters

SETTLED, DECREASE, INCREASE = "kept_two_rtts", "decrease_factor", "increase_packets_per_rtt"
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

    Their windows grow by the same line, so what one has more it has kept.
    """
    sides = (test, reference)
    if not _settle(*sides) or any(side["growth"].word != "linear" for side in sides):
        return False
    if any(estimates_differ(test[name], reference[name]) for name in (DECREASE, INCREASE)):
        return False
    differ = estimates_differ(test[SETTLED], reference[SETTLED])
    return differ and apart(test[SETTLED], reference[SETTLED]) > HIDDEN


def settled(side: Parameters) -> Parameters:
    """The same with a decrease as it is two round trips after a loss."""
    decrease = replace(side[SETTLED], name=DECREASE)
    return Parameters(side.label, [e for e in side.values() if e.name != DECREASE] + [decrease])


def _settle(*sides: Parameters) -> bool:
    return all(SETTLED in side and side[SETTLED].known for side in sides)
