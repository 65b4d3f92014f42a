"""What sets a test apart from its reference, in words: the cause, its reasons, what confirms it.

`qbkit.studies.explanation` chooses the suspects; nothing is chosen here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from qbkit.metrics.parameters import Difference, observe
from qbkit.metrics.parameters.relations import RECEIVERS
from qbkit.metrics.parameters.rules import RULES
from qbkit.metrics.verdicts.reasons import sentence
from qbkit.metrics.verdicts.words import DIFFERS
from qbkit.studies.confirming import confirmation, likely_place
from qbkit.studies.witness import witness

if TYPE_CHECKING:
    from qbkit.studies.explanation import Explanation

MOST_SYMPTOMS = 2
"""Number of symptoms, the largest first, that the reasons name if there is no suspect."""
MOST_CAUSES = 2
"""Number of suspects, the likeliest first, that the verdict names."""
WHOLE = 1.005
"""Largest share that is given as a number: 100 % when rounded."""


def cause_line(found: Explanation) -> str:
    """What most likely sets the test apart, from its packets alone, in one sentence."""
    if not found.suspects:
        return sentence(_no_cause(found))
    first, *others = found.suspects
    if found.exchange and found.exchange.is_cause:
        return f"Most likely because {first.clause}."
    if not math.isnan(first.votes):  # of two of the same sender
        if found.is_likely:
            return f"Most likely because {first.clause}."
        other = f", or because {others[0].clause}" if others else ""
        return f"Perhaps because {first.clause}{other}."
    if first.of_model and first.name in RECEIVERS:
        own = [d for d in found.suspects if d.name not in RECEIVERS]
        beyond = " beyond its start" if own else ""
        return f"Undecided: its sender is not seen to differ{beyond}; {first.clause}."
    clauses = [d.clause for d in found.named[:MOST_CAUSES]]
    both = (", and " if "," in clauses[0] else " and ").join(clauses)
    if found.is_likely:
        return f"Most likely because {both}."
    if found.assessment.outcome != DIFFERS:  # a bisection's versions differ in another number
        return f"What differs most: {both}."
    return f"The cause is open; what differs most: {both}."


def next_lines(found: Explanation) -> list[str]:
    """As `Explanation.next_lines`."""
    test, reference = (
        side[0].qb.experiment for side in (found.study.tests, found.study.references)
    )
    exchanged = [str(found.exchange)] if found.exchange else []
    if found.assessment.outcome != DIFFERS or not (found.suspects and test and reference):
        return exchanged
    first, line = found.suspects[0], cause_line(found)
    is_open = math.isnan(first.votes) and not found.is_likely
    alone = f"From its packets alone: {line[0].lower()}{line[1:]}"
    lines = [*([alone] if found.faults and not found.is_of_no_fault else []), *exchanged]
    if found.alone and (said := witness(first, found.alone[0], observe(found.alone[0]))):
        lines.append(said)
    if first.name not in RECEIVERS or not exchanged:
        said = confirmation(first, test, reference)
        lines.append(said.replace("confirm it", "test the first") if is_open else said)
    if (
        first.test.known
        and not (found.faults or is_open)
        and (place := likely_place(first, test.flows[0], reference.flows[0]))
    ):
        lines.append(f"Most likely in the source: {place}.")
    return lines


def reasons(found: Explanation) -> str:
    """What the cause rests on: each suspect's effect alone, and what all account for."""
    if not found.suspects:
        return _undecided(found)
    what = "; then ".join(
        f"{d} ({effect_text(d, found.share(d))}{votes_text(d)})" for d in found.named
    )
    together = f"; {_together(found)}" if found.assessment.outcome == DIFFERS else ""
    return f"what differs most is {what}{together}"


def effect_text(difference: Difference, share: float) -> str:
    """What a cause alone would change in throughput, and its share of the difference."""
    if math.isnan(difference.effect):
        return "alone: effect unknown"
    if rule := RULES.get(difference.name):
        return f"seen {rule.moment}"
    size = f"{percent_text(difference.effect)} %"
    if difference.by_thumb:
        return f"alone: about {size} throughput by a rule of thumb"
    accounts = "" if math.isnan(share) else f"; {accounts_text(share)}"
    return f"alone: {size}{interval_text(difference)} throughput at equal loss{accounts}"


def _together(found: Explanation) -> str:
    """What all suspects explain of the difference, or why that is unknown."""
    if math.isnan(found.observed):
        return "the throughput is not shown to differ, and effects on the delay are unknown"
    if math.isnan(found.accounted):
        return "no suspect has a known effect"
    if found.accounted < 0:
        return "all suspects together work against the difference"
    return f"all suspects together account for {share_text(found.accounted)}"


def _undecided(found: Explanation) -> str:
    """The reasons without a suspect."""
    small = "; ".join(map(str, found.too_small))
    shown = "; ".join(str(d) for d in found.symptoms[:MOST_SYMPTOMS])
    also = f"; symptoms: {shown}" if shown else ""
    return f"{_no_cause(found)}{f' ({small})' if small else ''}{also}"


def _no_cause(found: Explanation) -> str:
    """That there is no suspect, because nothing differs, or all of it has little effect."""
    if not found.too_small:
        return "the packets show no cause that differs"
    return "the packets show no cause: what differs hardly changes the throughput"


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
