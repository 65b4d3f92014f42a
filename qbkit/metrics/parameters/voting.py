"""Causes of two senders that differ by one change, in the order that precedents give them.

The rules of `qbkit.metrics.parameters.differences` order causes by what each does to the
throughput. Where there is one change only, what matters is which it was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from qbkit.metrics.parameters.between_runs import estimates_differ
from qbkit.metrics.parameters.difference import Difference
from qbkit.metrics.parameters.differences import rules_of
from qbkit.metrics.parameters.effects import EFFECTS
from qbkit.metrics.parameters.estimates import Parameters
from qbkit.metrics.parameters.laws import CAP, GROWTH
from qbkit.metrics.parameters.making import LEAST_OF_SOURCE, by_effect, by_rule
from qbkit.metrics.parameters.precedents import Precedents, Votes
from qbkit.metrics.parameters.relations import LOSS_BASED
from qbkit.metrics.parameters.windows import is_bounded

BESIDE, LATER, OF_OTHERS = 0.1, 0.5, 0.2
"""What a suspect of the rules has beside its votes; what votes count for those after the first, and
for what the rules do not suspect."""
LEAST_STEPS = 1.2
"""Least difference of what the rules do not suspect."""
SIZE = "packet_bytes"
"""Nothing else makes full frames larger, so where they differ, this is the change."""
LIKE = 0.75
"""How much a precedent must be like the two for what the rules do not suspect."""
SURE = 0.4
"""Least part of the votes of a cause where the rules suspect nothing."""


def voted(
    differences: Sequence[Difference],
    test: Parameters,
    reference: Parameters,
    precedents: Precedents,
    *,
    models_path: bool,
) -> list[Difference]:
    """The differences that `compare` found, the causes in the order of the votes.

    Beside what the rules suspect, something else can become a cause. Where they suspect nothing,
    it needs more of the votes (`SURE`). Of two laws, or of marks, the precedents say nothing: each
    is of one law, and all are of queues that drop. One bound of a window in all phases needs none,
    and few are of a BBR's. Two curves of one C are of one law, whichever word most spans give it.
    """
    suspects = [d for d in differences if d.is_suspect]
    if suspects and suspects[0].has_no_precedent:
        return [*differences]
    bounded = is_bounded(test, reference) or is_bounded(reference, test)
    if suspects and suspects[0].name == CAP and models_path and bounded:
        return [*differences]
    votes = precedents.votes(test, reference)
    if _has_one_curve(test, reference):
        suspects, differences = (
            [d for d in some if d.name != GROWTH] for some in (suspects, differences)
        )
    names = [d.name for d in suspects]
    others = [
        replace(_made(name, test, reference), of_model=models_path)
        for name in _others(votes, models_path=models_path)
        if name not in names and (names or votes.named[name] >= SURE)
    ]
    weights = {
        name: (votes.of.get(name, 0.0) + BESIDE) * (LATER if name in names[1:] else 1.0)
        for name in names
    }
    weights |= {d.name: OF_OTHERS * votes.of[d.name] for d in others}
    weights |= dict.fromkeys({SIZE} & {*names}, math.inf)
    causes = [replace(d, votes=votes.named.get(d.name, 0.0)) for d in (*suspects, *others)]
    causes.sort(key=lambda d: -weights[d.name])
    return [*causes, *(d for d in differences if d.name not in weights)]


def _has_one_curve(*sides: Parameters) -> bool:
    """Whether both sides show a curve, of the same C."""
    ours, theirs = (side["cubic_c"] for side in sides)
    return ours.known and theirs.known and not estimates_differ(ours, theirs)


def _others(votes: Votes, *, models_path: bool) -> list[str]:
    """Names with votes that can be causes and differ, whatever the rules suspect."""
    if votes.likeness < LIKE:
        return []
    impossible = LOSS_BASED if models_path else ()
    possible = {*EFFECTS, *rules_of(models_path)} - {*impossible}
    return [
        name
        for name in votes.of
        if votes.own_steps.get(name, 0.0) >= LEAST_STEPS and name in possible
    ]


def _made(name: str, test: Parameters, reference: Parameters) -> Difference:
    """A cause that no rule suspects, as one that just matters."""
    nan = math.nan
    if not (test[name].known and reference[name].known):
        return Difference(name, test[name], reference[name], nan, nan, nan, LEAST_OF_SOURCE)
    if name in EFFECTS:
        found = by_effect(name, test, reference, nan)
    else:
        found = by_rule(name, test[name], reference[name], nan)
    return replace(found, score=max(found.score, LEAST_OF_SOURCE))
