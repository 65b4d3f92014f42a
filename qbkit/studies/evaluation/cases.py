"""The test cases of a draft, judged for a sender."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from qbkit.arguments import whole
from qbkit.errors import SpecError
from qbkit.execution.many import Outcome, run_all
from qbkit.execution.runner import namer
from qbkit.metrics.evaluation.measures import MEASURES, Part, state_visits_s
from qbkit.spec.book import Setting
from qbkit.spec.case_book import Case, CaseBook, Expectation
from qbkit.spec.experiment import Experiment
from qbkit.spec.flow import Flow, as_flow
from qbkit.studies.alike import require_same
from qbkit.studies.evaluation.commands import command
from qbkit.studies.evaluation.judgements import (
    DIFFERS,
    FAILED,
    NOT_APPLICABLE,
    NOT_VISIBLE,
    SAYS,
    VARIES,
    CaseReport,
    Judgement,
    Missed,
)
from qbkit.studies.evaluation.numbers import three_digits
from qbkit.studies.evaluation.shelf import DRAFT, open_book, require_measures

SEEDS = 3
LEAST_PART_S, MOST_PARTS = 1.0, 20
"""A span is searched for where an expectation is missed most in so many parts at most."""

Settings = dict[tuple[int, int], Setting]
"""(Number of the case, seed) → what is added to the network of the case."""


@dataclass(frozen=True)
class Trial:
    """A run of a case: what was added to its network, and what became of it."""

    setting: Setting
    outcome: Outcome


def judge_cases(
    sender: str | Flow,
    book: str | Path | CaseBook = DRAFT,
    *,
    seeds: int = SEEDS,
    first_seed: int = 1,
    only: Sequence[int] = (),
    engine: str | None = None,
    scheduler: str | None = None,
    progress: bool = False,
) -> CaseReport:
    """Judge a sender by the test cases of a draft, from packets and its own state.

    ``book`` is that of draft-ietf-ccwg-bbr, or the path of a YAML file (`qbkit.spec.case_book`).

    A case is "as the draft says" if every seed meets all that it expects, and "differs" if none
    does; "not visible" says why it cannot be judged from outside. Where a case changes the network
    as the sender enters a state, a first run finds the time, and a second one, equal up to there,
    has the change. ``only`` are the numbers of the cases to judge, all by default; a second look
    takes them with another ``first_seed``. Raises SpecError for a sender that the book is not
    about, for one that cannot run, for a number that no case has, and for a book of questions.
    """
    tested = as_flow(sender)
    if (seeds := whole(seeds, "seeds")) < 1:
        raise SpecError(f"seeds = {seeds}: a case needs at least 1")
    along = _require_about(tested, book)
    cases = _chosen(along, only)
    namer(engine)(Experiment(flows=(tested,)))  # raises for what cannot run at all
    applying = {case.number: case for case in cases if _applies(case, tested, along)}
    settings: Settings = {
        (case.number, seed): case.setting()
        for case in applying.values()
        if case.expects
        for seed in range(first_seed, first_seed + seeds)
    }
    run_every = partial(run_all, engine=engine, scheduler=scheduler, progress=progress)
    trials = _trials(settings, applying, tested, run_every)
    changing: Settings = {
        key: applying[key[0]].setting(at_s)
        for key, trial in trials.items()
        if (at_s := _changes_at_s(applying[key[0]], trial)) is not None
    }
    trials |= _trials(changing, applying, tested, run_every)
    judged = tuple(
        _judged(
            case,
            tested,
            along,
            [(seed, trial) for (number, seed), trial in trials.items() if number == case.number],
        )
        for case in cases
    )
    not_run = {one.case.number for one in judged if one.answer == FAILED}
    failed = tuple(
        trial.outcome.reason
        for (number, _), trial in trials.items()
        if number in not_run and trial.outcome.run is None
    )
    return CaseReport(along, tested.text, judged, seeds, failed)


def _require_about(tested: Flow, book: str | Path | CaseBook) -> CaseBook:
    """The book of cases; SpecError if it is another kind of book, or not about the sender."""
    along = book if isinstance(book, CaseBook) else open_book(book)
    if not isinstance(along, CaseBook):
        raise SpecError(f"{along.name} is a book of questions; give it to qbkit evaluate --book")
    if along.controllers.lower() not in tested.controller.lower():
        kind = along.controllers.upper()
        raise SpecError(f"{tested.name} is no {kind}; the cases are those of a draft about {kind}")
    require_same(tested, [Flow("tcp:cubic")])
    require_measures(along)
    return along


def _chosen(book: CaseBook, only: Sequence[int]) -> list[Case]:
    """The cases of those numbers, or all."""
    known = {case.number: case for case in book.cases}
    if unknown := [number for number in only if number not in known]:
        there = ", ".join(map(str, known)) if max(known) > len(known) else f"1 to {len(known)}"
        raise SpecError(f"there is no case {unknown[0]}; there are {there}")
    return [case for number, case in known.items() if not only or number in only]


def _trials(
    settings: Settings,
    cases: Mapping[int, Case],
    tested: Flow,
    run_every: Callable[[Sequence[Experiment]], Sequence[Outcome]],
) -> dict[tuple[int, int], Trial]:
    experiments = [
        cases[number].scenario.experiment(tested.text, setting, seed)
        for (number, seed), setting in settings.items()
    ]
    outcomes = run_every(experiments) if experiments else []
    found = zip(settings.values(), outcomes, strict=True)
    return dict(zip(settings, (Trial(*each) for each in found), strict=True))


def _changes_at_s(case: Case, trial: Trial) -> float | None:
    """When the sender enters the state in which the case changes the network; None if never."""
    if case.change is None or trial.outcome.run is None:
        return None
    part = Part(trial.outcome.run, case.scenario.flows_of("tested"), 0.0, case.duration_s)
    visits_s = state_visits_s(part, case.change.state)
    return float(visits_s[0, 0]) if len(visits_s) else None


def _applies(case: Case, tested: Flow, book: CaseBook) -> bool:
    name = f"{tested.stack.partition('@')[0]}:{tested.controller}"  # a release is as its stack
    return case.since_version == 1 or name not in book.version_1


def _judged(
    case: Case, tested: Flow, book: CaseBook, trials: Sequence[tuple[int, Trial]]
) -> Judgement:
    """What the trials, each with its seed, say of a case."""
    if case.not_visible:
        return Judgement(case, NOT_VISIBLE, case.not_visible, "")
    if not _applies(case, tested, book):
        return Judgement(case, NOT_APPLICABLE, "the sender has version 1 of BBR", "")
    outcomes = [trial.outcome for _, trial in trials]
    seed, first = trials[0]
    again = command(case.scenario, first.setting, tested.text, seed)
    if failed := [outcome for outcome in outcomes if outcome.run is None]:
        impossible = isinstance(failed[0].error, SpecError)  # such as an app that it does not have
        return Judgement(case, NOT_VISIBLE if impossible else FAILED, failed[0].reason, again)
    values = [(one, list(_values(case, one, outcomes))) for one in case.expects]
    if unknown := [one for one, each in values if not all(map(math.isfinite, each))]:
        return Judgement(
            case, NOT_VISIBLE, f"the sender reports no {MEASURES[unknown[0].measure].words}", again
        )
    met = [all(one.met(each[i]) for one, each in values) for i in range(len(outcomes))]
    answer = SAYS if all(met) else VARIES if any(met) else DIFFERS
    seen = "; ".join(_seen(one, each) for one, each in values)
    missed = tuple(
        Missed(one, _moment_s(case, one, first)) for one, each in values if not one.met(each[0])
    )
    return Judgement(case, answer, seen, again, first.outcome.name, missed)


def _values(case: Case, one: Expectation, outcomes: Sequence[Outcome]) -> Iterator[float]:
    end_s, measure = one.to_s or case.duration_s, MEASURES[one.measure]
    flows = case.scenario.flows_of(measure.of)
    for outcome in outcomes:
        if outcome.run is not None:
            yield measure.compute(Part(outcome.run, flows, one.from_s, end_s))


def _moment_s(case: Case, one: Expectation, trial: Trial) -> float:
    """Where a run misses an expectation most, in s: the middle of the worst part of its span.

    Where all parts are alike, it is the moment of the case's change, or the span's start.
    """
    run, end_s = trial.outcome.run, one.to_s or case.duration_s
    if run is None:
        return math.nan
    count = int(np.clip((end_s - one.from_s) / LEAST_PART_S, 1, MOST_PARTS))
    edges_s = np.linspace(one.from_s, end_s, count + 1)
    measure = MEASURES[one.measure]
    flows = case.scenario.flows_of(measure.of)
    values = [measure.compute(Part(run, flows, *map(float, pair))) for pair in pairwise(edges_s)]
    beyond = np.array([one.beyond(value) for value in values])
    if not (beyond > np.nanmin(beyond, initial=np.inf)).any():
        return _changes_at_s(case, trial) or one.from_s
    worst = int(np.nanargmax(beyond))
    return float(edges_s[worst : worst + 2].mean())


def _seen(one: Expectation, values: Sequence[float]) -> str:
    """What was seen of an expectation, and its bound."""
    low, high = min(values), max(values)
    span = " to ".join(dict.fromkeys(map(three_digits, (low, high))))
    measure = MEASURES[one.measure]
    unit = f" {measure.unit}" if measure.unit else ""
    return f"{measure.words} {span}{unit} ({one.bound})"
