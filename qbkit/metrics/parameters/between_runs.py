"""Whether two sides differ in every run, or as seeds alone do."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qbkit.metrics.parameters.estimates import Estimate

LEAST_PART = 0.05
"""Numbers that differ by at most this fraction count as equal, whatever their intervals."""
FEW_PART = 0.3
"""As `LEAST_PART`, of a value fitted to one or two spans: it has no interval, and chance in it."""
MOST = 0.75
"""A value must be seen in this part of the runs."""
FITTED = ("cubic_c", "increase_packets_per_rtt")
LEAST_PARTS = {"reverted_reductions_percent": 0.15, "packets_per_ack": 0.25, "cubic_c": 0.32}
"""The same where chance does more: two of twenty reductions are restored by it, and a receiver
acknowledges at once what comes after a loss. Where a loss comes before K, C is only known to 30 %:
CUBICs with 0.4 show 0.35 to 0.5."""


def runs_apart(test: Estimate, reference: Estimate) -> bool:
    """Whether no run of one side is like one of the other, and most of each side's show it.

    No run of one side may say a word of the other. Of a value that differs by chance alone, one in
    35 does so in four runs of each side, and one in three if only two of each show it.
    """
    ours, theirs = shown(test), shown(reference)
    if is_seldom(test) or is_seldom(reference):
        return False
    if test.word or reference.word:
        # A published table may have no runs.
        said = [{*seen} or {side.word} for side, seen in ((test, ours), (reference, theirs))]
        return bool(test.word and reference.word) and not said[0] & said[1]
    numbers = [_numbers(test, ours), _numbers(reference, theirs)]
    if not all(numbers):
        return True
    (low, high), (least, most) = ((min(values), max(values)) for values in numbers)
    return low > most or high < least


def estimates_differ(test: Estimate, reference: Estimate) -> bool:
    """Whether two estimates differ, and every run of one side from every run of the other."""
    if not runs_apart(test, reference):
        return False
    if test.word or reference.word:
        return True
    if not (test.known and reference.known):
        return False
    if apart(test, reference) <= LEAST_PARTS.get(test.name, LEAST_PART):
        return False
    if math.isnan(test.low) or math.isnan(reference.low):
        return test.name not in FITTED or apart(test, reference) > FEW_PART
    return test.low > reference.high or test.high < reference.low


def apart(test: Estimate, reference: Estimate) -> float:
    """Relative difference: over the larger number, or over 100 for percentages; 0 for two zeros."""
    if test.unit == "%":
        return abs(test.value - reference.value) / 100
    largest = max(abs(test.value), abs(reference.value))
    return abs(test.value - reference.value) / largest if largest else 0.0


def _numbers(e: Estimate, seen: Sequence[float | str]) -> list[float]:
    """What the runs show; of a published table, which has no runs, the ends of the interval."""
    if seen or not e.known:
        return [float(value) for value in seen]
    return [e.value] if math.isnan(e.low) else [e.low, e.high]


def shown(e: Estimate) -> list[float | str]:
    """What the runs show, without those that do not show it."""
    return [value for value in e.runs if value == value]  # NaN is not


def is_seldom(e: Estimate) -> bool:
    """Whether a value is known, but too few of the runs show it."""
    return e.known and len(shown(e)) < MOST * len(e.runs)
