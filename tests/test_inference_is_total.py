"""For any link and sender, the inference may return "unknown", but it must not raise."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simulated import simulate
from synthetic import synthetic_run

import qbkit as qb
from qbkit.errors import MetricError, SpecError
from qbkit.metrics import infer
from qbkit.metrics.parameters import PARAMETERS, Estimate, Parameters, compare
from qbkit.metrics.parameters.ranges import range_of
from qbkit.metrics.parameters.relations import RECEIVERS
from qbkit.studies.cause_words import accounts_text, share_text
from qbkit.studies.explanation import observed_ln_ratio

CASES = Path(__file__).parent.parent / "data/cases"
PATIENT = [HealthCheck.too_slow]
ENDS = st.sampled_from([math.nan, -1.0, 0.0, 1e-12, 0.5, 0.99, 1.0, 1.5, 1e6])
WORDS = {"growth": ["", "linear", "cubic", "probing"], "pacing": ["", "paced", "bursts"],
         "slow_start_exit": ["", "loss", "delay"]}  # fmt: skip


def sound(found: Parameters) -> None:
    """All parameters are there, each unknown or possible, and within its interval."""
    assert list(found) == list(PARAMETERS)
    json.dumps(found.to_dict(), allow_nan=False)
    for e in found.values():
        assert all(math.isnan(v) or v in range_of(e.name) for v in (e.value, e.low, e.high))
        assert math.isnan(e.low) or e.low <= e.value * (1 + 1e-9) + 1e-9
        assert math.isnan(e.high) or e.value <= e.high * (1 + 1e-9) + 1e-9


SENDERS = st.fixed_dictionaries(
    {
        "alpha": st.sampled_from([-1.0, 0.0, 0.1, 1.0, 4.0]),
        "beta": st.floats(0.1, 1.0),
        "initial_window": st.integers(1, 60),
        "ack_every": st.sampled_from([1, 2, 10]),
        "revert_after_s": st.sampled_from([None, 0.12]),
        "lose_each_s": st.sampled_from([np.inf, 0.3, 2.0]),
        "loss_part": st.sampled_from([0.0, 2e-4, 0.01, 0.2, 0.6]),
        "most_packets": st.sampled_from([np.inf, 3.0, 20.0]),
        "threshold_packets": st.sampled_from([np.inf, 30.0]),
        "buffer_packets": st.sampled_from([1.0, 10.0, 50.0, 1e6]),
        "duration_s": st.floats(0.5, 6.0),
        "seed": st.integers(0, 99),
    }
)


@settings(max_examples=25, deadline=None, suppress_health_check=PATIENT)
@given(st.lists(SENDERS, min_size=1, max_size=2))
def test_any_sender_over_any_link_with_loss(senders):
    found = []
    for sender in senders:
        try:
            found.append(infer(simulate(**sender)))
        except MetricError as error:  # fewer than 20 full packets, or none that arrived
            assert "parameters need" in str(error)
    for parameters in found:
        sound(parameters)
    if found:
        compare(found[0], found[-1], 0.3)


@st.composite
def captures(draw: st.DrawFn) -> xr.Dataset:
    """Packets and ACKs at any times, of any sizes, lost at random, over a queue of any delay."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    count, span_s = draw(st.integers(0, 200)), draw(st.sampled_from([0.0, 0.01, 1.0, 8.0]))
    rtt_ms = draw(st.sampled_from([5.0, 50.0, 300.0]))
    sent_s = np.sort(rng.uniform(0, span_s, count).round(draw(st.sampled_from([1, 3, 9]))))
    left_s = np.sort(sent_s + rng.exponential(draw(st.sampled_from([1e-4, 0.1])), count))
    lost = rng.random(count) < draw(st.sampled_from([0.0, 0.02, 0.5, 0.95, 1.0]))
    back_s = left_s[~lost][:: draw(st.sampled_from([1, 2, 20]))] + rtt_ms / 1e3
    sizes = rng.choice(draw(st.sampled_from([[1514], [60, 1514], [200, 1000, 1514]])), count)
    return xr.Dataset(
        {
            "packet_time_s": ("packet", sent_s + rtt_ms / 2e3),
            "packet_departure_s": ("packet", np.where(lost, np.nan, left_s + rtt_ms / 2e3)),
            "packet_flow": ("packet", np.zeros(count, "uint8")),
            "packet_size_bytes": ("packet", sizes.astype("uint16")),
            "ack_time_s": ("ack", back_s),
            "ack_flow": ("ack", np.zeros(len(back_s), "uint8")),
            "base_rtt_ms": ("flow", [rtt_ms]),
        },
        coords={"label": ("flow", ["any"])},
        attrs={"rate_mbps": draw(st.sampled_from([np.nan, 0.1, 1000.0]))},
    )


@settings(max_examples=60, deadline=None, suppress_health_check=PATIENT)
@given(captures())
def test_any_capture(run):
    try:
        sound(infer(run))
    except MetricError as error:  # fewer than 20 full packets, or none that arrived
        assert "parameters need" in str(error)


@st.composite
def parameters(draw: st.DrawFn) -> Parameters:
    """Any estimates, possible ones or not."""
    found = []
    for name in PARAMETERS:
        if name in WORDS:
            found.append(Estimate(name, math.nan, word=draw(st.sampled_from(WORDS[name]))))
        else:
            low, value, high = sorted(draw(st.tuples(ENDS, ENDS, ENDS)))
            found.append(Estimate(name, value, low, high, 5))
    return Parameters("any", found)


@settings(max_examples=150, deadline=None, suppress_health_check=PATIENT)
@given(parameters(), parameters(), st.sampled_from([math.nan, -0.5, 0.0, 0.5]))
def test_any_two_senders_are_compared(test, reference, moved):
    found = compare(test, reference, moved)
    for d in found:
        assert math.isnan(d.effect) or math.isfinite(d.effect)
        assert (d.role == "cause") or math.isnan(d.score)
    # The receiver of a model of the path, and a pace of its start alone, come after all others.
    first = [d for d in found if d.name not in (*RECEIVERS, "pacing")]
    for explained in (False, True):
        weighed = [d.score for d in first if d.explained is explained and math.isfinite(d.score)]
        assert weighed == sorted(weighed, reverse=True)
    causes = [d.explained for d in first if d.role == "cause"]
    assert causes == sorted(causes)  # what another cause explains comes after it
    assert [d.role for d in found] == sorted(d.role for d in found)  # symptoms last


@pytest.mark.parametrize("name", ["ack-10", "bbr-120-explained", "google-cubic", "quiche-now"])
def test_what_was_published_is_explained(name):
    explained = qb.load_explanation(CASES / name)
    json.dumps(explained.to_dict(), allow_nan=False)
    assert len(explained.frame()) == len(explained.differences)
    assert not {d.name for d in explained.suspects} & {d.name for d in explained.symptoms}
    if name == "bbr-120-explained":  # all phases have the same factor: the queue shows it
        assert explained.verdict.lines[2].startswith(
            "Most likely because it paces above the delivery rate and keeps a queue of 0.94 BDP"
        )
        assert "(seen while its path does not change)" in explained.reasons
    elif name == "ack-10":  # ACK frequency has a rule of thumb only: the other receiver shows it
        assert explained.verdict.lines[2].startswith("Most likely because its receiver sends")
        without = replace(explained, exchange=None)
        assert without.verdict.lines[2].startswith(
            "The cause is open; what differs most: its receiver sends"
        )
        assert explained.reasons.startswith("what differs most is packets per ACK")
        assert explained.reasons.endswith("no suspect has a known effect")
    elif name == "google-cubic":
        assert explained.verdict.lines[2].startswith("Most likely because a loss leaves 0.85")
    else:  # a known fault comes first
        assert explained.verdict.lines[2].startswith("The first of 2 known faults, cubic.rs:232: ")
        assert (
            "window reductions reverted within two RTTs: 75.5 [71.2, 78.6] %" in explained.reasons
        )


def test_shares_by_hand():
    # Google QUICHE got 15.9 of 20 Mbit/s, e^1.48 times its competitor. At equal loss times CUBIC's
    # mean window is proportional to C (3 + β) / (1 - β): ln(3.854 / 0.146) - ln(3.699 / 0.301) is
    # 0.765, which is 0.516 of 1.48.
    google = qb.load_explanation(CASES / "google-cubic")
    assert google.observed == pytest.approx(1.48, abs=0.005)
    share = {d.name: google.share(d) for d in google.suspects}
    assert share["decrease_factor"] == pytest.approx(0.765 / 1.48, abs=0.01)
    assert share["packet_bytes"] < 0  # smaller packets cost throughput, which rose
    assert math.isnan(share["pacing"])  # a rule of thumb
    known = [part for part in share.values() if not math.isnan(part)]
    assert google.accounted == pytest.approx(sum(known))


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (7.24, "accounts for more than all of the difference"),
        (1.006, "accounts for more than all of the difference"),
        (1.0049, "accounts for 100 % of the difference"),
        (0.29, "accounts for 29 % of the difference"),
        (-0.3, "works against the difference"),
    ],
)
def test_a_share_is_capped_in_words(share, words):
    assert accounts_text(share) == words


@pytest.mark.parametrize("name", ["google-cubic", "quiche-now"])
def test_without_a_difference_that_is_shown_there_is_no_share(name):
    shown = qb.load_explanation(CASES / name)
    unshown = replace(shown.assessment, outcome="no difference detected")
    assert math.isnan(observed_ln_ratio(shown.study, unshown))
    assert math.isfinite(observed_ln_ratio(shown.study, shown.assessment))


def test_a_what_if_measures_its_share():
    often, seldom = (qb.load_study(CASES / name) for name in ("ack-2", "ack-10"))
    what = qb.WhatIf(seldom, often, {"ack_every_packets": 2})
    assert 0.5 < what.share < 1.1
    assert f"; it accounts for {share_text(what.share)}." in what.sentence
    nothing = qb.WhatIf(often, often, {"ack_every_packets": 2})
    assert math.isnan(nothing.share) or nothing.share == 0


def test_both_sides_of_a_what_if_of_a_published_study_are_measured_alike(tmp_path, monkeypatch):
    spec = qb.Experiment(flows=["tcp:reno", "tcp:cubic"], duration_s=20)
    runs = [synthetic_run(seed=seed, duration_s=20) for seed in range(1, 5)]
    runs = [run.assign_attrs(spec=spec.to_json()) for run in runs]
    study = qb.Study("tcp:reno", "tcp:cubic", runs[:2], runs[2:])
    monkeypatch.setattr("qbkit.studies.what_if.study_with", lambda *_, **__: study)
    qb.publish_study(study, tmp_path)
    changed = qb.what_if(qb.load_study(tmp_path), {"pacing": True})
    before, after = changed.assessments
    assert before.conformance == after.conformance
    assert all("packet_time_s" not in run for run in changed.after.tests)
    own = qb.what_if(study, {"pacing": True})
    assert own.after is study
    with pytest.raises(SpecError, match="tcp has no option 1"):
        qb.what_if(study, {1: 2})


@pytest.mark.guest
@pytest.mark.parametrize(
    ("controller", "rate_mbps", "loss_percent"),
    [("bbr", 8, 0.02), ("cubic", 20, 0.5), ("reno", 5, 10)],
)
def test_real_senders_over_lossy_links(controller, rate_mbps, loss_percent):
    link = qb.Bottleneck(rate_mbps=rate_mbps, rtt_ms=20, buffer_bdp=1, loss_percent=loss_percent)
    found = infer(qb.Experiment(bottleneck=link, flows=[f"tcp:{controller}"], duration_s=10).run())
    sound(found)
    if controller == "bbr":  # what it holds steady between losses is no additive increase
        assert found["growth"].word not in ("linear", "cubic")
        assert not found["emulated_flows"].known
