"""Assessments over seeds: noise floor, intervals and verdicts on trials of known nature."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from synthetic import synthetic_run

from qbkit.errors import MetricError
from qbkit.metrics import assess
from qbkit.plots.drawing.captions import assessment_sentences


def trials(n: int, seed: int, centre: tuple[float, float] = (40, 10), spread: float = 1.0):
    """Clouds whose centres themselves scatter from trial to trial."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(centre, (4 * spread, spread), (n, 2))
    return [np.abs(rng.normal(c, (6, 1.5), (60, 2))) for c in centres]


def moved(points: list[np.ndarray], delay_ms: float, mbps: float) -> list[np.ndarray]:
    return [p + np.array([delay_ms, mbps]) for p in points]


def test_many_trials_of_the_same_kind_conform() -> None:
    # 24 trials whose means scatter by 2 % of the reference's: standard errors far within 10 %.
    steady = [trials(24, seed, spread=0.2) for seed in (1, 2)]
    result = assess(*steady, bootstrap=10)
    assert result.outcome == "conforms"
    assert result.verdict.lines[0] == (
        "The test is like the reference: throughput, delay and conformance lie within 10 %."
    )
    assert "within 10 % of the reference's (p = " in result.reasons
    assert result.p_equivalence < 0.05
    # Shifted by more than the margin the same trials do not, and neither within a smaller margin.
    assert assess(moved(steady[0], 0, 1.2), steady[1], bootstrap=10).outcome == "differs"
    assert assess(moved(steady[0], 5, 0), steady[1], bootstrap=10).outcome == "differs"
    assert assess(*steady, bootstrap=10, margin=0.01).outcome != "conforms"


def test_equal_means_of_another_shape_do_not_conform() -> None:
    # The same centres, but twice the spread: throughput and delay agree, envelopes do not.
    centres = [np.array([40, 10]) + c for c in np.random.default_rng(1).normal(0, 0.2, (16, 2))]
    rng = np.random.default_rng(2)
    narrow, wide = (
        [rng.normal(0, size, (60, 2)) * (6, 1.5) + c for c in centres] for size in (1, 2)
    )
    result = assess(wide, narrow, bootstrap=10)
    assert abs(result.mean_throughput_difference_mbps) < 0.3
    assert result.outcome == "differs"
    assert result.p_envelopes < 0.05


def test_no_difference_detected_names_what_was_detectable() -> None:
    result = assess(trials(5, 11), trials(5, 12), bootstrap=10)
    assert result.outcome == "no difference detected"
    assert result.verdict.lines[0] == "The test and the reference: no difference detected."
    shift = f"{result.detectable_throughput_mbps:.1f} Mbit/s"
    assert result.verdict.lines[2] == f"5 seeds detect {shift} or more."
    shift = f"5 and 5 trials detect {result.detectable_throughput_mbps:.2g} Mbit/s ("
    assert shift in result.reasons
    assert result.reasons.endswith("do not show that the test is within 10 % of the reference's")


@pytest.mark.parametrize("definition", ["imc22", "refined", "quicbench"])
def test_a_stack_of_its_own_differs(definition: str) -> None:
    test = trials(6, 2, centre=(80, 18))
    result = assess(test, trials(6, 3), definition=definition, bootstrap=50)
    assert result.outcome == "differs"
    assert result.verdict.lines[0].startswith("The test differs from the reference: it takes ")
    assert result.conformance < result.noise_floor
    # Both statistics are extreme in the same two of the 924 deals.
    assert result.p_value == result.p_envelopes == result.p_means == 2 / 924
    assert result.conformance_t > result.conformance_pooled
    assert result.delta_delay_ms > 20
    assert result.delta_throughput_mbps > 3
    meanings = result.frame().set_index("metric").meaning
    assert (
        "lies above the reference's" in meanings["Δ-throughput"]
        and "transl" not in meanings["Δ-delay"]
    )
    assert result.mean_delay_difference_ms == pytest.approx(40, abs=8)
    assert result.mean_throughput_difference_mbps == pytest.approx(8, abs=2)
    low, high = result.mean_throughput_difference_ci
    assert low < result.mean_throughput_difference_mbps < high


def test_another_sample_of_the_same_kind_rarely_differs() -> None:
    # The permutation test is exact: at 95 % one of 20 may differ by chance; 3 of 5 would happen
    # with a probability of 0.001.
    outcomes = [
        assess(trials(4, 100 + i), trials(4, 200 + i), bootstrap=1).outcome for i in range(5)
    ]
    assert outcomes.count("differs") < 3
    assert "undecided" not in outcomes


def test_too_few_seeds_are_undecided() -> None:
    # 3 against 3 trials: 20 deals, in pairs of swapped names, so p is at least 2 / 20 = 0.1.
    far = trials(3, 2, centre=(90, 18))
    result = assess(far, trials(3, 3), bootstrap=20)
    assert result.verdict.lines == ("3 seeds cannot decide; 5 can.",)
    assert result.reasons.endswith("3 and 3 trials are too few for a test")
    assert result.p_value == pytest.approx(0.1)
    assert assess(far[:1], trials(30, 3), bootstrap=1).outcome == "undecided"
    lone = assess(far[:1], trials(1, 3), bootstrap=20)
    assert lone.outcome == "undecided"
    assert math.isnan(lone.noise_floor)
    assert math.isnan(lone.p_value)
    intervals = (lone.conformance_ci, lone.noise_floor_ci, lone.mean_delay_difference_ci)
    assert all(math.isnan(end) for interval in intervals for end in interval)


def test_conformance_and_noise_floor_do_not_grow_with_the_trials() -> None:
    test, reference = trials(12, 4, spread=2), trials(12, 5, spread=2)
    few = [assess(test[i : i + 4], reference[i : i + 4], bootstrap=1) for i in (0, 4, 8)]
    many = assess(test, reference, bootstrap=1)
    for name in ("conformance", "noise_floor"):
        mean = np.mean([getattr(a, name) for a in few])
        assert getattr(many, name) == pytest.approx(mean, abs=0.08)
    # Pooling more trials covers more of the plane, so the pooled conformance does grow.
    assert many.conformance_pooled > np.mean([a.conformance_pooled for a in few])
    assert many.conformance_pooled > many.conformance
    assert many.noise_floor_ci[0] <= many.noise_floor <= many.noise_floor_ci[1]


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
        "outcome",
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
    with pytest.raises(MetricError, match="margin must be between 0 and 1, not 10"):
        assess(trials(2, 1), trials(2, 2), margin=10)
    with pytest.raises(MetricError, match="bootstrap"):
        assess(trials(2, 1), trials(2, 2), bootstrap=0)


def test_the_same_runs_on_both_sides_conform_to_nothing() -> None:
    runs = trials(24, 1, spread=0.2)
    result = assess(runs, runs, names=("tcp:cubic", "tcp:cubic"), bootstrap=10)
    assert result.outcome == "no difference detected"
    assert math.isnan(result.p_equivalence)
    assert result.verdict.lines == (
        "Both sides are the same runs, so only the noise floor counts.",
        f"Two trials of the kernel's: {result.noise_floor:.2f}, the noise floor.",
    )
    assert result.reasons.endswith("sides are equal, so only the noise floor counts")
    captions = assessment_sentences(result)
    assert captions[:2] == list(result.verdict.lines)
    assert not any("cite this number" in words for words in captions)
    # More seeds would not help: also where there are too few for a test.
    assert assess(runs[:3], runs[:2], bootstrap=1).verdict.lines[0] == result.verdict.lines[0]
    some = assess([*runs[:2], *trials(22, 2, spread=0.2)], runs, bootstrap=10)
    assert some.outcome == "no difference detected"
    assert some.warnings[0].startswith("2 of 24 trials of the test are trials of the reference")
    assert "Both sides" not in str(some.verdict)


def test_two_releases_that_behave_the_same_are_not_called_the_same_runs() -> None:
    runs, names = trials(5, 1, spread=0.2), ("quinn@0.11.8:bbr", "quinn@0.11.2:bbr")
    result = assess(runs, runs, names=names, bootstrap=10)
    assert result.outcome == "no difference detected"
    assert result.verdict.lines[0] == (
        "quinn@0.11.8's BBR and quinn@0.11.2's do the same here: their trials of a seed are equal."
    )
    some = assess([*runs[:2], *trials(3, 2, spread=0.2)], runs, names=names, bootstrap=10)
    assert some.warnings[0].endswith("which raises the conformance")
