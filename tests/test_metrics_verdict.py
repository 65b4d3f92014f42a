"""Verdicts in words: the right words for each outcome, and never more than three lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import qbkit as qb
from qbkit.metrics import assess
from qbkit.metrics.parameters.difference import CLAUSES, Difference
from qbkit.metrics.parameters.effects import EFFECTS
from qbkit.metrics.parameters.estimates import Estimate
from qbkit.metrics.verdicts.words import Verdict, spoken, spoken_beside, study_verdict
from qbkit.spec import Flow
from qbkit.store.faults import fault_line, known_faults

CASES = Path(__file__).parents[1] / "data/cases"
NAMES = ("quiche:cubic", "tcp:cubic")


def trials(n: int, seed: int, mbps: float = 10, *, ms: float = 40, scatter: float = 1):
    """Clouds whose mean throughput scatters by ``scatter`` Mbit/s."""
    rng = np.random.default_rng(seed)
    centres = rng.normal((ms, mbps), (1, scatter), (n, 2))
    return [np.abs(rng.normal(c, (6, 1.5), (120, 2))) for c in centres]


@pytest.mark.parametrize(
    ("test", "reference", "kind", "first"),
    [
        (
            trials(6, 1, 16),
            trials(6, 2),
            "more",
            "quiche's CUBIC differs from the kernel's: it takes {mbps:.1f} Mbit/s more.",
        ),
        (
            trials(6, 1, 5),
            trials(6, 2),
            "less",
            "quiche's CUBIC differs from the kernel's: it takes {mbps:.1f} Mbit/s less.",
        ),
        (
            trials(6, 1, ms=60),
            trials(6, 2),
            "other",
            "quiche's CUBIC differs from the kernel's: its packets wait {ms:.1f} ms longer.",
        ),
        (
            trials(6, 3, scatter=0.5),
            trials(6, 2, scatter=0.5),
            "open",
            "quiche's CUBIC and the kernel's: no difference detected.",
        ),
        (
            trials(24, 1, scatter=0.2),
            trials(24, 2, scatter=0.2),
            "like",
            "quiche's CUBIC is like the kernel's: throughput, delay and conformance lie within "
            "10 %.",
        ),
        (trials(3, 1, 16), trials(3, 2), "open", "3 seeds cannot decide; 5 can."),
        (trials(1, 1), trials(1, 2), "open", "1 seed cannot decide; 5 can."),
        (trials(2, 1), trials(4, 2), "open", "2 and 4 seeds cannot decide; 5 of each can."),
    ],
)
def test_the_first_line_says_what_differs(test, reference, kind, first):
    found = assess(test, reference, names=NAMES, bootstrap=1)
    verdict = found.verdict
    sizes = {
        "mbps": abs(found.mean_throughput_difference_mbps),
        "ms": abs(found.mean_delay_difference_ms),
    }
    assert (verdict.kind, verdict.lines[0]) == (kind, first.format(**sizes))
    assert len(verdict.lines) <= 3
    assert all(len(line) <= 100 for line in verdict.lines)
    if "cannot" not in first:
        assert verdict.lines[1] == (
            f"Conformance {found.conformance:.2f} (two trials of the kernel's: "
            f"{found.noise_floor:.2f})."
        )
    assert "p =" not in str(verdict)


def test_what_cannot_be_decided_has_no_cause():
    found = assess(trials(3, 1, 16), trials(3, 2), names=NAMES, bootstrap=1)
    first, second = study_verdict(found, "Most likely because it does not pace.").lines
    assert first == "3 seeds cannot decide; 5 can."
    assert second == (
        "No cause is named before a difference is shown; the details have what differs."
    )


def test_trials_that_only_detect_a_large_difference_cannot_decide():
    # Means between 2 and 18 Mbit/s: five trials would detect a difference of about 10 only.
    wide = [trials(5, seed, scatter=4.5) for seed in (5, 6)]
    found = assess(*wide, names=NAMES, bootstrap=1)
    assert found.p_value > 0.05
    assert found.detectable_throughput_mbps > 5
    assert found.outcome == "undecided"
    assert f"5 seeds cannot decide; about {found.seeds_needed} can." in str(found.verdict)
    assert 6 <= found.seeds_needed <= 60
    # With as many trials of that scatter a difference of half the mean would be detected.
    more = assess(*(trials(found.seeds_needed, s, scatter=4.5) for s in (7, 8)), bootstrap=1)
    assert more.detectable_throughput_mbps == pytest.approx(5, abs=1.5)


def test_a_reference_whose_trials_are_all_different_decides_nothing():
    # Far apart, each trial narrow: no two resemble each other, on either side.
    rng = np.random.default_rng(3)
    apart = [
        [rng.normal((20 + 9 * i, 6 + i), 0.05, (120, 2)) for i in order]
        for order in ((0, 2, 4, 6, 8), (1, 3, 5, 7, 9))
    ]
    found = assess(*apart, names=NAMES, bootstrap=1)
    assert (found.conformance, found.noise_floor) == (0, 0)
    assert found.outcome == "undecided"
    assert "no difference" not in str(found.verdict)
    assert str(found.verdict) == (
        "5 seeds cannot decide: two trials of the kernel's do not resemble each other; run longer."
    )


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "quiche:cubic": "quiche's CUBIC beside the kernel's",
        "quinn@0.8.4:cubic": "quinn@0.8.4's CUBIC beside the kernel's",
        "quinn:bbr": "quinn's BBR beside the kernel's CUBIC",
        "openssl:newreno": "openssl's NewReno beside the kernel's CUBIC",
        "quinn:cubic?pacing=false": "quinn's CUBIC with pacing=false beside the kernel's",
        "my controller": "my controller beside the kernel's CUBIC",
    }.items(),
)
def test_names_as_one_says_them(name, words):
    assert f"{spoken(name)} beside {spoken_beside('tcp:cubic', name)}" == words


def test_html_has_one_word_in_bold_and_nothing_of_a_name():
    hostile = Verdict("more", ("<b>x</b> differs from y: it takes 1.0 Mbit/s more.",), "differs")
    assert hostile.html.count("<strong>differs</strong>") == 1
    assert "<b>" not in hostile.html


@pytest.mark.parametrize(
    ("case", "lines"),
    [
        (
            "quiche-now",
            (
                "quiche's CUBIC differs from the kernel's: it takes 9.1 Mbit/s more.",
                "Conformance 0.08 (two trials of the kernel's: 0.59).",
                "The first of 2 known faults, cubic.rs:232: it takes a congestion event for "
                "spurious, and undoes the reduction, whenever fewer than 20 % of the window were "
                "lost.",
            ),
        ),
        (
            "ack-10",
            (
                "quinn's NewReno with ack_every_packets=10 differs from the kernel's Reno: it "
                "takes 3.9 Mbit/s less.",
                "Conformance 0.34 (two trials of the kernel's Reno: 0.85).",
            ),
        ),
        (
            "quiche-0.7",
            (
                "quiche-0.7's CUBIC and the kernel's: no difference detected.",
                "Conformance 0.65 (two trials of the kernel's: 0.59).",
                "4 seeds detect 4.0 Mbit/s or more.",
            ),
        ),
    ],
)
def test_published_studies(case, lines):
    assert qb.load_study(CASES / case).verdict().lines == lines


@pytest.mark.parametrize(
    ("case", "cause"),
    [
        (
            "google-cubic",
            "Most likely because a loss leaves 0.85 of its window, not 0.7, and its slow start is "
            "paced, not in bursts.",
        ),
        (
            "ack-10",
            "Most likely because its receiver sends an ACK for every 10 packets, not 2.",
        ),
        (
            "bbr-120-explained",
            "Most likely because it paces above the delivery rate and keeps a queue of 0.94 BDP, "
            "not 0.017.",
        ),
    ],
)
def test_the_cause_is_the_last_line(case, cause):
    found = qb.load_explanation(CASES / case)
    assert found.verdict.lines[-1] == cause
    assert len(found.verdict.lines) == 3
    assert found.to_dict()["verdict"] == str(found.verdict)


def test_a_wait_of_less_than_a_hundredth_of_a_millisecond_is_none():
    sides = [Estimate("receiver_wait_ms", value) for value in (25.0, 0.00077)]
    waits, none = (Difference("receiver_wait_ms", *s, *[0.0] * 4) for s in (sides, sides[::-1]))
    assert waits.clause == "its receiver acknowledges after 25 ms"
    assert none.clause == "its receiver acknowledges after 0 ms, not 25"


def test_every_cause_has_a_clause():
    assert set(CLAUSES) == set(EFFECTS)


def test_the_known_faults_of_a_flow():
    assert [f.source for f in known_faults("quinn:bbr?initial_window_packets=20")][:1] == [
        "bw_estimation.rs:56, 65"
    ]
    assert known_faults(Flow("quinn@0.8.4:bbr")) == known_faults("tcp:cubic") == []
    (fault,) = known_faults("ngtcp2:cubic")
    assert fault_line([fault]) == (
        "A known fault, ngtcp2_cc.c:457: K, after which the window is back where the loss was, is "
        "a hundredth of what RFC 9438, 4.2, has."
    )


def test_a_fault_is_known_even_where_the_seeds_cannot_decide():
    found = assess(trials(3, 1, 16), trials(3, 2), names=NAMES, bootstrap=1)
    verdict = study_verdict(found, fault="A known fault, a.rs:1: it never paces.")
    assert verdict.lines == (
        "3 seeds cannot decide; 5 can.",
        "A known fault, a.rs:1: it never paces.",
    )


@pytest.mark.parametrize(
    ("n", "scatter", "last"), [(6, 0.5, "6 seeds detect"), (24, 0.2, "Confor")]
)
def test_a_fault_is_no_reason_where_no_difference_is_found(n, scatter, last):
    sides = (trials(n, seed, scatter=scatter) for seed in (3 if n == 6 else 1, 2))
    found = assess(*sides, names=NAMES, bootstrap=1)
    words = {"fault": "A known fault, a.rs:1: it never paces.", "remedied": "; without it 0.8"}
    verdict = study_verdict(found, **words)
    assert verdict == study_verdict(found) and verdict.lines[-1].startswith(last)
