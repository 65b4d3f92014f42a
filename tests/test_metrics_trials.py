"""Numbers of trials one by one: by hand, and the laws of exact tests."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from synthetic_cubes import settings_cube

from qbkit.metrics import conformance, conformance_map, envelope, map_sentence
from qbkit.metrics.envelopes.envelope import DEFINITIONS
from qbkit.metrics.envelopes.trials import Trials
from qbkit.metrics.maps.significance import false_discovery, p_over_settings
from qbkit.metrics.verdicts.equivalence import detectable_shifts, equivalence_p, mean_differences
from qbkit.metrics.verdicts.permutation import deal_p_values, permutation_test, smallest_p

BY_HAND = Trials(
    # Two trials of the test, three of the reference.
    np.array(
        [
            [1.0, 0.5, 0.2, 0.4, 0.6],
            [0.5, 1.0, 0.4, 0.6, 0.8],
            [0.2, 0.4, 1.0, 0.9, 0.7],
            [0.4, 0.6, 0.9, 1.0, 0.8],
            [0.6, 0.8, 0.7, 0.8, 1.0],
        ]
    ),
    np.array([[20.0, 8.0], [22.0, 9.0], [30.0, 10.0], [31.0, 11.0], [32.0, 9.0]]),
    2,
)


def of_means(means: np.ndarray, tests: int, conformance: float = 0.8) -> Trials:
    """Trials that differ in their means alone."""
    pairs = np.full((len(means), len(means)), conformance)
    np.fill_diagonal(pairs, 1)
    return Trials(pairs, means, tests)


def test_conformance_noise_floor_and_errors_by_hand() -> None:
    # (0.2 + 0.4 + 0.6 + 0.4 + 0.6 + 0.8) / 6 = 0.5; the rows' means are 0.4 and 0.6, the columns'
    # 0.3, 0.5 and 0.7: variances 0.02 / 2 and 0.04 / 3.
    value = BY_HAND.conformance()
    assert value.value == pytest.approx(0.5)
    assert value.error == pytest.approx(math.sqrt(0.02 / 2 + 0.04 / 3))
    # Left out one by one, the three reference trials leave 0.8, 0.7 and 0.9 of (0.9 + 0.7 + 0.8)/3.
    floor = BY_HAND.noise_floor()
    assert floor.value == pytest.approx(0.8)
    assert floor.error == pytest.approx(math.sqrt(2 / 3 * 0.02))
    assert BY_HAND.above_floor().value == pytest.approx(-0.3)
    assert BY_HAND.difference == pytest.approx([-10, -1.5])


def test_trials_of_points_give_the_conformance_of_single_trials() -> None:
    rng = np.random.default_rng(0)
    tests, references = ([rng.normal((30, 10), 1, (40, 2)) for _ in range(3)] for _ in range(2))
    found = Trials.of(tests, references, DEFINITIONS["imc22"])
    one = [[conformance(envelope(a), envelope(b)) for b in references] for a in tests]
    assert found.pairs[:3, 3:] == pytest.approx(np.array(one))
    assert found.conformance().value == pytest.approx(np.mean(one))
    assert found.means[4] == pytest.approx(references[1].mean(axis=0))


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    # Trials are numbers a; the conformance of two is exp(-|a - b|). Truth by a large sample.
    rng = np.random.default_rng(3)
    a, b = rng.normal(0.5, 0.5, 4000), rng.normal(0, 0.5, 4000)
    truth = np.exp(-np.abs(a - b)).mean()
    floor = np.exp(-np.abs(b - rng.permutation(b))).mean()
    held = []
    for _ in range(400):
        place = np.concatenate([rng.normal(0.5, 0.5, 5), rng.normal(0, 0.5, 5)])
        found = Trials(np.exp(-np.abs(place[:, None] - place)), np.zeros((10, 2)), 5)
        ends = [e.interval(0.95, 0, 1) for e in (found.conformance(), found.noise_floor())]
        held.append([e[0] <= t <= e[1] for e, t in zip(ends, (truth, floor), strict=True)])
    # 400 draws of 0.95 have a standard deviation of 0.011.
    assert np.mean(held, axis=0) == pytest.approx([0.95, 0.95], abs=0.045)


@given(
    tests=st.integers(2, 5),
    references=st.integers(2, 5),
    seed=st.integers(0, 2**32 - 1),
    coarse=st.booleans(),
)
@settings(deadline=None, max_examples=40)
def test_the_level_is_exact_whatever_the_trials(
    tests: int, references: int, seed: int, coarse: bool
) -> None:
    # Under the null hypothesis every deal is equally likely, so p <= a must hold for at most the
    # part a of them, for every a; ties (coarse numbers) may only lower it.
    rng = np.random.default_rng(seed)
    means = rng.standard_cauchy((tests + references, 2))
    pairs = rng.uniform(size=(tests + references,) * 2)
    pairs = (pairs + pairs.T) / 2
    if coarse:
        means, pairs = np.round(means), np.round(pairs, 1)
    for p in deal_p_values(Trials(pairs, means, tests)):
        assert len(p) == math.comb(tests + references, tests)
        for level in np.unique(p):
            assert (p <= level).mean() <= level + 1e-12
        assert p.min() >= smallest_p(tests, references) - 1e-12


def test_the_means_statistic_orders_deals_as_hotellings_t2() -> None:
    rng = np.random.default_rng(5)
    means = rng.normal(size=(9, 2)) @ [[1, 0.8], [0, 0.5]] * (40, 2)
    t2 = []
    for chosen in itertools.combinations(range(9), 4):
        inside = np.isin(np.arange(9), chosen)
        a, b = means[inside], means[~inside]
        pooled = (3 * np.cov(a.T) + 4 * np.cov(b.T)) / 7
        gap = a.mean(axis=0) - b.mean(axis=0)
        t2.append(gap @ np.linalg.solve(pooled, gap))
    p = deal_p_values(of_means(means, 4))[2]
    assert stats.spearmanr(t2, -p).statistic == pytest.approx(1)


def test_a_shift_is_found_and_a_constant_axis_is_no_error() -> None:
    means = np.array([[1.0, 5], [2, 5], [1.5, 5], [3, 5], [11, 5], [12, 5], [13, 5], [11.5, 5]])
    found = permutation_test(of_means(means, 4))
    assert found.means == pytest.approx(2 / 70)
    assert found.envelopes == 1  # all conformances are equal: every deal is a tie
    assert found.p == pytest.approx(2 / 70)
    assert math.isnan(permutation_test(of_means(means, 1)).p)


def test_many_trials_are_dealt_at_random_and_the_same_each_time() -> None:
    means = np.random.default_rng(1).normal(size=(20, 2))
    means[:10] += 30
    one, again = (permutation_test(of_means(means, 10)) for _ in range(2))
    assert one == again
    assert one.means < 0.001  # the observed deal, and swaps of it if any are drawn


def test_mean_differences_are_those_of_welchs_test() -> None:
    delay, throughput = mean_differences(BY_HAND)
    test, reference = BY_HAND.means[:2, 1], BY_HAND.means[2:, 1]
    known = stats.ttest_ind(test, reference, equal_var=False).confidence_interval(0.95)
    found = throughput.interval(0.95, -math.inf, math.inf)
    assert found == pytest.approx((known.low, known.high))
    assert (delay.value, throughput.value) == pytest.approx((-10, -1.5))


@pytest.mark.slow
@pytest.mark.parametrize("edge", [(1.1, 1.0), (0.9, 1.0), (1.0, 1.1), (1.0, 0.9)])
def test_equivalence_keeps_its_level_at_the_edge_of_the_margin(edge: tuple[float, float]) -> None:
    # At exactly 10 % more or less of one quantity at most 5 % may pass; noise is 3 % a trial.
    rng = np.random.default_rng(7)
    passed = 0
    for _ in range(600):
        reference = rng.normal((40, 10), (1.2, 0.3), (5, 2))
        test = rng.normal(np.array([40, 10]) * edge, (1.2, 0.3), (5, 2))
        passed += equivalence_p(of_means(np.concatenate([test, reference]), 5)) <= 0.05
    assert passed / 600 <= 0.05 + 3 * 0.009  # three standard deviations of 600 draws
    assert passed / 600 > 0.01


def test_equivalence_needs_the_conformance_too() -> None:
    means = np.random.default_rng(8).normal((40, 10), (0.1, 0.02), (10, 2))
    alike = of_means(means, 5)
    assert equivalence_p(alike) < 0.001
    pairs = alike.pairs.copy()
    pairs[:5, 5:] = pairs[5:, :5] = 0.6  # 0.2 below the floor of 0.8
    assert equivalence_p(Trials(pairs, means, 5)) == 1.0


def test_what_is_called_detectable_is_detected_four_times_in_five() -> None:
    rng = np.random.default_rng(9)
    spread = of_means(rng.normal((40, 10), (2, 0.5), (400, 2)), 200)
    # The spread of many trials, at the size of few: 5 against 5.
    wide = np.concatenate([spread.means[:5], spread.means[200:205]])
    scale = spread.means.std(axis=0, ddof=1) / np.sqrt(
        (wide[:5].var(axis=0, ddof=1) + wide[5:].var(axis=0, ddof=1)) / 2
    )
    shift_mbps = detectable_shifts(of_means(wide, 5), 0.05)[1] * scale[1]
    found = 0
    for _ in range(300):
        means = rng.normal((40, 10), (2, 0.5), (10, 2))
        means[:5, 1] += shift_mbps
        found += permutation_test(of_means(means, 5)).means <= 0.05
    assert found / 300 == pytest.approx(0.8, abs=0.07)  # three standard deviations


def test_false_discoveries_by_hand() -> None:
    # Benjamini and Hochberg: p * 4 / rank, made monotone from the largest down.
    p = np.array([[0.01, np.nan, 0.04], [0.03, 0.5, np.nan]])
    known = np.array([[0.04, np.nan, 0.16 / 3], [0.16 / 3, 0.5, np.nan]])
    assert false_discovery(p) == pytest.approx(known, nan_ok=True)
    assert np.isnan(false_discovery(np.full(3, np.nan))).all()


def test_settings_together_by_hand() -> None:
    # Each setting: ten deals, p = 0.1, 0.2, ... 1; the observed one first. Two such settings at
    # their least: one of 100 deals is as extreme.
    each = np.arange(1, 11) / 10
    assert p_over_settings([each, each]) == pytest.approx(0.01, abs=0.003)
    assert p_over_settings([each]) == pytest.approx(0.1, abs=0.01)
    assert p_over_settings([each[::-1]] * 5) == 1.0
    assert math.isnan(p_over_settings([]))


def test_what_a_map_says_of_three_and_of_five_trials() -> None:
    three = conformance_map(settings_cube(["tcp:cubic", "a:cubic"], seeds=3), "tcp:cubic")
    assert map_sentence(three) == (
        "Too few seeds for a claim on any single cell: at 3 against 3 trials p is at least 0.1 (4 "
        "of each are needed). Over all settings together, 1 of 1 implementations differ from "
        "tcp:cubic (false discovery rate 5 %)."
    )
    five = conformance_map(settings_cube(["tcp:cubic", "a:cubic"], seeds=5), "tcp:cubic")
    assert map_sentence(five).startswith(
        "4 of 4 cells differ (false discovery rate 5 %; at 5 against 5 trials, at least 1 must "
        "differ for a claim)."
    )
