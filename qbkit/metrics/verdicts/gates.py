"""Gates: does a number of an assessment lie within a bound? Meets, fails or undecided.

A gate looks at the whole confidence interval over trials. It is *met* if the interval lies within
the bounds, *failed* if it lies outside, and *undecided* otherwise: the trials are too few. The
width of an interval falls with 1/√n in the number n of trials per side, so an undecided gate says
about how many seeds bring the interval to one side of the nearest bound.

The interval of conformance and noise floor is that of `qbkit.metrics.envelopes.trials`.
Δ-throughput and Δ-delay, by which the test's pooled envelope lies above the reference's, get theirs
from the same delete-one jackknife.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from qbkit.errors import SpecError
from qbkit.json_words import plain
from qbkit.metrics.envelopes.conformance import Translated, conformance_t
from qbkit.metrics.envelopes.envelope import Trial, definition_of, envelope, sample_trials
from qbkit.metrics.envelopes.points import OperatingPoints
from qbkit.metrics.envelopes.trials import TrialEstimate, Trials, jackknife
from qbkit.metrics.verdicts.assessment import MOST_SEEDS
from qbkit.metrics.verdicts.equivalence import MARGIN
from qbkit.metrics.verdicts.reasons import interval_text
from qbkit.traces.arrays import IntArray

Answer = Literal["meets", "fails", "undecided"]
FLOOR = "floor"
"""Word for "the noise floor" as the least conformance."""


@dataclass(frozen=True)
class Gate:
    """One number, its interval, and the bounds between which it must lie."""

    name: str
    unit: str
    value: float
    interval: tuple[float, float]
    """Both NaN if a side has a single trial."""
    least: float
    most: float
    seeds: int
    """Trials of the side that has fewer."""

    @property
    def answer(self) -> Answer:
        """ "meets", "fails" or "undecided"."""
        low, high = self.interval
        if self.least <= low and high <= self.most:
            return "meets"
        return "fails" if high < self.least or low > self.most else "undecided"

    @property
    def seeds_needed(self) -> int | None:
        """About how many seeds decide an undecided gate; None if unknown or above `MOST_SEEDS`."""
        low, high = self.interval
        if math.isnan(low) or self.answer != "undecided":
            return None
        reach = max(high - self.value, self.value - low)  # one end may be cut off at 0 or 1
        ends = [end for end in (self.least, self.most) if math.isfinite(end)]
        away = min(abs(self.value - end) for end in ends)
        if away * math.sqrt(MOST_SEEDS / self.seeds) < reach:
            return None
        return max(self.seeds + 1, math.ceil(self.seeds * (reach / away) ** 2 - 1e-9))

    @property
    def sentence(self) -> str:
        """The answer and the numbers, in one sentence."""
        return self.words if self.answer == "undecided" else f"{self.answer}: {self.words}"

    @property
    def words(self) -> str:
        """The numbers and the bound, to stand beside the answer."""
        unit = f" {self.unit}" if self.unit else ""
        seen = f"{self.name} {self.value:.2f}{interval_text(self.interval)}{unit}"
        if self.answer == "undecided":
            plural = "s" * (self.seeds != 1)
            return (
                f"{self.seeds} seed{plural} cannot decide; {self._advice}: {seen} for {self._bound}"
            )
        return f"{seen} is {'' if self.answer == 'meets' else 'not '}{self._bound}"

    def to_dict(self) -> dict[str, object]:
        """The gate, ready for JSON: NaN and infinite bounds are None."""
        found = {
            "gate": self.name,
            "unit": self.unit,
            "answer": self.answer,
            "value": self.value,
            "least": self.least,
            "most": self.most,
            "interval": self.interval,
            "seeds": self.seeds,
            "seeds_needed": self.seeds_needed,
        }
        return dict(plain(found))

    @property
    def _bound(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        if math.isinf(self.most):
            return f"at least {self.least:g}{unit}"
        return f"within ±{self.most:g}{unit}"

    @property
    def _advice(self) -> str:
        if math.isnan(self.interval[0]):
            return "an interval needs 2 or more, 3 for the noise floor"
        if self.seeds_needed is None:
            return f"so near the bound {MOST_SEEDS} may not either"
        return f"about {self.seeds_needed} can"


def gates(
    tests: Trial | Sequence[Trial],
    references: Trial | Sequence[Trial],
    *,
    min_conformance: float | Literal["floor"] | None = None,
    max_delta_throughput_mbps: float | None = None,
    max_delta_delay_ms: float | None = None,
    definition: str = "imc22",
    confidence: float = 0.95,
) -> list[Gate]:
    """A gate for each bound that is given.

    ``min_conformance`` bounds the conformance from below. "floor" asks that the conformance is less
    than the margin of equivalence, 0.1, below the noise floor: no implementation can be expected to
    lie above the floor, and none could be shown to reach it exactly. The other two bound the size
    of Δ-throughput and Δ-delay. Raises MetricError for a bound outside its range.
    """
    require_bounds(min_conformance, max_delta_throughput_mbps, max_delta_delay_ms)
    ours, theirs = (sample_trials(side, definition=definition) for side in (tests, references))
    seeds = min(len(ours), len(theirs))
    found = []
    if min_conformance is not None:
        trials = Trials.of([t.xy for t in ours], [t.xy for t in theirs], definition_of(definition))
        found.append(_of_conformance(trials, min_conformance, confidence))
    shift = _Translation(ours, theirs, definition)
    for name, unit, field, most in (
        ("Δ-throughput", "Mbit/s", "delta_throughput_mbps", max_delta_throughput_mbps),
        ("Δ-delay", "ms", "delta_delay_ms", max_delta_delay_ms),
    ):
        if most is not None:
            value = shift.estimate(field)
            interval = value.interval(confidence, -math.inf, math.inf)
            found.append(Gate(name, unit, value.value, interval, -most, most, seeds))
    return found


def answer_of(found: Sequence[Gate]) -> Answer:
    """The answer of several gates: that of the worst, in the order fails, undecided, meets."""
    answers = [gate.answer for gate in found]
    worst: tuple[Answer, ...] = ("fails", "undecided")
    return next((word for word in worst if word in answers), "meets")


def require_bounds(
    least: float | str | None, throughput_mbps: float | None, delay_ms: float | None
) -> None:
    """Raise SpecError for a bound that `gates` does not take."""
    known = least is None or least == FLOOR
    if not known and not (isinstance(least, int | float) and 0 <= least <= 1):
        shown = f"{least:g}" if isinstance(least, int | float) else least
        raise SpecError(
            f"{shown} is no conformance; give a number from 0 to 1, or {FLOOR} for the noise floor"
        )
    for name, most in (("Δ-throughput", throughput_mbps), ("Δ-delay", delay_ms)):
        if most is not None and not 0 < most < math.inf:
            raise SpecError(f"{most:g} is no bound of {name}; give a number above 0")


def _of_conformance(trials: Trials, least: float | str, confidence: float) -> Gate:
    seeds = min(trials.tests, trials.references)
    if least == FLOOR:
        gap = trials.above_floor()
        interval = gap.interval(confidence, -1.0, 1.0)
        name = "conformance minus noise floor"
        return Gate(name, "", gap.value, interval, -MARGIN, math.inf, seeds)
    value = trials.conformance()
    interval = value.interval(confidence, 0.0, 1.0)
    return Gate("conformance", "", value.value, interval, float(least), math.inf, seeds)


class _Translation:
    """The best translation of pooled envelopes, with any trials left out."""

    def __init__(
        self, tests: list[OperatingPoints], references: list[OperatingPoints], definition: str
    ) -> None:
        self._every = [*tests, *references]
        self._sizes = len(tests), len(references)
        self._definition = definition
        self._between = cache(self._compute)

    def estimate(self, field: str) -> TrialEstimate:
        """One field of the translation, with its standard error over trials."""
        if min(self._sizes) < 2:
            count = sum(self._sizes)
            whole = self._between(tuple(range(self._sizes[0])), tuple(range(self._sizes[0], count)))
            return TrialEstimate(float(getattr(whole, field)), math.nan, math.nan)

        def statistic(test: IntArray, mine: IntArray) -> float:
            return float(getattr(self._between(tuple(test), tuple(mine)), field))

        return jackknife(statistic, *self._sizes)

    def _compute(self, test: tuple[int, ...], mine: tuple[int, ...]) -> Translated:
        sides = ([self._every[i] for i in side] for side in (test, mine))
        return conformance_t(*(envelope(side, definition=self._definition) for side in sides))
