"""Run a book for a sender and for the controllers that it is compared with."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, overload

import pandas as pd
import xarray as xr

from qbkit.arguments import as_path, whole
from qbkit.errors import SpecError, StoreError
from qbkit.execution.many import run_all, run_missing
from qbkit.execution.runner import namer
from qbkit.metrics.evaluation.harm import harm
from qbkit.metrics.evaluation.measures import MEASURES, Part
from qbkit.spec.book import Book, Criterion, Scenario, Setting
from qbkit.spec.case_book import CaseBook
from qbkit.spec.experiment import Experiment
from qbkit.spec.flow import Flow, as_flow
from qbkit.studies.alike import require_same
from qbkit.studies.evaluation.answers import NOT_QUICK, Evaluation, LeftOut, setting_words
from qbkit.studies.evaluation.cases import SEEDS as CASE_SEEDS
from qbkit.studies.evaluation.cases import judge_cases
from qbkit.studies.evaluation.judgements import CaseReport
from qbkit.studies.evaluation.shelf import open_book, require_measures

SEEDS, QUICK_SEEDS = 5, 3
COLUMNS = ("section", "scenario", "setting", "measure", "harm", "sender", "seed", "value", "run")
AT_ONCE = 120
"""So many runs are in memory at most."""


@dataclass(frozen=True)
class Trial:
    """One number to be: a sender in a setting of a scenario, with a seed."""

    criterion: Criterion
    scenario: Scenario
    setting: Setting
    sender: str
    seed: int

    @cached_property
    def experiment(self) -> Experiment:
        """What it runs."""
        return self.scenario.experiment(self.sender, self.setting, self.seed)

    @cached_property
    def alone(self) -> Experiment | None:
        """The others without the sender, where harm is asked for."""
        if not self.scenario.harm:
            return None
        return self.scenario.experiment(None, self.setting, self.seed)

    @property
    def experiments(self) -> list[Experiment]:
        """All that it runs."""
        return [e for e in (self.experiment, self.alone) if e is not None]

    def is_harm(self, measure: str) -> bool:
        """Whether a measure of it is what others lose beside the sender."""
        return self.scenario.harm and MEASURES[measure].of == "others"


@overload
def evaluate(
    sender: str | Flow,
    book: Book | Literal["rfc9743", "c4", "shares"] = ...,
    *,
    quick: bool = ...,
    seeds: int | None = ...,
    engine: str | None = ...,
    scheduler: str | None = ...,
    progress: bool = ...,
) -> Evaluation: ...
@overload
def evaluate(
    sender: str | Flow,
    book: str | Path | Book | CaseBook,
    *,
    quick: bool = ...,
    seeds: int | None = ...,
    engine: str | None = ...,
    scheduler: str | None = ...,
    progress: bool = ...,
) -> Evaluation | CaseReport: ...
def evaluate(
    sender: str | Flow,
    book: str | Path | Book | CaseBook = "rfc9743",
    *,
    quick: bool = False,
    seeds: int | None = None,
    engine: str | None = None,
    scheduler: str | None = None,
    progress: bool = False,
) -> Evaluation | CaseReport:
    """Answer every question of a book for a sender, beside the standard controllers.

    ``book`` is one of `BOOKS`, or the path of a YAML file (`qbkit.spec.book`). ``quick`` takes the
    first setting of the scenarios that are marked so, with three seeds in place of five.
    ``bbr-draft``, and a file with ``cases``, are test cases without a comparison (`judge_cases`).
    Runs that are stored are loaded, so an evaluation that was interrupted goes on. A run that fails
    leaves its number out, and the evaluation names it; so does a scenario that the sender cannot
    run, such as one with an application that it does not have, and what ``quick`` leaves out.
    Raises SpecError for an unknown sender, book or measure before the first run, and for ``quick``
    with test cases.
    """
    how: dict[str, Any] = {"engine": engine, "scheduler": scheduler, "progress": progress}
    chosen = book if isinstance(book, Book | CaseBook) else open_book(book)
    if isinstance(chosen, CaseBook):
        if quick:
            raise SpecError(f"{chosen.name} has test cases, which are all quick; leave out quick")
        return judge_cases(sender, chosen, seeds=CASE_SEEDS if seeds is None else seeds, **how)
    return _answered(as_flow(sender), chosen, quick, seeds, **how)


def _answered(
    tested: Flow, book: Book, quick: bool, seeds: int | None, *, engine: str | None, **how: Any
) -> Evaluation:
    """Each question of a book, answered for a sender."""
    require_measures(book)
    left_out = _left_out(tested, book, engine, quick=quick)
    if quick:
        left_out = _not_quick(book, left_out) | left_out
    senders = list(dict.fromkeys([tested.text, *book.standards, *book.others]))
    count = (QUICK_SEEDS if quick else SEEDS) if seeds is None else whole(seeds, "seeds")
    if count < 2:
        raise SpecError(f"seeds = {count}: an evaluation needs at least 2")
    trials = list(_trials(book, senders, count, left_out, quick=quick))
    every = {e.hash: e for trial in trials for e in trial.experiments}
    errors = run_missing(list(every.values()), engine=engine, **how)
    rows: list[dict[str, object]] = []
    failed: dict[str, str] = {name: str(error) for name, error in errors.items()}
    for start in range(0, len(trials), AT_ONCE):
        batch = trials[start : start + AT_ONCE]
        wanted = {e.hash: e for trial in batch for e in trial.experiments if e.hash not in failed}
        outcomes = run_all(list(wanted.values()), engine=engine)
        failed |= {o.experiment.hash: o.reason for o in outcomes if o.run is None}
        runs = {o.experiment.hash: o.run for o in outcomes if o.run is not None}
        for trial in batch:
            rows += _rows(trial, runs)
    values = pd.DataFrame(rows, columns=list(COLUMNS))
    return Evaluation(book, tested.text, quick, count, values, tuple(failed.values()), left_out)


def load_evaluation(path: str | Path) -> Evaluation:
    """The evaluation that `save_evaluation` wrote as ``.json``; StoreError for another file."""
    try:
        stored = json.loads(as_path(path).read_text(encoding="utf-8"))
        rows = pd.DataFrame(stored["values"], columns=stored["columns"])[list(COLUMNS)]
        rows["value"] = rows["value"].astype(float)
        facts = (stored["sender"], bool(stored["quick"]), int(stored["seeds"]))
        whole_book = stored["book"].get("whole")
        book = Book(**whole_book) if whole_book else open_book(stored["book"]["name"])
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, SpecError):
        raise StoreError(f"{path} is no evaluation that qbkit wrote as JSON") from None
    if isinstance(book, CaseBook):
        raise StoreError(f"{path} has test cases, not an evaluation; read it as JSON")
    if stored["book"]["version"] != book.version:
        raise StoreError(
            f"{path} follows version {stored['book']['version']} of {book.name}, and this is "
            f"version {book.version}; evaluate again"
        )
    left_out = {(section, name): why for section, name, why in stored.get("left_out", [])}
    return Evaluation(book, *facts, rows, tuple(stored["failed"]), left_out)


def _left_out(tested: Flow, book: Book, engine: str | None, *, quick: bool) -> LeftOut:
    """What is asked for that the sender cannot run though a standard controller can, and why.

    Raises SpecError for a sender or another of the book that cannot run at all, for a sender that
    sets what a scenario sets, and for a scenario that nobody can run.
    """
    require = namer(engine)
    for flow in (tested, *map(as_flow, book.standards), *map(as_flow, book.others)):
        require(Experiment(flows=(flow,)))
    require_same(tested, map(as_flow, book.standards))
    left_out: LeftOut = {}
    for criterion, scenario in book.scenarios:
        setting = next(scenario.settings(quick=True))
        try:
            wanted = scenario.experiment(tested.text, setting, seed=1)
        except SpecError as error:
            place = f"section {criterion.section} of {book.name}, {scenario.name!r}"
            raise SpecError(f"{tested.text} cannot be in {place}: {error}") from None
        try:
            require(wanted)
        except SpecError as error:
            require(scenario.experiment(book.standards[0], setting, seed=1))
            if scenario.quick or not quick:
                left_out[criterion.section, scenario.name] = str(error)
    return left_out


def _not_quick(book: Book, impossible: LeftOut) -> LeftOut:
    """What a quick evaluation leaves out of a book: whole scenarios, and settings of others."""
    left_out: LeftOut = {}
    for criterion, scenario in book.scenarios:
        if (criterion.section, scenario.name) in impossible:
            continue
        further = {
            key: ", ".join(map(str, values[1:]))
            for key, values in scenario.vary.items()
            if len(values) > 1
        }
        if not scenario.quick:
            left_out[criterion.section, scenario.name] = NOT_QUICK
        elif further:
            name = f"{scenario.name} with {setting_words(further)}"
            left_out[criterion.section, name] = NOT_QUICK
    return left_out


def _trials(
    book: Book, senders: Sequence[str], seeds: int, left_out: LeftOut, *, quick: bool
) -> Iterator[Trial]:
    for criterion, scenario in book.scenarios:
        if (quick and not scenario.quick) or (criterion.section, scenario.name) in left_out:
            continue
        for setting in scenario.settings(quick=quick):
            for sender, seed in itertools.product(senders, range(1, seeds + 1)):
                yield Trial(criterion, scenario, setting, sender, seed)


def _rows(trial: Trial, runs: Mapping[str, xr.Dataset]) -> Iterator[dict[str, object]]:
    """A row for each measure of a trial; the value is NaN where a run failed."""
    run = runs.get(trial.experiment.hash)
    alone = runs.get(trial.alone.hash) if trial.alone else None
    for name in trial.scenario.measures:
        yield {
            "section": trial.criterion.section,
            "scenario": trial.scenario.name,
            "setting": setting_words(trial.setting),
            "measure": name,
            "harm": trial.is_harm(name),
            "sender": trial.sender,
            "seed": trial.seed,
            "value": math.nan if run is None else _value(trial, name, run, alone),
            "run": "" if run is None else str(run.attrs["hash"]),
        }


def _value(trial: Trial, name: str, run: xr.Dataset, alone: xr.Dataset | None) -> float:
    measure, scenario = MEASURES[name], trial.scenario
    flows = scenario.flows_of(measure.of)
    end_s = scenario.to_s or scenario.duration_s
    value = measure.compute(Part(run, flows, scenario.from_s, end_s))
    if not trial.is_harm(name):
        return value
    if alone is None:
        return math.nan
    without = Part(alone, range(len(flows)), scenario.from_s, end_s)
    return harm(value, measure.compute(without), measure.better)
