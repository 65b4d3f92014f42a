"""Parameters that differ between two controllers: causes, ranked by effect, and symptoms.

The effect of a cause is the change of throughput that it alone would bring at equal loss
(`qbkit.metrics.parameters.effects`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import replace

from qbkit.metrics.parameters.between_runs import LEAST_PART, apart, estimates_differ, runs_apart
from qbkit.metrics.parameters.difference import Difference
from qbkit.metrics.parameters.dips import (
    DECREASE,
    INCREASE,
    hides_a_reduction,
    is_a_dip,
    settled,
    with_slopes,
)
from qbkit.metrics.parameters.effects import DERIVED, EFFECTS, SYMPTOMS
from qbkit.metrics.parameters.estimates import PARAMETERS, Estimate, Parameters
from qbkit.metrics.parameters.explained import explained
from qbkit.metrics.parameters.laws import (
    CAP,
    GROWTH,
    PROBING,
    ROOTS,
    SIGNAL,
    Laws,
    by_names,
    by_two_laws,
    curve_and_line,
    law,
    of_laws,
)
from qbkit.metrics.parameters.making import by_effect, by_rule, symptom, with_value
from qbkit.metrics.parameters.relations import (
    AT_START,
    EVIDENCE,
    LOSS_BASED,
    OF_ALL,
    OF_LOSSES,
    PROBE_RTTS,
    PROBES,
    RECEIVERS,
)
from qbkit.metrics.parameters.rules import RULES, Rule
from qbkit.metrics.parameters.windows import (
    BATCH,
    CRUISE,
    PACING,
    ROOM,
    STALE,
    cruise_apart,
    held,
    is_below_twice,
    is_held,
    of_windows,
    paces_later,
    waits_for_headroom,
)

OF_BBRS = (*PROBES, *PROBE_RTTS)
"""What only a controller does that models its path."""
DRAINS, MARK = ("probe_down_gain", "drain_rate"), "kept_after_mark"
K_PART = "back_at_loss_part"
GROWS, GAIN = "start_growth", "pacing_gain"
LEAVES, LEAVES_AT = "slow_start_exit", "slow_start_exit_packets"
DEPTH, LASTS = "probe_rtt_bdp", "probe_rtt_duration_ms"
EVERY, LEAST_EVERY_S = "probe_rtt_interval_s", 1.0
"""What is less in flight more often than this is no ProbeRTT, but a deep drain."""
BEFORE_CURVES = 0.3
"""Of a CUBIC, only some spans are lines, and their slope depends on where they are cut: it must
differ by this part, and where most spans are curves it says nothing."""


def compare(
    test: Parameters,
    reference: Parameters,
    delta_throughput_part: float = math.nan,
    *,
    by_name: Laws = ("", ""),
) -> list[Difference]:
    """Differences of two senders: causes, most likely first, then symptoms.

    ``delta_throughput_part`` is Conformance-T's Δ-throughput over the fair share of the link (NaN:
    unknown); causes with the opposite effect rank lower. Causes of unknown effect follow the
    others, but come first if the law itself is unknown, because they may then be large. Symptoms
    have no effect and are ordered by the size of the difference.

    ``by_name`` are the laws for which the controllers' names stand (`laws`).
    Under random loss the packets may not show that a BBR models the path. What only a loss-based
    controller has is then no cause. Of two laws, one of which models the path, the law is the
    cause, and all else follows. Of CUBIC's and Reno's, the slope follows, and β if it is usual.
    """
    two_laws = by_two_laws(test, reference, by_name)
    shapes = curve_and_line(test, reference, by_name)
    test, reference = two_laws or shapes or by_names(test, reference, by_name)
    model_named = PROBING in by_name and {*by_name} <= {PROBING, ""}
    governing = PROBING if two_laws or model_named else law(test, reference)
    models = governing == PROBING
    impossible = (*LOSS_BASED, LEAVES_AT) if models else OF_BBRS if governing in ROOTS else ()
    if not models:
        test, reference = with_slopes(test, reference)
    names = _differing(test, reference, (*DERIVED, *impossible))
    if DECREASE in names and is_a_dip(test, reference):
        names.remove(DECREASE)
    elif not models and hides_a_reduction(test, reference):
        names.append(DECREASE)
        test, reference = settled(test), settled(reference)
    causes = [by_effect(n, test, reference, delta_throughput_part) for n in names if n in EFFECTS]
    causes += _behaviours(test, reference, delta_throughput_part, models=models)
    causes += [] if models else _reaction(test, reference, delta_throughput_part)
    if shapes:  # a line has no K
        causes = [d for d in causes if d.name != K_PART]
    if models and waits_for_headroom(test, reference):
        headroom = by_rule(CRUISE, test[CRUISE], reference[CRUISE], delta_throughput_part)
        causes = [headroom, *(d for d in causes if d.name not in (CRUISE, *DRAINS))]
    elif models:
        causes = [d for d in causes if d.name not in DRAINS or not of_windows(d, test, reference)]
        found = {d.name for d in causes}
        if is_below_twice(test, reference) and STALE in found:
            causes = [d for d in causes if d.name != ROOM]
        if DEPTH in found:  # what keeps more in flight is below the usual for less time
            causes = [d for d in causes if d.name != LASTS]
    start_alone = {PACING} if models and paces_later(test, reference) else set()
    behind = explained([d for d in causes if d.name not in start_alone], test, reference)
    if two_laws or shapes:
        behind = behind - {GROWTH} | of_laws(test, reference)
    causes = [
        replace(d, explained=d.name in behind, of_model=models and d.name not in start_alone)
        for d in causes
    ]
    symptoms = [symptom(n, test, reference) for n in names if n in SYMPTOMS]
    return [
        *_ranked(causes, {*AT_START, *start_alone} if models else set(), known=bool(governing)),
        *sorted(symptoms, key=lambda d: -apart(d.test, d.reference)),
    ]


def _ranked(causes: list[Difference], at_start: Set[str], *, known: bool) -> list[Difference]:
    """Causes, most likely first; ``at_start`` is what a sender that models the path does there.

    Whether the law is ``known`` decides where those of unknown effect come.
    """
    unknown = math.inf if known else -math.inf

    def rank(d: Difference) -> tuple[bool, int, float]:
        of_phase = 1 if d.name in RECEIVERS else 2 * (d.name in at_start)
        score = -d.score if math.isfinite(d.score) else unknown
        return d.explained, of_phase if at_start else 0, score

    return sorted(causes, key=rank)


def _differing(test: Parameters, reference: Parameters, left_out: Sequence[str]) -> list[str]:
    """The parameters that differ by more than chance, in their order."""
    names = [n for n in PARAMETERS if n not in left_out and estimates_differ(test[n], reference[n])]
    if INCREASE in names and not _lines_differ(test, reference):
        names.remove(INCREASE)
    if any(side[EVERY].value < LEAST_EVERY_S for side in (test, reference)):
        names = [n for n in names if n not in PROBE_RTTS]
    if LEAVES_AT in names and any(side[LEAVES].word != "delay" for side in (test, reference)):
        names.remove(LEAVES_AT)  # a loss comes when the queue is full
    if {GROWS, GAIN} <= {*names} and _grows_less_than_paced(test, reference):
        names.remove(GAIN)
    return names


def _grows_less_than_paced(test: Parameters, reference: Parameters) -> bool:
    """Whether the slow start that grows less has the lower rate because it has less to send.

    A pace of so many windows per RTT lets a window grow to 2 to their power in an RTT.
    """
    slow, fast = sorted((test, reference), key=lambda side: side[GROWS].value)
    gain = slow[GAIN].value
    return gain < fast[GAIN].value and slow[GROWS].value < (1 - LEAST_PART) * 2**gain


def _lines_differ(test: Parameters, reference: Parameters) -> bool:
    """Whether slopes that differ say so of the law, and not of where CUBIC's curves are cut."""
    sides = (test, reference)
    if all(p["growth"].word == "cubic" for p in sides):
        return False
    curved = all(p["cubic_c"].known for p in sides)
    return not curved or apart(test[INCREASE], reference[INCREASE]) >= BEFORE_CURVES


def _behaviours(
    test: Parameters, reference: Parameters, moved: float, *, models: bool
) -> list[Difference]:
    """The rules by which both sides were seen to behave, but not alike."""
    growths = {test["growth"].word, reference["growth"].word}
    seen = [name for name in rules_of(models) if name in test and name in reference]
    differ = {n for n in seen if _breaks(RULES[n], test[n], reference[n])}
    curved = any(p["growth"].word == "cubic" or p["cubic_c"].known for p in (test, reference))
    if growths == {"linear"} or not curved:  # no curve, so no K
        differ.discard(K_PART)
    if CRUISE in differ and not cruise_apart(test, reference):
        differ.remove(CRUISE)
    found = [by_rule(n, test[n], reference[n], moved) for n in seen if n in differ]
    if models and is_held(test, reference, batches=BATCH in differ):
        found.append(by_rule(CAP, held(test, reference), held(reference, test), moved))
    return found


def _reaction(test: Parameters, reference: Parameters, moved: float) -> list[Difference]:
    """What a CE mark leaves of one window, and a loss of the other, if that differs and the
    throughput moved as it does: marks alone are then not the cause."""
    sides, left = (test, reference), {"marks": MARK, "drops": DECREASE}
    words = [side[SIGNAL].word if SIGNAL in side and MARK in side else "" for side in sides]
    if {*words} != {*left}:
        return []
    ours, theirs = (side[left[word]] for side, word in zip(sides, words, strict=True))
    found = by_rule(MARK, ours, theirs, moved)
    differ = runs_apart(ours, theirs) and abs(ours.value - theirs.value) > RULES[MARK].apart
    pairs = ((test, ours), (reference, theirs))
    effect = EFFECTS[DECREASE](*(with_value(side, DECREASE, e.value) for side, e in pairs))
    if not differ or effect * moved < 0:
        return []
    return [replace(found, effect=effect, score=max(abs(effect), RULES[SIGNAL].least))]


def rules_of(models: bool) -> list[str]:
    """The rules for senders that model the path, or for those that do not."""
    return [
        name
        for name in RULES
        if ((name in OF_LOSSES) is not models or name in OF_ALL) and name not in EVIDENCE
    ]


def _breaks(rule: Rule, test: Estimate, reference: Estimate) -> bool:
    """Whether two behaviours differ by more than seeds do. What is seen on one side only is not a
    difference, except for a way that one side has at all (`Rule.alone`)."""
    if not runs_apart(test, reference):
        return False
    if test.word or reference.word:
        return True
    if rule.alone and test.known != reference.known:
        seen = test if test.known else reference
        return seen.value > rule.seen_from * math.exp(rule.apart / 2)
    if not (test.known and reference.known):
        return False
    if min(test.value, reference.value) > rule.only_below:
        return False
    if rule.is_part:  # runs that differ by more than the sides do not show it
        spread = max((e.high - e.low for e in (test, reference) if e.low <= e.high), default=0.0)
        return abs(test.value - reference.value) > max(rule.apart, spread)
    least = rule.apart / 100
    return abs(math.log(max(test.value, least) / max(reference.value, least))) > rule.apart
