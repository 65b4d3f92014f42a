"""The test cases of a draft, judged for a sender."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.resources import files
from pathlib import Path

import pandas as pd

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
from qbkit.studies.evaluation.report import command

BOOK = Path(str(files("qbkit.studies.evaluation") / "books/bbr-draft.yaml"))
SEEDS = 3
SAYS, DIFFERS, VARIES = "as the draft says", "differs", "varies"
NOT_VISIBLE, NOT_APPLICABLE, FAILED = "not visible", "not applicable", "not run"


Settings = dict[tuple[int, int], Setting]
"""(Number of the case, seed) → what is added to the network of the case."""


@dataclass(frozen=True)
class Trial:
    """A run of a case: what was added to its network, and what became of it."""

    setting: Setting
    outcome: Outcome


@dataclass(frozen=True)
class Judgement:
    """A case and what was seen of it."""

    case: Case
    answer: str
    seen: str
    command: str
    """What makes the first run again; empty where there is none."""


@dataclass(frozen=True, repr=False)
class CaseReport:
    """A sender along the cases of a draft."""

    book: CaseBook
    sender: str
    judgements: tuple[Judgement, ...]

    @cached_property
    def answers(self) -> set[str]:
        """Which answers there are."""
        return {one.answer for one in self.judgements}

    def frame(self) -> pd.DataFrame:
        """One row per case: number, title, answer, what was seen, and the command."""
        rows = [
            (one.case.number, one.case.title, one.answer, one.seen, one.command)
            for one in self.judgements
        ]
        return pd.DataFrame(rows, columns=["case", "title", "answer", "seen", "command"])

    def to_json(self) -> str:
        """The same as a JSON document."""
        head = {"sender": self.sender, "book": self.book.name, "version": self.book.version}
        return json.dumps({**head, "cases": self.frame().to_dict(orient="records")}, indent=1)

    def __repr__(self) -> str:
        return f"<{self.sender} along {self.book.name}: {len(self.judgements)} cases>"

    def _repr_html_(self) -> str:
        return str(self.frame().drop(columns="command").to_html(index=False, border=0))


def judge_cases(
    sender: str | Flow,
    *,
    seeds: int = SEEDS,
    first_seed: int = 1,
    only: Sequence[int] = (),
    engine: str | None = None,
    scheduler: str | None = None,
    progress: bool = False,
) -> CaseReport:
    """Judge a BBR by the test cases of draft-ietf-ccwg-bbr, from packets and its own state.

    A case is "as the draft says" if every seed meets all that it expects, and "differs" if none
    does; "not visible" says why it cannot be judged from outside. Where a case changes the network
    as the sender enters a state, a first run finds the time, and a second one, equal up to there,
    has the change. ``only`` are the numbers of the cases to judge, all by default; a second look
    takes them with another ``first_seed``. Raises SpecError for a sender that is no BBR, for one
    that cannot run, and for a number that no case has.
    """
    tested = as_flow(sender)
    if (seeds := whole(seeds, "seeds")) < 1:
        raise SpecError(f"seeds = {seeds}: a case needs at least 1")
    if "bbr" not in tested.controller.lower():
        raise SpecError(f"{tested.name} is no BBR; the cases are those of a draft about BBR")
    require_same(tested, [Flow("tcp:bbr")])
    book = CaseBook.read(BOOK)
    cases = _chosen(book, only)
    namer(engine)(Experiment(flows=(tested,)))  # raises for what cannot run at all
    applying = {case.number: case for case in cases if _applies(case, tested, book)}
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
    judged = (
        _judged(
            case,
            tested,
            book,
            [(seed, trial) for (number, seed), trial in trials.items() if number == case.number],
        )
        for case in cases
    )
    return CaseReport(book, tested.text, tuple(judged))


def _chosen(book: CaseBook, only: Sequence[int]) -> list[Case]:
    """The cases of those numbers, or all."""
    known = {case.number: case for case in book.cases}
    if unknown := [number for number in only if number not in known]:
        raise SpecError(f"there is no case {unknown[0]}; there are 1 to {len(known)}")
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
    part = Part(trial.outcome.run, case.scenario.tested(), 0.0, case.duration_s)
    visits_s = state_visits_s(part, case.change.state)
    return float(visits_s[0, 0]) if len(visits_s) else None


def _applies(case: Case, tested: Flow, book: CaseBook) -> bool:
    return case.since_version == 1 or tested.name not in book.version_1


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
    return Judgement(case, answer, "; ".join(_seen(one, each) for one, each in values), again)


def _values(case: Case, one: Expectation, outcomes: Sequence[Outcome]) -> Iterator[float]:
    end_s = one.to_s or case.duration_s
    flows = case.scenario.tested()
    for outcome in outcomes:
        if outcome.run is not None:
            yield MEASURES[one.measure].compute(Part(outcome.run, flows, one.from_s, end_s))


def _seen(one: Expectation, values: Sequence[float]) -> str:
    """What was seen of an expectation, and its bound."""
    low, high = min(values), max(values)
    span = f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"
    measure = MEASURES[one.measure]
    unit = f" {measure.unit}" if measure.unit else ""
    return f"{measure.words} {span}{unit} ({one.bound})"
