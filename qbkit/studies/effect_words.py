"""What a cause does to the throughput, and its share of a difference, in words."""

from __future__ import annotations

import math

from qbkit.metrics.parameters import Difference

WHOLE = 1.005
"""Largest share that is given as a number: 100 % when rounded."""


def share_text(share: float) -> str:
    """A positive share in words. Models overshoot: what exceeds the whole is only called more."""
    if share > WHOLE:
        return "more than all of the difference"
    return f"{100 * share:.0f} % of the difference"


def accounts_text(share: float) -> str:
    """What a suspect does to the difference: a part of it, or the opposite."""
    return f"accounts for {share_text(share)}" if share >= 0 else "works against the difference"


def change_percent(difference: Difference) -> float:
    """What a cause alone would change in throughput; NaN if a side does not show it."""
    shown = difference.test.known and difference.reference.known
    return round(100 * math.expm1(difference.effect), 1) if shown else math.nan


def votes_text(difference: Difference) -> str:
    """Part of the precedents' votes that name it; empty between two different senders."""
    if math.isnan(difference.votes):
        return ""
    return f"; {100 * difference.votes:.0f} % of the votes of precedents"


def share_cell(share: float) -> int | str:
    """A share in a table: whole percents, or words where it is no part; empty if unknown."""
    if math.isnan(share):
        return ""
    if share < 0:
        return "against"
    return "more than all" if share > WHOLE else round(100 * share)


def interval_text(difference: Difference) -> str:
    """`` [low, high]`` of the effect in %; empty if unknown or if only the sign is known."""
    low, high = difference.effect_low, difference.effect_high
    if difference.by_thumb or not math.isfinite(low + high):
        return ""
    return f" [{percent_text(low)}, {percent_text(high)}]"


def percent_text(effect: float) -> str:
    """An effect (ln) in whole percents, with its sign."""
    return f"{100 * math.expm1(effect):+.0f}"
