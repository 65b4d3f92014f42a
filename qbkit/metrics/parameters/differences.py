"""Parameters that differ between two controllers: causes, ranked by effect, and symptoms.

The effect of a cause is the change of throughput that it alone would bring at equal loss
(`qbkit.metrics.parameters.effects`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from qbkit.metrics.parameters.between_runs import LEAST_PART, runs_apart
from qbkit.metrics.parameters.difference import Difference
from qbkit.metrics.parameters.effects import (
    DERIVED,
    EFFECTS,
    LOSS_BASED,
    PROBING,
    SYMPTOMS,
    law,
)
from qbkit.metrics.parameters.inference import PARAMETERS, Estimate, Parameters
from qbkit.metrics.parameters.model import ABOVE
from qbkit.metrics.parameters.relations import (
    ACK_CLOCK,
    AT_START,
    DECISIVE,
    DIRECTIONS,
    EVIDENCE,
    EXPLAINS,
    GREATER_WITH,
    OF_ALL,
    OF_LOSSES,
    PROBE_RTTS,
    PROBES,
    RECEIVERS,
    STRONGER,
)
from qbkit.metrics.parameters.rules import RULES, Rule
from qbkit.metrics.parameters.windows import (
    BATCH,
    CAP,
    CRUISE,
    RATE,
    REACH,
    cruise_apart,
    is_held_below,
    never_fills,
    of_windows,
)

FEW_PART = 0.3
"""As `LEAST_PART`, of a value fitted to one or two spans: it has no interval, and chance in it."""
FITTED = ("cubic_c", "increase_packets_per_rtt")
LEAST_PARTS = {"reverted_reductions_percent": 0.15, "packets_per_ack": 0.25}
"""The same where chance does more: two of twenty reductions are restored by it, and a receiver
acknowledges at once what comes after a loss."""
AGAINST = 0.3
"""Weight of a cause that would change the throughput in the opposite direction."""
CLEAR = 0.02
"""Smallest effect that makes a cause a suspect: 2 % of the throughput."""
SETTLED = "kept_two_rtts"
QUEUE, PACE, WINDOW = "standing_queue_bdp", "paced_part", "window_gain"
PROBES_ALONE = 2.0
"""Where probes differ by so many times (ln) what all phases do, it is theirs."""
FILLED = (QUEUE, REACH)
CYCLE, LONG = "probe_cycle_rtts", 0.5
BY_CYCLE = ("probe_up_gain", "probe_down_gain", QUEUE)
"""Probes that last longer, so that cycles are so much (ln) longer, show more of their gains and
leave a longer queue."""
DRAINS = ("probe_down_gain", "drain_rate")
FILLED_BDP = 0.25
"""A queue or a probe is as long as a window allows if it is within this part of the BDP of it."""
PROBING_RATES = (*PROBES, RATE)
DECREASE, INCREASE = "decrease_factor", "increase_packets_per_rtt"
DIP = 0.35
"""What pacing takes of a window in the round trip after a loss is at most this part of it."""
BEFORE_CURVES = 0.3
"""Of a CUBIC, only some spans are lines, and their slope depends on where they are cut: it must
differ by this part, and where most spans are curves it says nothing."""
FRIENDLY = 0.2
"""By how much (ln) an increase may differ from what β makes of it."""
LEAST_OF_SOURCE = 0.03
"""Least score of a phase of BBR, and of a constant of the start, that differs by a decisive part,
as for a rule."""
CLEAR_PART = 0.03
"""Fraction of the fair share above which the sign of a Δ-throughput counts."""


def compare(
    test: Parameters,
    reference: Parameters,
    delta_throughput_part: float = math.nan,
    *,
    models_path: bool = False,
) -> list[Difference]:
    """Differences of two senders: causes, most likely first, then symptoms.

    ``delta_throughput_part`` is Conformance-T's Δ-throughput over the fair share of the link (NaN:
    unknown); causes with the opposite effect rank lower. Causes of unknown effect follow the
    others, but come first if the law itself is unknown, because they may then be large. Symptoms
    have no effect and are ordered by the size of the difference.

    ``models_path``: whether the controllers are known to model the path, as BBR does. Under random
    loss the packets may not show it. What only a loss-based controller has is then no cause.
    """
    governing = PROBING if models_path else law(test, reference)
    models = governing == PROBING
    impossible = LOSS_BASED if models else ()
    left_out = (*DERIVED, *impossible)
    names = [n for n in PARAMETERS if n not in left_out and _differ(test[n], reference[n])]
    if INCREASE in names and not _lines_differ(test, reference):
        names.remove(INCREASE)
    if DECREASE in names and _is_a_dip(test, reference):
        names.remove(DECREASE)
    causes = [_cause(n, test, reference, delta_throughput_part) for n in names if n in EFFECTS]
    causes += _behaviours(test, reference, delta_throughput_part, models=models)
    if models:
        causes = [d for d in causes if d.name not in DRAINS or not of_windows(d, test, reference)]
    symptoms = [_symptom(n, test, reference) for n in names if n in SYMPTOMS]
    unknown = math.inf if governing else -math.inf
    behind = _explained(causes, test, reference)
    causes = [replace(d, explained=d.name in behind, of_model=models) for d in causes]
    causes.sort(
        key=lambda d: (
            d.explained,
            _rank(d.name) if models else 0,
            -d.score if math.isfinite(d.score) else unknown,
        )
    )
    return [*causes, *sorted(symptoms, key=lambda d: -_apart(d.test, d.reference))]


def _lines_differ(test: Parameters, reference: Parameters) -> bool:
    """Whether slopes that differ say so of the law, and not of where CUBIC's curves are cut."""
    sides = (test, reference)
    if all(p["growth"].word == "cubic" for p in sides):
        return False
    curved = all(p["cubic_c"].known for p in sides)
    return not curved or _apart(test[INCREASE], reference[INCREASE]) >= BEFORE_CURVES


def _is_a_dip(test: Parameters, reference: Parameters) -> bool:
    """Whether both have the same part of their windows two round trips after a loss.

    Until then a sender that paces may have less in flight than its window allows.
    """
    sides = [p[SETTLED] for p in (test, reference) if SETTLED in p and p[SETTLED].known]
    if len(sides) < 2:
        return False
    return _apart(*sides) <= LEAST_PART and _apart(test[DECREASE], reference[DECREASE]) < DIP


def _behaviours(
    test: Parameters, reference: Parameters, moved: float, *, models: bool
) -> list[Difference]:
    """The rules by which both sides were seen to behave, but not alike."""
    kinds = [
        name
        for name in RULES
        if ((name in OF_LOSSES) is not models or name in OF_ALL) and name not in EVIDENCE
    ]
    growths = {test["growth"].word, reference["growth"].word}
    seen = [name for name in kinds if name in test and name in reference]
    differ = {n for n in seen if _breaks(RULES[n], test[n], reference[n])}
    curved = any(p["growth"].word == "cubic" or p["cubic_c"].known for p in (test, reference))
    if growths == {"linear"} or not curved:  # no curve, so no K
        differ.discard("back_at_loss_part")
    if CRUISE in differ and not cruise_apart(test, reference):
        differ.remove(CRUISE)
    found = [_broken(n, test[n], reference[n], moved) for n in seen if n in differ]
    if models and is_held_below(test, reference, batches=BATCH in differ):
        unheld = Estimate(CAP, math.nan)
        ours, theirs = (p[CAP] if never_fills(p) else unheld for p in (test, reference))
        found.append(_broken(CAP, ours, theirs, moved))
    return found


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
    if rule.is_part:
        return abs(test.value - reference.value) > rule.apart
    least = rule.apart / 100
    return abs(math.log(max(test.value, least) / max(reference.value, least))) > rule.apart


def _broken(name: str, test: Estimate, reference: Estimate, moved: float) -> Difference:
    rule = RULES[name]
    values = (0.0 if math.isnan(e.value) else e.value for e in (test, reference))
    effect = rule.effect(*values)
    against = abs(moved) > CLEAR_PART and effect * moved < 0
    # A rule of thumb may have the wrong sign: it moves a rule that is broken, but never hides it.
    score = max(abs(effect) * (AGAINST if against else 1.0), rule.least)
    return Difference(name, test, reference, effect, math.nan, math.nan, score)


def _rank(name: str) -> int:
    """Of a sender that models the path: what it does, its receiver, what it does in the start."""
    return 1 if name in RECEIVERS else 2 * (name in AT_START)


def _explained(causes: Sequence[Difference], test: Parameters, reference: Parameters) -> set[str]:
    """Those that another one explains; of two that explain each other, the first of `EXPLAINS`."""
    found = {d.name: d for d in causes}
    too_fast = "drain_rate" in found or any(
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
    if (cause.name, other.name) == ("decrease_factor", INCREASE):
        return _is_friendly(cause, other)
    if (cause.name, other.name) in STRONGER:
        return _times(cause) >= _times(other)
    if word := GREATER_WITH.get((cause.name, other.name)):
        sides = (cause.test.word, other.test), (cause.reference.word, other.reference)
        values = {said == word: estimate.value for said, estimate in sides}
        return len(values) == 2 and values[True] > values[False]
    direction = DIRECTIONS.get((cause.name, other.name))
    changes = (d.test.value - d.reference.value for d in (cause, other))
    return direction is None or math.prod(changes) * direction > 0


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
    large = bool(rule or d.test.word) or _apart(d.test, d.reference) > DECISIVE.get(d.name, 0.0)
    return large and not d.score <= CLEAR


def _cause(name: str, test: Parameters, reference: Parameters, moved: float) -> Difference:
    effect = EFFECTS[name](test, reference)
    low, high = _effect_interval(name, test, reference)
    against = abs(moved) > CLEAR_PART and effect * moved < 0
    score = abs(effect) * (AGAINST if against else 1.0)
    if (
        name in (*PROBES, *PROBE_RTTS, *AT_START)
        and name in DECISIVE
        and _apart(test[name], reference[name]) > DECISIVE[name]
    ):
        score = max(score, LEAST_OF_SOURCE)
    return Difference(name, test[name], reference[name], effect, low, high, score)


def _symptom(name: str, test: Parameters, reference: Parameters) -> Difference:
    nan = math.nan
    return Difference(name, test[name], reference[name], nan, nan, nan, nan)


def _effect_interval(name: str, test: Parameters, reference: Parameters) -> tuple[float, float]:
    """Effects at the ends of both intervals that are farthest apart; effects are monotonic."""
    ends = (test[name].low, test[name].high), (reference[name].low, reference[name].high)
    if not all(math.isfinite(end) for pair in ends for end in pair):
        return math.nan, math.nan
    found = sorted(
        EFFECTS[name](_with(test, name, ours), _with(reference, name, theirs))
        for ours, theirs in zip(ends[0], reversed(ends[1]), strict=True)
    )
    return found[0], found[1]


def _with(parameters: Parameters, name: str, value: float) -> Parameters:
    """The parameters with the value of one replaced."""
    changed = (replace(e, value=value) if e.name == name else e for e in parameters.values())
    return Parameters(parameters.label, changed)


def _differ(test: Estimate, reference: Estimate) -> bool:
    """Whether two estimates differ, and every run of one side from every run of the other."""
    if not runs_apart(test, reference):
        return False
    if test.word or reference.word:
        return True
    if not (test.known and reference.known):
        return False
    if _apart(test, reference) <= LEAST_PARTS.get(test.name, LEAST_PART):
        return False
    if math.isnan(test.low) or math.isnan(reference.low):
        return test.name not in FITTED or _apart(test, reference) > FEW_PART
    return test.low > reference.high or test.high < reference.low


def _apart(test: Estimate, reference: Estimate) -> float:
    """Relative difference: over the larger number, or over 100 for percentages; 0 for two zeros."""
    if test.unit == "%":
        return abs(test.value - reference.value) / 100
    largest = max(abs(test.value), abs(reference.value))
    return abs(test.value - reference.value) / largest if largest else 0.0
