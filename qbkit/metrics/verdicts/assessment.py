"""Does a stack conform? The verdict over many seeds, relative to the reference's noise floor.

A deterministic run is one sample of a chaotic system, so no verdict rests on one run. An assessment
has one of four outcomes:

- *conforms*: the equivalence test shows that throughput, queueing delay and conformance all lie
  within a margin of the reference's (`qbkit.metrics.verdicts.equivalence`). Nothing else counts as
  conformance.
- *differs*: the permutation test separates the two (`qbkit.metrics.verdicts.permutation`), and the
  equivalence test does not place the difference within the margin.
- *no difference detected*: neither. This does not show conformance, because the trials may be too
  few. The verdict says which shift they could have detected.
- *undecided*: too few trials for any permutation test; or, unless they differ, trials that detect
  only a shift of more than half of the reference's mean throughput or delay
  (`qbkit.metrics.verdicts.equivalence.coarse`); or a noise floor within the margin of 0, so that
  the conformance has nothing to be compared with.

A trial that is on both sides is compared with itself, which no test allows for. So nothing conforms
with such trials, and where all are on both sides the verdict says that only the noise floor counts.

``conformance`` and ``noise_floor`` both compare one trial with one other, averaged over all pairs
(`qbkit.metrics.envelopes.trials`), so they are comparable. ``conformance_pooled`` compares the
envelopes that the charts draw, with all trials of a side pooled. It grows with the number of trials
and has no noise floor.

Sources: envelope, conformance and deviation are from IMC'22 §2.1, which has one trial per side.
Conformance-T, Δ-throughput, Δ-delay and clusters are from the authors' follow-up (IMC'23, doi
10.1145/3618257.3624811), to which we have no access: the names are theirs; the search for the
translation and the rule for clusters are ours. Pooling, noise floor, intervals, tests and verdict
are ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import pandas as pd

from qbkit.errors import MetricError
from qbkit.json_words import plain
from qbkit.metrics.envelopes.conformance import pooled_numbers
from qbkit.metrics.envelopes.envelope import Trial, definition_of, envelope, sample_trials
from qbkit.metrics.envelopes.points import MIN_SKIP_START_S, SKIP_START_FRACTION, OperatingPoints
from qbkit.metrics.envelopes.trials import Trials
from qbkit.metrics.verdicts import equivalence, permutation
from qbkit.metrics.verdicts.bootstrap import NAN_INTERVAL, deviation_ci, holding
from qbkit.metrics.verdicts.reasons import reasons, sentence
from qbkit.metrics.verdicts.settling import drift_interval_mbps, drift_mbps, settles
from qbkit.metrics.verdicts.words import (
    CONFORMS,
    DIFFERS,
    NO_DIFFERENCE,
    UNDECIDED,
    Outcome,
    Verdict,
    are_two_senders,
    same_runs,
    study_verdict,
)
from qbkit.traces.arrays import FloatArray

USUAL_SEEDS = 5
"""Seeds to give where fewer could decide in principle."""
MOST_SEEDS = 100
"""More seeds than this are no useful answer."""
ABOVE = "by how much the test's pooled envelope lies above the reference's"
SHOWN = {
    "conformance": ("conformance", "", "one trial with one of the reference"),
    "noise_floor": ("noise floor", "", "one trial of the reference with another"),
    "mean_throughput_difference_mbps": (
        "mean throughput difference",
        "Mbit/s",
        "test minus reference",
    ),
    "mean_delay_difference_ms": (
        "mean delay difference",
        "ms",
        "queueing delay over time, test minus reference",
    ),
    "p_value": ("p", "", "permutation test of no difference"),
    "p_equivalence": ("p of equivalence", "", "equivalence test of lying outside the margin"),
    "conformance_pooled": ("pooled conformance", "", "all trials of a side in one envelope"),
    "conformance_t": ("Conformance-T", "", "pooled, after the best translation"),
    "delta_throughput_mbps": ("Δ-throughput", "Mbit/s", ABOVE),
    "delta_delay_ms": ("Δ-delay", "ms", ABOVE),
    "deviation": ("deviation", "", "between the centroids of the pooled envelopes"),
}
"""Field in `Assessment.frame` → name, unit and meaning. Sentences and charts use these names."""
FEW_POINTS = 100
"""Trials with fewer operating points have a lower conformance and noise floor than longer ones.

By `benchmarks/trial_length.py`, the noise floor of the kernel's controllers is 0.27 with 26 points
per trial, 0.64 with 106, 0.76 with 134 and 0.93 with 538; in deep buffers it is lower."""


@dataclass(frozen=True, repr=False)
class Assessment:
    """A test implementation against its reference, over several seeds."""

    outcome: Outcome
    names: tuple[str, str]
    """What the test and the reference are called."""
    reasons: str
    """The numbers on which the outcome rests, in one sentence."""
    definition: str
    conformance: float
    """Conformance of one trial of the test with one of the reference, mean over all pairs."""
    conformance_ci: tuple[float, float]
    """Jackknife interval over trials; NaN if a side has a single trial."""
    noise_floor: float
    """Conformance of one trial of the reference with another, mean over all pairs; NaN below 2
    trials."""
    noise_floor_ci: tuple[float, float]
    """Jackknife interval over trials; NaN below 3 reference trials."""
    conformance_pooled: float
    """Conformance of the pooled envelopes; it grows with the trials and has no noise floor."""
    conformance_t: float
    """Conformance of the pooled envelopes after the best translation of the test."""
    delta_throughput_mbps: float
    """By how much the test's pooled envelope lies above the reference's: test minus reference, the
    opposite of the translation."""
    delta_delay_ms: float
    """The same in queueing delay."""
    mean_throughput_difference_mbps: float
    """Mean throughput of the operating points, mean over trials, test minus reference."""
    mean_throughput_difference_ci: tuple[float, float]
    mean_delay_difference_ms: float
    """Mean queueing delay of the operating points, mean over trials, test minus reference."""
    mean_delay_difference_ci: tuple[float, float]
    deviation: float
    """Deviation of the pooled envelopes."""
    deviation_ci: tuple[float, float]
    """Bootstrap interval over trials."""
    p_value: float
    """p of the permutation test on envelopes and means together; NaN below 2 trials per side."""
    p_envelopes: float
    """p of the permutation test on the conformance alone."""
    p_means: float
    """p of the permutation test on the mean throughput and delay of each trial alone."""
    detectable_throughput_mbps: float
    """Shift of the mean throughput that this many trials detect four times in five."""
    detectable_delay_ms: float
    """Shift of the mean queueing delay that this many trials detect four times in five."""
    margin: float
    """Margin of equivalence, as a fraction of the reference's means, and of 1 for conformance."""
    p_equivalence: float
    """p of "outside the margin"; the test conforms if it is at most 1 - confidence."""
    confidence: float
    seeds_needed: int | None
    """Seeds of each side that can decide, if these cannot; None if these can, or if more would not
    help."""
    seeds: int
    """Number of trials of the test."""
    reference_seeds: int
    """Number of trials of the reference."""
    trials_of_both: int = 0
    """Trials of the test whose points are those of a trial of the reference, to the byte."""
    warnings: tuple[str, ...] = ()
    """Sentences about what limits the trust in the numbers."""

    @property
    def same_runs(self) -> bool:
        """Whether both sides are the same runs, so that only the noise floor says anything."""
        return same_runs(self.trials_of_both, self.seeds, self.reference_seeds)

    @property
    def verdict(self) -> Verdict:
        """The outcome in at most three short lines, as ``print`` and notebooks show it."""
        return study_verdict(self)

    def to_dict(self) -> dict[str, object]:
        """The fields and the verdict, ready for JSON: intervals are lists, NaN is None."""
        verdict = {"verdict": str(self.verdict), "kind": self.verdict.kind}
        return dict(plain({**verdict, **asdict(self)}))

    def frame(self) -> pd.DataFrame:
        """One row per number: its name, value, unit, interval if it has one, and meaning."""
        rows = [(text, getattr(self, name), unit) for name, (text, unit, _) in SHOWN.items()]
        table = pd.DataFrame(rows, columns=["metric", "value", "unit"])
        fields = (name.removesuffix("_mbps").removesuffix("_ms") + "_ci" for name in SHOWN)
        intervals = (getattr(self, field, NAN_INTERVAL) for field in fields)
        texts = ["" if math.isnan(low) else f"{low:.2f} .. {high:.2f}" for low, high in intervals]
        meanings = [meaning for _, _, meaning in SHOWN.values()]
        return table.assign(**{f"{100 * self.confidence:g} % interval": texts, "meaning": meanings})

    def __repr__(self) -> str:
        return (
            f"<Assessment: {self.outcome}, conformance {self.conformance:.2f}, noise floor "
            f"{self.noise_floor:.2f}, {self.seeds} and {self.reference_seeds} trials>"
        )

    def html(self, verdict: Verdict, folded: Mapping[str, str] | None = None) -> str:
        """A verdict and the warnings; below it, folded, HTML by title, reasons and table."""
        table = self.frame().to_html(index=False, float_format="{:.3f}".format)
        numbers = f"<p>{escape(sentence(self.reasons))}</p>{table}"
        parts = {**(folded or {}), "The numbers": numbers}
        more = "".join(
            f"<details><summary>{escape(title)}</summary>{part}</details>"
            for title, part in parts.items()
        )
        warnings = "".join(f"<p>Warning: {escape(w)}</p>" for w in self.warnings)
        return f"<p>{verdict.html}</p>{warnings}{more}"

    def _repr_html_(self) -> str:
        return self.html(self.verdict)


def assess(
    tests: Trial | Sequence[Trial],
    references: Trial | Sequence[Trial],
    *,
    flow: str | int = 0,
    reference_flow: str | int = 0,
    names: tuple[str, str] = ("the test", "the reference"),
    definition: str = "imc22",
    confidence: float = 0.95,
    margin: float = equivalence.MARGIN,
    bootstrap: int = 1000,
    rng_seed: int = 0,
) -> Assessment:
    """Assess trials of a test (one per seed) against trials of its reference.

    ``flow`` and ``reference_flow`` choose the flow of run datasets. ``names`` are what the verdict
    calls the two, such as ``("quiche:cubic", "tcp:cubic")``. ``margin`` is that of equivalence. The
    module's docstring describes the numbers and the verdict. Equal arguments give equal results.
    Raises MetricError as `envelope` does, and for a confidence or margin outside (0, 1) or a
    bootstrap below 1.
    """
    for name, value in (("confidence", confidence), ("margin", margin)):
        if not 0 < value < 1:
            raise MetricError(f"{name} must be between 0 and 1, not {value:g}")
    if bootstrap < 1:
        raise MetricError(f"bootstrap must be 1 draw or more, not {bootstrap}")
    rule = definition_of(definition)
    ours = sample_trials(tests, flow, definition=definition)
    theirs = sample_trials(references, reference_flow, definition=definition)
    whole, known = envelope(ours, definition=definition), envelope(theirs, definition=definition)
    sides = [t.xy for t in ours], [t.xy for t in theirs]
    trials = Trials.of(*sides, rule)
    pooled = pooled_numbers(whole, known)
    interval = deviation_ci(*sides, rule, confidence, bootstrap, rng_seed)
    numbers = {
        **_numbers(trials, confidence, margin, rng_seed),
        **pooled,
        "deviation_ci": holding(interval, pooled["deviation"]),
        "trials_of_both": _trials_of_both(*sides),
    }
    if numbers["trials_of_both"]:
        numbers["p_equivalence"] = math.nan  # it takes the trials for independent
    outcome = _outcome(trials, numbers, 1 - confidence)
    short = _short_trials([*ours, *theirs])
    return Assessment(
        outcome=outcome,
        names=names,
        reasons=reasons(outcome, trials, numbers, 1 - confidence),
        seeds_needed=_seeds_needed(trials, 1 - confidence) if outcome == UNDECIDED else None,
        definition=definition,
        warnings=(*_of_both_sides(numbers, names), *short, *_drifting(*sides)),
        **numbers,
    )


def _trials_of_both(tests: Sequence[FloatArray], references: Sequence[FloatArray]) -> int:
    """How many trials of the test are trials of the reference, too."""
    known = {points.tobytes() for points in references}
    return sum(points.tobytes() in known for points in tests)


def _of_both_sides(numbers: Mapping[str, Any], names: tuple[str, str]) -> tuple[str, ...]:
    """A warning if some trials, but not all, are on both sides."""
    count, seeds = numbers["trials_of_both"], numbers["seeds"]
    if not count or same_runs(count, seeds, numbers["reference_seeds"]):
        return ()
    remedy = "" if are_two_senders(names) else "; give other seeds"
    return (
        f"{count} of {seeds} trials of the test are trials of the reference, too, which raises the "
        f"conformance{remedy}",
    )


def _short_trials(trials: Sequence[OperatingPoints]) -> tuple[str, ...]:
    """A warning if a trial has few operating points."""
    shortest = min(trials, key=lambda trial: len(trial.xy))
    points = len(shortest.xy)
    if points >= FEW_POINTS:
        return ()
    sampled_s = (FEW_POINTS + 1) * shortest.interval_s
    needed_s = max(sampled_s / (1 - SKIP_START_FRACTION), sampled_s + MIN_SKIP_START_S)
    longer = "" if math.isnan(needed_s) else f"; {math.ceil(needed_s)} s give {FEW_POINTS}"
    return (
        f"trials are short: {points} operating points, and conformance and noise floor rise with "
        f"the length{longer}",
    )


def _drifting(tests: Sequence[FloatArray], references: Sequence[FloatArray]) -> tuple[str, ...]:
    """A warning for each side that does not settle."""
    warnings = []
    for who, trials in (("test", tests), ("reference", references)):
        if not settles(trials):
            mbps, (low, high) = drift_mbps(trials).value, drift_interval_mbps(trials)
            warnings.append(
                f"the {who} does not settle: its throughput in the second half of a trial is "
                f"{mbps:+.1f} Mbit/s [{low:+.1f}, {high:+.1f}] from that in the first; run "
                "longer"
            )
    return tuple(warnings)


def _numbers(trials: Trials, confidence: float, margin: float, rng_seed: int) -> dict[str, Any]:
    """The fields of an assessment that are computed from single trials."""
    level = 1 - confidence
    value, floor = trials.conformance(), trials.noise_floor()
    delay, throughput = equivalence.mean_differences(trials)
    p = permutation.permutation_test(trials, rng_seed)
    detectable_delay_ms, detectable_mbps = equivalence.detectable_shifts(trials, level)
    return {
        "conformance": value.value,
        "conformance_ci": value.interval(confidence, 0.0, 1.0),
        "noise_floor": floor.value,
        "noise_floor_ci": floor.interval(confidence, 0.0, 1.0),
        "mean_throughput_difference_mbps": throughput.value,
        "mean_throughput_difference_ci": throughput.interval(confidence, -math.inf, math.inf),
        "mean_delay_difference_ms": delay.value,
        "mean_delay_difference_ci": delay.interval(confidence, -math.inf, math.inf),
        "p_value": p.p,
        "p_envelopes": p.envelopes,
        "p_means": p.means,
        "detectable_throughput_mbps": detectable_mbps,
        "detectable_delay_ms": detectable_delay_ms,
        "margin": margin,
        "p_equivalence": equivalence.equivalence_p(trials, margin),
        "confidence": confidence,
        "seeds": trials.tests,
        "reference_seeds": trials.references,
    }


def _outcome(trials: Trials, numbers: Mapping[str, Any], level: float) -> Outcome:
    if same_runs(numbers["trials_of_both"], trials.tests, trials.references):
        return NO_DIFFERENCE
    if permutation.smallest_p(trials.tests, trials.references) > level:
        return UNDECIDED
    comparable = numbers["noise_floor"] > numbers["margin"]
    if comparable and numbers["p_equivalence"] <= level:
        return CONFORMS
    if numbers["p_value"] <= level:
        return DIFFERS
    decides = comparable and not equivalence.coarse(trials, level)
    return NO_DIFFERENCE if decides else UNDECIDED


def _seeds_needed(trials: Trials, level: float) -> int | None:
    """The fewest seeds of each side that can decide; None if more seeds would not help."""
    if permutation.smallest_p(trials.tests, trials.references) > level:
        return max(USUAL_SEEDS, permutation.enough_trials(level))
    more = range(max(trials.tests, trials.references) + 1, MOST_SEEDS + 1)
    return next((n for n in more if not equivalence.coarse(trials, level, n)), None)
