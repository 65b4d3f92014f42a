"""What sets a test apart from its reference: suspects, and their shares of the difference.

The *share* of the difference that a suspect accounts for is its effect over the observed
difference, both as ln of a ratio of throughputs. The observed ratio is that of the test over its
competitor, divided by that of the reference over its own. The effect is that of this one parameter,
by the response function of the law: at equal loss times in a drop-tail queue, at an equal loss rate
if losses are random or the queue is managed (`qbkit.metrics.parameters.effects`). Shares add up,
and may be negative. A rule of thumb gives no share, and without a difference that is shown there is
none. The definition is ours. A share is an estimate by a model; `qbkit.what_if` measures one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from qbkit.errors import MetricError
from qbkit.json_words import plain
from qbkit.metrics import Assessment
from qbkit.metrics.parameters import Difference, Parameters, observe
from qbkit.metrics.parameters.effects import at_equal_loss_times
from qbkit.metrics.parameters.laws import CAP, by_names, law
from qbkit.metrics.parameters.relations import PROBES, RECEIVERS
from qbkit.metrics.parameters.rules import RULES
from qbkit.metrics.verdicts.reasons import sentence
from qbkit.metrics.verdicts.words import DIFFERS, Verdict, study_verdict
from qbkit.store.faults import Fault, faults_html
from qbkit.studies import cause_words
from qbkit.studies.cause_words import change_percent, interval_text, share_cell
from qbkit.studies.conformance import Study
from qbkit.studies.exchange import Exchange
from qbkit.studies.lone import laws_of
from qbkit.studies.moments import moment_of

if TYPE_CHECKING:
    import altair as alt
    import xarray as xr

NEAR = 0.5
"""The reasons name every suspect whose score is at least this part of the first one's."""
LITTLE = 1 / 3
"""If the suspects together account for less of the difference, the cause is undecided."""
TOO_SMALL = 0.1
"""Even by a rule of thumb, a cause with less than this part of the difference is not the cause."""
NUMBERS = ("effect", "effect_low", "effect_high", "score", "votes")
"""Of a difference, in a document."""
DECISIVE_VOTES = 0.8
"""Between two of the same sender, the first cause is likely if so many of the precedents' votes
name it, and one of two otherwise (`benchmarks/causes.py` counts how often each is right)."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """What distinguishes a test from its reference: suspects, and accompanying symptoms."""

    study: Study
    assessment: Assessment
    test: Parameters
    reference: Parameters
    differences: list[Difference]
    """Causes, most likely first, then symptoms."""
    alone: tuple[xr.Dataset, ...] = ()
    """The run of the test, and that of the reference, which show the first cause best, each alone
    (`qbkit.studies.lone`). Empty for a published explanation."""
    exchange: Exchange | None = None
    """What came of another receiver, where the receiver was the likeliest cause."""

    @property
    def suspects(self) -> list[Difference]:
        """Every cause that can matter, or whose effect is unknown, likeliest first.

        The receiver is none if the difference stays with another one.
        """
        cleared = RECEIVERS if self.exchange and not self.exchange.is_cause else ()
        return [d for d in self.differences if d.is_suspect and d.name not in cleared]

    @property
    def suspects_receiver(self) -> bool:
        """Whether a difference is shown, and the receiver is its likeliest cause."""
        shown = self.assessment.outcome == DIFFERS
        return shown and bool(self.suspects) and self.suspects[0].name in RECEIVERS

    @property
    def symptoms(self) -> list[Difference]:
        """Differences that are not causes, the largest first."""
        return [d for d in self.differences if d.role == "symptom"]

    @cached_property
    def observed(self) -> float:
        """The difference in throughput, as the module's docstring defines it; NaN if not shown."""
        return observed_ln_ratio(self.study, self.assessment)

    def share(self, difference: Difference) -> float:
        """The part of the difference in throughput that a cause accounts for; NaN if unknown."""
        sides = by_names(self.test, self.reference, laws_of(self.study))
        return share_of(difference, self.observed, law(*sides) if self._is_drop_tail else None)

    @property
    def _is_drop_tail(self) -> bool:
        """Whether packets are lost only where the queue overflows."""
        first = self.study.tests[0]
        spec = first.qb.experiment
        return first.attrs["qdisc"] == "fifo" and not (spec and spec.bottleneck.mean_loss_percent)

    @property
    def accounted(self) -> float:
        """Sum of the shares of all suspects whose share is known; NaN if none is."""
        shares = [share for d in self.suspects if not math.isnan(share := self.share(d))]
        return sum(shares) if shares else math.nan

    @cached_property
    def verdict(self) -> Verdict:
        """The study's verdict, with the known fault or the likeliest cause as a line."""
        if self.is_of_no_fault:
            return study_verdict(self.assessment, self.cause_line)
        return self.study.verdict(self.cause_line, definition=self.assessment.definition)

    @property
    def is_of_no_fault(self) -> bool:
        """Whether no fault of either is the reason: two laws, or a receiver that holds the test."""
        if not self.suspects:
            return False
        experiment, first = self.study.tests[0].qb.experiment, self.suspects[0]
        flow = experiment.flows[0] if experiment else None
        is_limited = flow is not None and bool(flow.receive_window_kb or flow.read_mbps)
        return first.is_of_two_laws or (first.name == CAP and is_limited)

    @property
    def faults(self) -> list[Fault]:
        """The known faults of the test that the reference lacks, from ``data/faults.csv``."""
        return self.study.faults

    @property
    def is_likely(self) -> bool:
        """Whether the first suspect is likely the cause.

        Of two of the same sender, precedents or its share say so. Of others, the suspects account
        for much of the difference, or the first one breaks a rule.
        """
        first = self.suspects[0]
        if not math.isnan(first.votes):
            return first.votes >= DECISIVE_VOTES or self.share(first) >= LITTLE
        return self.accounted >= LITTLE or breaks_a_rule(first, self.observed)

    @property
    def named(self) -> list[Difference]:
        """The first suspect, and those with a similar score, unless there is but one change."""
        first, *others = self.suspects
        if not math.isnan(first.votes):
            return [first]
        near = [d for d in others if d.score >= NEAR * first.score and not d.explained]
        if first.of_model:  # of these only what their sender does
            near = [d for d in near if d.name not in RECEIVERS]
        return [first, *near]

    @property
    def too_small(self) -> list[Difference]:
        """Causes whose effect is too small for a suspect."""
        return [d for d in self.differences if d.role == "cause" and not d.is_suspect]

    @property
    def cause_line(self) -> str:
        """What most likely sets the test apart, from its packets alone, in one sentence."""
        return cause_words.cause_line(self)

    @property
    def next_lines(self) -> list[str]:
        """The first cause where a known fault hides it, what would confirm it, and its source.

        Empty without a cause of a difference. The line of the source is the most likely one; it is
        left out where the cause is open, where the test's source is not at hand or is the
        reference's, too, and beside a known fault, which has one.
        """
        return cause_words.next_lines(self)

    @property
    def reasons(self) -> str:
        """What the cause rests on: each suspect's effect alone, and what all account for."""
        return cause_words.reasons(self)

    def effect_text(self, difference: Difference) -> str:
        """What a cause alone would change in throughput, and its share of the difference."""
        return cause_words.effect_text(difference, self.share(difference))

    def evidence(self) -> alt.LayerChart:
        """The first cause at a glance: both sides alone, around the moment at which it shows.

        Raises MetricError without a cause, and for an explanation that was not made on this
        machine: published ones have no packets.
        """
        from qbkit.plots.flows.evidence import evidence_chart

        if not (self.suspects and self.alone):
            raise MetricError(
                "there is no evidence to draw; it needs a cause, explained on this machine"
            )
        first, names = self.suspects[0], (self.study.test, self.study.reference)
        sides = {name: observe(run) for name, run in zip(names, self.alone, strict=True)}
        moment = moment_of(first.name, self.alone[0], sides[self.study.test])
        return evidence_chart(
            sides,
            moment.span_s,
            moment=(moment.at_s, moment.words),
            title=sentence(first.clause).removesuffix("."),
            reference=self.study.reference,
        )

    def frame(self) -> pd.DataFrame:
        """One row per difference: role, meaning, test, reference, change of throughput."""
        columns = ["parameter", "role", "meaning", self.study.test, self.study.reference, "unit"]
        columns += ["throughput_change_percent", "interval_percent", "share_percent", "score"]
        rows = [
            (
                d.name,
                d.role,
                d.meaning,
                str(d.test),
                str(d.reference),
                d.test.unit,
                change_percent(d),
                interval_text(d).strip(),
                share_cell(self.share(d)),
                round(d.score, 3),
            )
            for d in self.differences
        ]
        return pd.DataFrame(rows, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """The verdict, the known faults and the differences, ready for JSON."""
        found = {
            "verdict": str(self.verdict),
            "reasons": self.reasons,
            "next": self.next_lines,
            "faults": [fault._asdict() for fault in self.faults],
            "share": round(self.accounted, 4),
            "differences": [
                {
                    "parameter": d.name,
                    "role": d.role,
                    "meaning": d.meaning,
                    "test": str(d.test),
                    "reference": str(d.reference),
                    "unit": d.test.unit,
                    **{name: round(getattr(d, name), 4) for name in NUMBERS},
                    "rule_of_thumb": d.by_thumb,
                    "share": round(self.share(d), 4),
                }
                for d in self.differences
            ],
        }
        return dict(plain(found))

    def __repr__(self) -> str:
        return str(self.verdict)

    def _repr_html_(self) -> str:
        # Names with spaces wrap, so that the table fits the cell.
        table = self.frame().drop(columns=["parameter", "score"])
        table.columns = [
            str(name).replace("_percent", " (%)").replace("_", " ") for name in table.columns
        ]
        said = [sentence(self.reasons), *self.next_lines]
        text = "".join(f"<p>{escape(line)}</p>" for line in said)
        suspects = f"{text}{table.to_html(index=False)}"
        folded = {**faults_html(self.faults), "Suspects and symptoms": suspects}
        return self.assessment.html(self.verdict, folded)


def share_of(cause: Difference, observed: float, growth: str | None) -> float:
    """The part of an ``observed`` ln of throughputs that a cause accounts for; NaN if unknown.

    ``growth`` is the `law` of flows that lose at the same times, and None of others.
    """
    effect = math.nan if cause.by_thumb else cause.effect
    if growth is not None:
        effect = at_equal_loss_times(cause.name, effect, growth)
    return effect / observed


def breaks_a_rule(suspect: Difference, observed: float) -> bool:
    """Whether a suspect is what the sender does, and not too small for the observed difference."""
    own = suspect.name not in RECEIVERS
    too_small = 0 < abs(suspect.effect) < TOO_SMALL * abs(observed)
    phase = suspect.of_model and suspect.name in (*PROBES, "pacing")
    broken = suspect.name in RULES or phase or suspect.is_of_laws
    return own and not too_small and broken


def observed_ln_ratio(study: Study, assessment: Assessment) -> float:
    """ln of the test's throughput over its competitor's, less the same of the reference.

    NaN without a competitor, and unless both are shown: that the two sides differ, and that their
    mean throughputs do.
    """
    low, high = assessment.mean_throughput_difference_ci
    if assessment.outcome != DIFFERS or not (low > 0 or high < 0):
        return math.nan
    return ln_ratio(study.tests) - ln_ratio(study.references)


def ln_ratio(runs: Sequence[xr.Dataset]) -> float:
    """Mean over runs: ln of the throughput of flow 0 over that of flow 1; NaN without these."""
    means = [run["throughput_mbps"].mean("time").values for run in runs]
    if any(len(mbps) < 2 or min(mbps[:2]) <= 0 for mbps in means):
        return math.nan
    return sum(math.log(mbps[0] / mbps[1]) for mbps in means) / len(means)
