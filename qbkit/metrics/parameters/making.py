"""A difference of two senders by itself: its effect, the rule that it breaks, and its score."""

from __future__ import annotations

import math
from dataclasses import replace

from qbkit.metrics.parameters.between_runs import apart
from qbkit.metrics.parameters.difference import Difference
from qbkit.metrics.parameters.effects import EFFECTS
from qbkit.metrics.parameters.estimates import Estimate, Parameters
from qbkit.metrics.parameters.relations import AT_START, DECISIVE, PROBE_RTTS, PROBES
from qbkit.metrics.parameters.rules import RULES

AGAINST = 0.3
"""Weight of a cause that would change the throughput in the opposite direction."""
LEAST_OF_SOURCE = 0.03
"""Least score of a phase of BBR, and of a constant of the start, that differs by a decisive part,
as for a rule."""
CLEAR_PART = 0.03
"""Fraction of the fair share above which the sign of a Δ-throughput counts."""


def by_effect(name: str, test: Parameters, reference: Parameters, moved: float) -> Difference:
    """A cause whose effect is known; ``moved`` is the Δ-throughput over the fair share."""
    effect = EFFECTS[name](test, reference)
    low, high = _effect_interval(name, test, reference)
    score = _weighed(effect, moved)
    if (
        name in (*PROBES, *PROBE_RTTS, *AT_START)
        and name in DECISIVE
        and apart(test[name], reference[name]) > DECISIVE[name]
    ):
        score = max(score, LEAST_OF_SOURCE)
    return Difference(name, test[name], reference[name], effect, low, high, score)


def by_rule(name: str, test: Estimate, reference: Estimate, moved: float) -> Difference:
    """A rule by which the sides do not behave alike; ``moved`` as in `by_effect`."""
    rule = RULES[name]
    values = (0.0 if math.isnan(e.value) else e.value for e in (test, reference))
    effect = rule.effect(*values)
    # A rule of thumb may have the wrong sign: it moves a rule that is broken, but never hides it.
    score = max(_weighed(effect, moved), rule.least)
    return Difference(name, test, reference, effect, math.nan, math.nan, score)


def symptom(name: str, test: Parameters, reference: Parameters) -> Difference:
    """A consequence, which has no effect."""
    nan = math.nan
    return Difference(name, test[name], reference[name], nan, nan, nan, nan)


def _weighed(effect: float, moved: float) -> float:
    """Size of an effect, less if the throughput moved the other way."""
    against = abs(moved) > CLEAR_PART and effect * moved < 0
    return abs(effect) * (AGAINST if against else 1.0)


def _effect_interval(name: str, test: Parameters, reference: Parameters) -> tuple[float, float]:
    """Effects at the ends of both intervals that are farthest apart; effects are monotonic."""
    ends = (test[name].low, test[name].high), (reference[name].low, reference[name].high)
    if not all(math.isfinite(end) for pair in ends for end in pair):
        return math.nan, math.nan
    found = sorted(
        EFFECTS[name](with_value(test, name, ours), with_value(reference, name, theirs))
        for ours, theirs in zip(ends[0], reversed(ends[1]), strict=True)
    )
    return found[0], found[1]


def with_value(parameters: Parameters, name: str, value: float) -> Parameters:
    """The parameters with the value of one replaced."""
    changed = (replace(e, value=value) if e.name == name else e for e in parameters.values())
    return Parameters(parameters.label, changed)
