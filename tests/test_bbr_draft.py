"""The test cases of the BBR draft: the book, the answers, and real senders."""

from __future__ import annotations

import math

import pytest
from click.testing import CliRunner

import qbkit as qb
from qbkit.cli.group import Commands
from qbkit.errors import SpecError
from qbkit.metrics.evaluation.measures import MEASURES
from qbkit.spec.case_book import Case, CaseBook, Expectation
from qbkit.studies.evaluation import cases


@pytest.fixture
def book() -> CaseBook:
    return CaseBook.read(cases.BOOK)


def test_the_book_has_the_drafts_22_cases_and_measures_what_exists(book: CaseBook):
    assert [case.number for case in book.cases] == list(range(1, 23))
    used = {one.measure for case in book.cases for one in case.expects}
    assert used <= set(MEASURES)


@pytest.mark.parametrize(
    ("bounds", "value", "met"),
    [
        ({"at_least": 0.9}, 0.9, True),
        ({"at_least": 0.9}, 0.89, False),
        ({"at_most": 2}, 2.1, False),
        ({"at_least": 1, "at_most": 2}, 1.5, True),
        ({"at_most": 2}, math.nan, False),
    ],
)
def test_bounds(bounds: dict, value: float, met: bool):
    assert Expectation(words="x", measure="queue", **bounds).met(value) is met


def test_a_case_expects_something_or_says_why_not():
    with pytest.raises(SpecError, match="case 3 needs expects, or not_visible and why"):
        Case(number=3, title="x")
    with pytest.raises(SpecError, match="give at_least or at_most"):
        Expectation(words="x", measure="queue")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["tcp:cubic"], "tcp:cubic is no BBR; the cases are those of a draft about BBR"),
        (["quinn:bbr9"], "quinn has no controller 'bbr9'"),
        (["nothing:bbr"], "nothing"),
    ],
)
def test_other_senders_are_refused_before_anything_runs(words: list[str], sentence: str):
    done = CliRunner().invoke(Commands(), ["bbr-draft", *words])
    assert sentence in done.output + str(done.exception)


@pytest.mark.guest
def test_the_kernels_bbr_fills_links_and_knows_which_cases_are_not_its_own():
    report = qb.judge_cases("tcp:bbr", seeds=1)
    answers = {one.case.number: one.answer for one in report.judgements}
    assert {answers[n] for n in (1, 3, 8, 12, 13, 15, 18, 19)} == {cases.SAYS}
    assert answers[16] == cases.NOT_APPLICABLE  # version 1
    assert answers[4] == cases.NOT_VISIBLE
    first = report.frame().iloc[0]
    assert first.command.startswith("qbkit run tcp:bbr --rate-mbps 20 --rtt-ms 50")


@pytest.mark.guest
def test_a_bbr_that_is_slow_to_find_more_differs_in_case_15(book: CaseBook):
    # Known from outside: quiche's BBRv2 does not reach 90 of 100 Mbit/s within 12 s.
    case = next(case for case in book.cases if case.number == 15)
    run = case.scenario.experiment("quiche:bbr2", {}, 1).run()
    part = cases.Part(run, [0], 10, 30)
    assert not case.expects[0].met(MEASURES["recovery"].compute(part))
