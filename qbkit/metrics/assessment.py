"""Does a stack conform? Conformance over many seeds, beside the reference's own noise floor.

A deterministic run is one sample of a chaotic system, so no number comes from one run:

- *Interval*: whole trials of both sides are drawn with replacement; percentiles of the
  conformance of the draws. A draw repeats trials and so covers less of the plane, which lowers
  its conformance a little; the interval is therefore widened to hold the estimate itself.
- *Noise floor*: the reference against itself. Its trials are split at random into two disjoint
  sets of h trials (half of them, or as many as the test has, if fewer). Conformance grows with
  the number of pooled trials, so the floor must not be compared with the conformance of all
  trials: ``conformance_split`` is its counterpart, h random trials of the test against the same h
  of the reference.
- *Verdict*: a permutation test. If the test were the reference, it would not matter which trials
  bear which name. So the names are dealt anew many times (set sizes stay as they are, hence this
  is fair by construction), and p is the part of the deals whose conformance is not above the
  observed one. "differs" asks for a p of at most 1 - confidence and for a ``conformance_split``
  below the noise floor. With few trials there are so few deals that no p could be small:
  "undecided".

``quicbench`` looks at one trial a side. There h is 1, the permutation test takes the mean
conformance over all pairs of a test's and a reference's trial, and ``conformance`` alone is of the
first two trials, as in QUICbench.

Clusters of ``refined`` are found once on all points (per side, and on both sides together for
the permutation test) and kept through the resampling.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property

import numpy as np

from qbkit.errors import MetricError
from qbkit.metrics.conformance import conformance, conformance_t, deviation
from qbkit.metrics.envelope import (
    Definition,
    Envelope,
    Trial,
    definition_of,
    envelope,
    join,
    region,
    sample_trials,
)
from qbkit.metrics.flows import FloatArray, IntArray

SPLITS = 100
PERMUTATIONS = 499
NAN_INTERVAL = (math.nan, math.nan)
KEPT_ENVELOPES = 512
"""Few trials are drawn in few ways (six with replacement: 462), each of them many times. More
trials hardly ever repeat a draw: their envelopes would only fill the memory."""


@dataclass(frozen=True)
class Assessment:
    """A test implementation against its reference, over several seeds."""

    definition: str
    conformance: float
    """Of all trials of the test with all of the reference."""
    conformance_ci: tuple[float, float]
    """Bootstrap interval over seeds; NaN where a side has a single trial."""
    noise_floor: float
    """Mean conformance of the reference with itself at ``split_trials`` a side; NaN below 2."""
    noise_floor_ci: tuple[float, float]
    """Spread of that over the splits; NaN below 3 reference trials."""
    conformance_split: float
    """Mean conformance of the test with the reference at the noise floor's set sizes."""
    split_trials: int
    """Trials on each side in the noise floor."""
    conformance_t: float
    """After the best translation of the test."""
    delta_throughput_mbps: float
    """Test minus reference, by that translation."""
    delta_delay_ms: float
    """Test minus reference, by that translation."""
    deviation: float
    deviation_ci: tuple[float, float]
    p_value: float
    """Of the permutation test; NaN where it was not made."""
    confidence: float
    seeds: int
    """Trials of the test."""
    reference_seeds: int
    verdict: str
    """One sentence: conforms, differs or undecided, with the numbers."""

    def to_dict(self) -> dict[str, object]:
        """The fields, ready for JSON: intervals are lists, NaN is None."""
        return {key: _jsonable(value) for key, value in asdict(self).items()}


@dataclass(frozen=True, eq=False)
class _Side:
    """Points (n_i, 2) and their clusters of each trial of one side."""

    points: list[FloatArray]
    cluster: list[IntArray]
    rule: Definition

    @classmethod
    def of(cls, points: list[FloatArray], rule: Definition) -> _Side:
        # Where trials are not pooled each has clusters of its own; today that is always one.
        pooled = rule.cluster(join(points))
        ends = np.cumsum([len(p) for p in points])[:-1]
        return cls([np.asfortranarray(p) for p in points], np.split(pooled, ends), rule)

    def envelope(self, chosen: IntArray) -> Envelope:
        """Envelope of the chosen trials, in any order; a trial may be chosen more than once."""
        chosen = chosen if self.rule.pools else chosen[:1]
        return self._kept(tuple(sorted(chosen.tolist())))

    @cached_property
    def _kept(self) -> Callable[[tuple[int, ...]], Envelope]:
        trials = len(self.points)
        ways = math.comb(2 * trials - 1, trials)
        return cache(self._made) if ways <= KEPT_ENVELOPES else self._made

    def _made(self, chosen: tuple[int, ...]) -> Envelope:
        points = join([self.points[i] for i in chosen])
        cluster = np.concatenate([self.cluster[i] for i in chosen])
        kept, hulls = region(points, cluster, self.rule)
        trial = np.repeat(chosen, [len(self.points[i]) for i in chosen])
        unknown = np.full(len(points), np.nan)
        return Envelope(
            self.rule.name, points, trial, unknown, cluster, kept, hulls, points.mean(axis=0)
        )


def assess(
    tests: Trial | Sequence[Trial],
    reference: Trial | Sequence[Trial],
    definition: str = "imc22",
    *,
    flow: str | int = 0,
    reference_flow: str | int = 0,
    confidence: float = 0.95,
    bootstrap: int = 1000,
    rng_seed: int = 0,
) -> Assessment:
    """Assess trials of a test (one per seed) against trials of its reference.

    ``flow`` and ``reference_flow`` choose the flow of run datasets. How interval, noise floor
    and verdict are made is in this module's text. Equal arguments give equal results. Raises
    MetricError as `envelope` does, and for a confidence outside (0, 1) or a bootstrap below 1.
    """
    if not 0 < confidence < 1:
        raise MetricError(f"confidence must lie between 0 and 1, not {confidence:g}")
    if bootstrap < 1:
        raise MetricError(f"bootstrap must be 1 draw or more, not {bootstrap}")
    rule = definition_of(definition)
    test_trials = sample_trials(tests, definition, flow=flow)
    reference_trials = sample_trials(reference, definition, flow=reference_flow)
    whole_test = envelope(test_trials, definition)
    whole_reference = envelope(reference_trials, definition)
    test = _Side.of([t.xy for t in test_trials], rule)
    ours = _Side.of([t.xy for t in reference_trials], rule)
    both = _Side.of(test.points + ours.points, rule)
    rng = np.random.default_rng(rng_seed)
    value = conformance(whole_test, whole_reference)
    apart = deviation(whole_test, whole_reference)
    translated = conformance_t(whole_test, whole_reference)
    draws = _bootstrap(test, ours, bootstrap, rng)
    size = min(len(ours.points) // 2, len(test.points) if rule.pools else 1)
    floor, split = _noise_floor(test, ours, size, rng)
    p_value = _permutation_p(both, len(test.points), 1 - confidence, rng)
    floor_ci = _interval(floor, confidence) if len(ours.points) > 2 else NAN_INTERVAL
    floor_mean = float(floor.mean()) if len(floor) else math.nan
    split_mean = float(split.mean()) if len(split) else math.nan
    return Assessment(
        definition=definition,
        conformance=value,
        conformance_ci=_holding(_interval(draws[:, 0], confidence), value),
        noise_floor=floor_mean,
        noise_floor_ci=floor_ci,
        conformance_split=split_mean,
        split_trials=size,
        conformance_t=translated.conformance,
        delta_throughput_mbps=translated.delta_throughput_mbps,
        delta_delay_ms=translated.delta_delay_ms,
        deviation=apart,
        deviation_ci=_holding(_interval(draws[:, 1], confidence), apart),
        p_value=p_value,
        confidence=confidence,
        seeds=len(test.points),
        reference_seeds=len(ours.points),
        verdict=_verdict(p_value, 1 - confidence, split_mean, floor_mean, floor_ci, test, ours),
    )


def _bootstrap(test: _Side, reference: _Side, draws: int, rng: np.random.Generator) -> FloatArray:
    """(draws, 2): conformance and deviation of resampled trials; no rows for a lone trial."""
    n, m = len(test.points), len(reference.points)
    if min(n, m) < 2:
        return np.zeros((0, 2))
    rows = []
    for _ in range(draws):
        left = test.envelope(rng.integers(0, n, n))
        right = reference.envelope(rng.integers(0, m, m))
        rows.append((conformance(left, right), deviation(left, right)))
    return np.array(rows)


def _noise_floor(
    test: _Side, reference: _Side, size: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Conformance of reference with reference, and of test with reference, at equal sizes."""
    floor, split = [], []
    for _ in range(SPLITS if size else 0):
        dealt = rng.permutation(len(reference.points))
        half = reference.envelope(dealt[:size])
        floor.append(conformance(reference.envelope(dealt[size : 2 * size]), half))
        chosen = rng.permutation(len(test.points))[:size]
        split.append(conformance(test.envelope(chosen), half))
    return np.array(floor), np.array(split)


def _permutation_p(both: _Side, tests: int, level: float, rng: np.random.Generator) -> float:
    """p of the observed conformance among random deals of the names; NaN where p cannot be small.

    ``both`` holds the test's trials first.
    """
    trials = len(both.points)
    if _smallest_p(tests, trials - tests) > level or min(tests, trials - tests) < 2:
        return math.nan
    pairs = None if both.rule.pools else _pairwise(both)
    everybody = np.arange(trials)

    @cache  # few trials are dealt in few ways
    def dealt(chosen: frozenset[int]) -> float:
        mine = np.array(sorted(chosen))
        others = np.setdiff1d(everybody, mine)
        if pairs is not None:
            return float(pairs[np.ix_(mine, others)].mean())
        return conformance(both.envelope(mine), both.envelope(others))

    deals = [frozenset(rng.permutation(trials)[:tests].tolist()) for _ in range(PERMUTATIONS)]
    observed = dealt(frozenset(range(tests)))
    not_above = sum(dealt(deal) <= observed + 1e-12 for deal in deals)
    return (1 + not_above) / (1 + PERMUTATIONS)


def _pairwise(side: _Side) -> FloatArray:
    """(n, n): conformance of each single trial with each other one."""
    single = [side.envelope(np.array([i])) for i in range(len(side.points))]
    value = np.ones((len(single), len(single)))
    for i, j in itertools.combinations(range(len(single)), 2):
        value[i, j] = value[j, i] = conformance(single[i], single[j])
    return value


def _smallest_p(tests: int, references: int) -> float:
    """The least p that deals of so many trials can give; equal sides may swap names."""
    return (2 if tests == references else 1) / math.comb(tests + references, tests)


def _verdict(
    p_value: float,
    level: float,
    split: float,
    floor: float,
    floor_ci: tuple[float, float],
    test: _Side,
    reference: _Side,
) -> str:
    n, m = len(test.points), len(reference.points)
    if math.isnan(p_value):
        enough = next(k for k in itertools.count(2) if _smallest_p(k, k) <= level)
        return (
            f"undecided: too few seeds to tell ({n} of the test, {m} of the reference; {enough} "
            f"of each can tell)"
        )
    spread = "" if math.isnan(floor_ci[0]) else f" [{floor_ci[0]:.2f}, {floor_ci[1]:.2f}]"
    numbers = (
        f"conformance {split:.2f} where the reference with itself has {floor:.2f}{spread} at the "
        f"same number of trials, p = {p_value:.3f}"
    )
    if p_value <= level and split < floor:
        return f"differs: {numbers}"
    return f"conforms: cannot be told from the reference's own noise floor ({numbers})"


def _interval(values: FloatArray, confidence: float) -> tuple[float, float]:
    if not len(values):
        return NAN_INTERVAL
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _holding(interval: tuple[float, float], value: float) -> tuple[float, float]:
    if math.isnan(interval[0]):
        return interval
    return min(interval[0], value), max(interval[1], value)


def _jsonable(value: object) -> object:
    if isinstance(value, tuple):
        return [_jsonable(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
