"""Precedents vote on the one change by which two senders differ; rules alone do not decide then."""

from __future__ import annotations

import csv
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sender_cases import sets
from test_causes_between_seeds import side

from qbkit.metrics.parameters import Parameters, compare, known_precedents, voted
from qbkit.metrics.parameters.estimates import PARAMETERS
from qbkit.metrics.parameters.laws import BBRS
from qbkit.metrics.parameters.precedents import TABLE, Precedents, parsed, steps, written
from qbkit.metrics.parameters.rules import RULES
from qbkit.studies.lone import is_one_sender

USUAL = {"standing_queue_bdp": [0.2] * 4, "drain_rate": [0.75] * 4, "window_gain": [2.0] * 4}
FAST = {"standing_queue_bdp": [0.9] * 4, "drain_rate": [0.95] * 4, "window_gain": [2.0] * 4}


def row(truth: str, test: Parameters, reference: Parameters) -> dict[str, str]:
    return {"set": "mine", "truth": truth, "steps": written(steps(test, reference))}


def suspects(test: Parameters, reference: Parameters, rows: list[dict[str, str]]) -> list[str]:
    found = compare(test, reference, by_name=BBRS)
    judged = voted(found, test, reference, Precedents(rows), models_path=True)
    return [d.name for d in judged if d.is_suspect]


def rows_of_table() -> list[dict[str, str]]:
    with TABLE.open(newline="") as file:
        return [*csv.DictReader(file)]


def test_steps_change_their_signs_with_the_sides():
    test, reference = side(**FAST, growth=["cubic"] * 4), side(**USUAL, growth=["linear"] * 4)
    ours, theirs = steps(test, reference), steps(reference, test)
    assert ours.keys() == theirs.keys() and len(ours) >= 4
    assert all(ours[key] == -theirs[key] for key in ours)


def test_what_one_side_alone_shows_counts_by_itself():
    assert steps(side(probe_up_gain=[1.25] * 4), side()) == {"probe_up_gain seen": 1.5}


def test_the_most_alike_decide_among_what_the_rules_suspect():
    test, reference = side(**FAST), side(**USUAL)
    for truth in ("standing_queue_bdp", "drain_rate"):
        first, *_ = suspects(test, reference, [row(truth, test, reference)])
        assert first == truth
        first, *_ = suspects(reference, test, [row(truth, test, reference)])
        assert first == truth


def test_a_change_that_no_rule_suspects_needs_a_precedent_like_it_and_its_votes():
    small, large = {"initial_window_packets": [10.0] * 4}, {"initial_window_packets": [12.5] * 4}
    test, reference = side(**FAST, **large), side(**USUAL, **small)
    alike = row("initial_window_packets", test, reference)
    assert suspects(test, reference, [alike])[0] == "initial_window_packets"
    unlike = row("initial_window_packets", side(**large), side(**small))
    assert "initial_window_packets" not in suspects(test, reference, [unlike])
    assert suspects(side(**large), side(**small), [unlike]) == ["initial_window_packets"]
    others = [row(name, side(**large), side(**small)) for name in ("packet_bytes", "pacing_gain")]
    assert suspects(side(**large), side(**small), [unlike, *others]) == []


def test_what_one_of_four_runs_shows_is_no_cause():
    often, once = [0.5] * 4, [0.5, math.nan, math.nan, math.nan]
    reference = side(**USUAL)
    always = row("kept_after_burst", side(**FAST, kept_after_burst=often), reference)
    for shown, is_first in ((often, True), (once, False)):
        first, *_ = suspects(side(**FAST, kept_after_burst=shown), reference, [always])
        assert (first == "kept_after_burst") is is_first


@pytest.mark.parametrize(("c", "is_law"), [(0.41, False), (0.1, True), (math.nan, True)])
def test_two_curves_of_one_c_are_of_one_law(c, is_law):
    """Of a CUBIC, β decides whether most spans between losses look like lines."""
    usual = {"decrease_factor": [0.7] * 4, "growth": ["cubic"] * 4, "cubic_c": [0.4] * 4}
    less = {"decrease_factor": [0.6] * 4, "growth": ["linear"] * 4, "cubic_c": [c] * 4}
    test, reference = side(**less), side(**usual)
    laws = ("cubic", "cubic")
    found = compare(test, reference, by_name=laws)
    assert "growth" in [d.name for d in found]
    judged = voted(found, test, reference, known_precedents(), models_path=False)
    assert ("growth" in [d.name for d in judged]) is is_law
    assert "decrease_factor" in [d.name for d in judged]


def test_precedents_of_several_names_count_whole_for_each():
    test, reference = side(**FAST), side(**USUAL)
    rows = [row("standing_queue_bdp drain_rate", test, reference)] * 5
    votes = Precedents(rows).votes(test, reference)
    assert votes.of["drain_rate"] == pytest.approx(0.5)
    assert votes.named["drain_rate"] == votes.named["standing_queue_bdp"] == pytest.approx(1)
    assert votes.likeness == pytest.approx(1)


def test_a_cause_that_the_reference_alone_shows_is_said_so():
    test, reference = side(**FAST), side(**USUAL, kept_after_burst=[0.5] * 4)
    rows = [row("kept_after_burst", test, reference)]
    found = compare(test, reference, by_name=BBRS)
    first, *_ = voted(found, test, reference, Precedents(rows), models_path=True)
    assert first.clause.startswith("only the reference shows ")
    assert "nan" not in f"{first.clause} {first}"
    assert math.isnan(first.effect)


@given(st.sampled_from([*USUAL]), st.lists(st.floats(0.3, 3.0), min_size=4, max_size=4))
def test_seeds_in_another_order_have_no_suspect(name: str, values: list[float]):
    one, other = side(**{name: values}), side(**{name: values[::-1]})
    assert suspects(one, other, rows_of_table()) == []


def test_a_cell_is_read_as_it_was_written():
    found = {"growth=cubic": -2.0, "probe_up_gain seen": 1.5, "window_gain": -0.3}
    assert parsed(written(found)) == found
    assert parsed("") == {}


def test_the_table_has_the_changed_senders_of_the_benchmark():
    rows = rows_of_table()
    assert len(rows) > 400
    cases = sets()
    for each in rows:
        truths = [c.truth for c in cases[each["set"]] if c.flow == each["flow"]]
        assert tuple(each["truth"].split()) in truths, each["flow"]
        assert {*each["truth"].split()} <= {*PARAMETERS, *RULES, "app_limited_samples"}
    there = {(r["set"], r["flow"]) for r in rows}
    judged = {row["set"] for row in rows}  # a set that is kept back has no rows until it is judged
    changed = [(n, c) for n in cases if n in judged for c in cases[n] if c.truth]
    assert {(n, c.flow) for n, c in changed if is_one_sender((c.flow, c.reference))} == there


def test_a_set_is_judged_without_its_own_rows():
    fewer = known_precedents("causes")
    assert len(fewer._names) == sum(row["set"] != "causes" for row in rows_of_table())


@pytest.mark.parametrize(
    ("names", "one"),
    [
        (("quiche:cubic?pacing=false", "quiche:cubic"), True),
        (("quiche@0.20.0:cubic", "quiche:cubic"), True),
        (("quiche:cubic", "quiche:reno"), False),
        (("quinn:bbr", "tcp:bbr"), False),
        (("./new/mine:cubic", "/home/me@work/old/mine:cubic"), True),
        (("./build/mine:cubic", "./build/other:cubic"), False),
    ],
)
def test_one_sender_has_options_and_releases(names: tuple[str, str], one: bool):
    assert is_one_sender(names) is one


def test_no_vote_goes_to_a_word_that_both_sides_show():
    """A filter of 25 rounds, not of 10: that it forgets at all is the same."""
    usual = {"bandwidth_filter": ["forgets"] * 4}
    long = side(**usual, bandwidth_memory_rounds=[27.8] * 4, left_in_flight_bdp=[1.53] * 4)
    short = side(**usual, bandwidth_memory_rounds=[12.7] * 4, left_in_flight_bdp=[2.25] * 4)
    rows = [row("bandwidth_memory_rounds bandwidth_filter", long, short)]
    votes = Precedents(rows).votes(long, short)
    assert votes.of["bandwidth_memory_rounds"] == pytest.approx(1)
    assert votes.named["bandwidth_filter"] == pytest.approx(1)


def test_frames_of_another_size_are_the_change():
    usual = {"growth": ["linear"] * 4, "pacing": ["paced"] * 4}
    small = side(**usual, packet_bytes=[1242.0] * 4, pacing_gain=[1.14, 1.36, 1.36, 1.37])
    large = side(**usual, packet_bytes=[1494.0] * 4, pacing_gain=[0.97, 0.98, 0.99, 1.0])
    rows = Precedents([row("pacing_gain", small, large)])
    for order in ((small, large), (large, small)):
        first, *_ = voted(compare(*order), *order, rows, models_path=False)
        assert first.name == "packet_bytes"
