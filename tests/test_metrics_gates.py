"""Gates: three answers, and about how many seeds an undecided one needs."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from qbkit.errors import SpecError
from qbkit.metrics import Gate, answer_of, assess, gates

INF, NAN = math.inf, math.nan


def gate(value: float, interval: tuple[float, float], least: float, most: float = INF) -> Gate:
    return Gate("conformance", "", value, interval, least, most, 5)


def cloud(n: int, seed: int, mbps: float, scatter: float = 0.3) -> list[np.ndarray]:
    """Trials whose mean throughput scatters by ``scatter`` Mbit/s."""
    rng = np.random.default_rng(seed)
    centres = rng.normal((40, mbps), (1, scatter), (n, 2))
    return [rng.normal(c, (6, 1.5), (120, 2)) for c in centres]


@pytest.mark.parametrize(
    ("value", "interval", "bounds", "answer", "seeds"),
    [
        (0.75, (0.60, 0.90), (0.6, INF), "meets", None),
        (0.40, (0.30, 0.59), (0.6, INF), "fails", None),
        # Half-width 0.15, 0.05 from the bound: nine times the five seeds.
        (0.65, (0.50, 0.80), (0.6, INF), "undecided", 45),
        (0.55, (0.40, 0.70), (0.6, INF), "undecided", 45),
        # Cut off at 1; the whole half-width is 0.2: 5 × (0.2 / 0.1)² = 20.
        (0.95, (0.75, 1.00), (0.85, INF), "undecided", 20),
        (0.60, (0.45, 0.75), (0.6, INF), "undecided", None),  # at the bound
        (0.57, (0.42, 0.72), (0.6, INF), "undecided", None),  # near it: 5 × (0.15 / 0.03)² = 125
        (0.75, (NAN, NAN), (0.1, INF), "undecided", None),
        (0.5, (-0.4, 1.4), (-1.5, 1.5), "meets", None),
        (-2.5, (-3.1, -1.9), (-1.5, 1.5), "fails", None),
        # 0.5 from the nearer bound, half-width 1: 5 × (1 / 0.5)² = 20.
        (1.0, (0.0, 2.0), (-1.5, 1.5), "undecided", 20),
        (0.0, (-1.6, 1.6), (-1.5, 1.5), "undecided", 6),
    ],
)
def test_the_whole_interval_decides(value, interval, bounds, answer, seeds):
    found = gate(value, interval, *bounds)
    assert (found.answer, found.seeds_needed) == (answer, seeds)
    start = (
        "5 seeds cannot decide; " if answer == "undecided" else f"{answer}: conformance {value:.2f}"
    )
    assert found.sentence.startswith(start)
    assert f"conformance {value:.2f}" in found.sentence
    assert (f"5 seeds cannot decide; about {seeds} can: " in found.sentence) == bool(seeds)
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_worst_gate_answers():
    met, failed = gate(0.9, (0.8, 1), 0.6), gate(0.3, (0.2, 0.4), 0.6)
    open_ = gate(0.6, (0.5, 0.7), 0.6)
    assert answer_of([]) == "meets"
    assert answer_of([met, open_]) == "undecided"
    assert answer_of([open_, failed, met]) == "fails"


def test_gates_agree_with_the_assessment():
    test, reference = cloud(6, 1, 6), cloud(6, 2, 10)
    seen = assess(test, reference, bootstrap=1)
    low, floor, shift, delay = (
        gates(test, reference, **{name: bound})[0]
        for name, bound in (
            ("min_conformance", 0.99),
            ("min_conformance", "floor"),
            ("max_delta_throughput_mbps", 8),
            ("max_delta_delay_ms", 20),
        )
    )
    assert (low.value, low.interval) == (seen.conformance, seen.conformance_ci)
    assert (low.answer, floor.answer) == ("fails", "fails")
    assert floor.value == pytest.approx(seen.conformance - seen.noise_floor)
    assert (shift.value, delay.value) == (seen.delta_throughput_mbps, seen.delta_delay_ms)
    assert shift.interval[0] < -4 < shift.interval[1]  # the truth
    assert (shift.answer, delay.answer) == ("meets", "meets")


def test_a_reference_meets_its_own_floor_with_enough_trials():
    (found,) = gates(cloud(20, 3, 10), cloud(20, 4, 10), min_conformance="floor")
    assert (found.answer, found.least) == ("meets", -0.1)
    (lone,) = gates(cloud(1, 3, 10), cloud(1, 4, 10), max_delta_delay_ms=1)
    assert lone.answer == "undecided"
    assert lone.sentence.startswith("1 seed cannot decide; an interval needs 2 or more")


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ({"min_conformance": 60}, "60 is no conformance; give a number from 0 to 1, or floor"),
        ({"min_conformance": -0.1}, "-0.1 is no conformance"),
        ({"min_conformance": NAN}, "nan is no conformance"),
        ({"max_delta_throughput_mbps": 0}, "0 is no bound of Δ-throughput; give a number above 0"),
        ({"max_delta_delay_ms": INF}, "inf is no bound of Δ-delay"),
    ],
)
def test_impossible_bounds(bound, words):
    with pytest.raises(SpecError, match=words):
        gates(cloud(2, 1, 8), cloud(2, 2, 8), **bound)


def test_short_trials_are_a_warning():
    short = [p[:60] for p in cloud(4, 1, 8)]
    (warning,) = assess(short, cloud(4, 2, 8), bootstrap=1).warnings
    assert warning.startswith("trials are short: 60 operating points")
    assert assess(cloud(4, 1, 8), cloud(4, 2, 8), bootstrap=1).warnings == ()
