"""Assessments over seeds: noise floor, intervals and verdicts on trials of known nature."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from synthetic import synthetic_run

from qbkit.errors import MetricError
from qbkit.metrics import assess


def trials(n: int, seed: int, centre: tuple[float, float] = (40, 10), spread: float = 1.0):
    """Clouds whose centres themselves scatter from trial to trial."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(centre, (4 * spread, spread), (n, 2))
    return [np.abs(rng.normal(c, (6, 1.5), (60, 2))) for c in centres]


def test_the_same_trials_conform() -> None:
    runs = trials(5, 1)
    result = assess(runs, runs, bootstrap=50)
    assert result.conformance == 1.0
    assert result.conformance_ci[1] == 1.0
    assert (result.conformance_t, result.delta_delay_ms) == (1.0, 0.0)
    assert result.deviation == 0.0
    assert 0 < result.noise_floor < 1
    assert result.verdict.startswith("conforms: cannot be told from the reference's own noise")


@pytest.mark.parametrize("definition", ["imc22", "refined", "quicbench"])
def test_a_stack_of_its_own_differs(definition: str) -> None:
    test = trials(6, 2, centre=(80, 18))
    result = assess(test, trials(6, 3), definition, bootstrap=50)
    assert result.verdict.startswith("differs: ")
    assert result.conformance < result.noise_floor
    assert result.p_value < 0.05
    assert result.conformance_t > result.conformance
    assert result.delta_delay_ms > 20
    assert result.delta_throughput_mbps > 3


def test_another_sample_of_the_same_kind_rarely_differs() -> None:
    # The permutation test is exact: at 95 % one of 20 may differ by chance; 3 of 5 would happen
    # with a probability of 0.001.
    verdicts = [
        assess(trials(4, 100 + i), trials(4, 200 + i), bootstrap=1).verdict for i in range(5)
    ]
    assert sum(v.startswith("differs") for v in verdicts) < 3
    assert not any(v.startswith("undecided") for v in verdicts)


def test_too_few_seeds_are_undecided() -> None:
    # 3 against 3 trials: 20 deals, in pairs of swapped names, so p is at least 2 / 20 = 0.1.
    far = trials(3, 2, centre=(90, 18))
    result = assess(far, trials(3, 3), bootstrap=20)
    assert result.verdict == (
        "undecided: too few seeds to tell (3 of the test, 3 of the reference; 4 of each can tell)"
    )
    assert math.isnan(result.p_value)
    lone = assess(far[:1], trials(1, 3), bootstrap=20)
    assert lone.verdict.startswith("undecided")
    assert math.isnan(lone.noise_floor)
    assert all(map(math.isnan, (*lone.conformance_ci, *lone.noise_floor_ci)))


def test_noise_floor_compares_equal_numbers_of_trials() -> None:
    result = assess(trials(9, 4), trials(7, 5), bootstrap=10)
    assert result.split_trials == 3  # half of 7
    assert (result.seeds, result.reference_seeds) == (9, 7)
    assert assess(trials(2, 4), trials(7, 5), bootstrap=10).split_trials == 2
    # Pooling more trials covers more of the plane, so all of them agree better than splits do.
    assert result.conformance_split < result.conformance
    assert result.noise_floor_ci[0] <= result.noise_floor <= result.noise_floor_ci[1]


def test_interval_holds_the_estimate_and_grows_with_confidence() -> None:
    test, reference = trials(6, 6, spread=2.0), trials(6, 7, spread=2.0)
    wide = assess(test, reference, bootstrap=100, confidence=0.95)
    narrow = assess(test, reference, bootstrap=100, confidence=0.5)
    for result in (wide, narrow):
        low, high = result.conformance_ci
        assert low <= result.conformance <= high
        assert result.deviation_ci[0] <= result.deviation <= result.deviation_ci[1]
    assert wide.conformance_ci[0] < narrow.conformance_ci[0]


def test_runs_give_a_json_document_and_the_same_each_time() -> None:
    runs = [synthetic_run(seed=s) for s in range(4)]
    first = assess(runs, runs[::-1], flow="quic-go:cubic", reference_flow="tcp:cubic", bootstrap=20)
    again = assess(runs, runs[::-1], flow=0, reference_flow=1, bootstrap=20)
    assert first == again
    document = first.to_dict()
    assert {
        "conformance",
        "conformance_ci",
        "noise_floor",
        "conformance_t",
        "delta_throughput_mbps",
        "delta_delay_ms",
        "deviation",
        "seeds",
        "definition",
        "verdict",
    } <= set(document)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert len(document["conformance_ci"]) == 2
    lone = assess(runs[0], runs[1], bootstrap=5).to_dict()
    assert lone["noise_floor"] is None
    assert lone["conformance_ci"] == [None, None]


def test_refusals() -> None:
    with pytest.raises(MetricError, match="confidence"):
        assess(trials(2, 1), trials(2, 2), confidence=95)
    with pytest.raises(MetricError, match="bootstrap"):
        assess(trials(2, 1), trials(2, 2), bootstrap=0)
