"""Many runs in parallel on Dask: load stored runs, run the others; a failure stops none."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import xarray as xr
from pydantic import BaseModel

from qbkit import store
from qbkit.errors import QbkitError, RunFailed, SpecError
from qbkit.execution import runner
from qbkit.execution.attempts import words
from qbkit.execution.outcome import Ended, called, completed
from qbkit.execution.preflight import announcement, needs, require_room
from qbkit.execution.stand_ins import stand_ins
from qbkit.spec import Experiment
from qbkit.traces.run.early_end import EARLY_END, early_end_sentences


@dataclass(frozen=True)
class Outcome(Ended):
    """The result of one experiment: its run, or the error that stopped it."""

    experiment: Experiment


def run_all(
    experiments: Sequence[Experiment],
    *,
    engine: str | None = None,
    scheduler: str | None = None,
    progress: bool = False,
    published: str | Path | None = None,
) -> list[Outcome]:
    """Run experiments, one per processor at a time, and load those already stored.

    ``progress`` shows a bar, which says first what is stored and about how long the others take.

    A run that fails does not stop the others. It is retried after them: if it passes then, there
    is a warning, otherwise its outcome holds the error. Runs of engine host follow one
    another, because they would disturb each other. ``scheduler`` is the address of a Dask scheduler
    whose workers share the folder of runs; without one, the processors of this machine do the
    work. No cluster starts if all runs are stored.

    What cannot run here (an unknown stack, release or option, a stack that is not built) is found
    before the first run: its outcome holds the error, and the others run. `run_every` raises it.
    ``published`` is a folder with runs for them, as in `qbkit.run`.
    Raises EngineError or StoreError before the first run for too little memory or disk space.
    """
    return _completed(_stored(experiments, engine, published), engine, scheduler, progress)


def run_missing(
    experiments: Sequence[Experiment],
    *,
    engine: str | None = None,
    scheduler: str | None = None,
    progress: bool = False,
) -> dict[str, QbkitError]:
    """Run experiments that have no file yet, and load none: there may be more than memory holds.

    Otherwise like `run_all`. Returns the error of each that failed or cannot run, by its hash.
    """
    outcomes = _named(experiments, engine)
    missing = [o for o in outcomes if o.error is None and not store.path_of(o.name).exists()]
    total = len({o.name for o in outcomes if o.error is None})
    failed = called(**_calls(missing, total, engine, scheduler, progress))
    errors = {o.experiment.hash: o.error or failed.get(o.name) for o in outcomes}
    return {name: error for name, error in errors.items() if error is not None}


def _completed(
    outcomes: list[Outcome],
    engine: str | None,
    scheduler: str | None = None,
    progress: bool = False,
) -> list[Outcome]:
    """The outcomes, with the runs that were not stored."""
    missing = [o for o in outcomes if o.run is None and o.error is None]
    total = len({o.name for o in outcomes})
    return completed(outcomes, **_calls(missing, total, engine, scheduler, progress))


def _calls(
    outcomes: Sequence[Outcome],
    total: int,
    engine: str | None,
    scheduler: str | None,
    progress: bool,
) -> dict[str, Any]:
    """What `called` takes for those of so many runs that are missing, which must have room."""
    missing = {o.name: o.experiment for o in outcomes}
    room = [needs(experiment, engine) for experiment in missing.values()]
    require_room(room, store.default_folder(), engine, scheduler)
    title = announcement(list(missing.values()), total, engine, scheduler) if missing else None
    return {
        "calls": {
            # Absolute, as workers may have another working folder.
            name: (_run_to_file, e.to_json(), name, str(store.path_of(name).absolute()), engine)
            for name, e in missing.items()
        },
        "words": lambda name: words(missing[name]),
        "engine": engine,
        "scheduler": scheduler,
        "progress": progress,
        "unit": "run",
        "title": title,
    }


def run_every(
    experiments: Sequence[Experiment],
    *,
    engine: str | None = None,
    published: str | Path | None = None,
    **how: Any,
) -> list[xr.Dataset]:
    """The runs of experiments that are all needed, with the arguments of `run_all`.

    Raises SpecError, StackNotReady or EngineError before the first run if any of them cannot run,
    and RunFailed if one failed.
    """
    outcomes = _stored(experiments, engine, published)
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    return datasets(_completed(outcomes, engine, **how))


def datasets(outcomes: Sequence[Outcome]) -> list[xr.Dataset]:
    """The runs of the outcomes; raises the error of a run that failed, and counts those left.

    Warns how many runs had a connection that ended before its flow did: they count as they are.
    """
    failed = [(o.experiment, o.error) for o in outcomes if o.error is not None]
    for _, error in failed:
        if not isinstance(error, RunFailed):
            raise error
    if failed:
        experiment, error = failed[0]
        raise RunFailed(
            f"{len(failed)} of {len(outcomes)} runs failed twice, first {words(experiment)} "
            f"({error}); the others are stored: start again to run only what failed"
        )
    runs = [outcome.run for outcome in outcomes if outcome.run is not None]
    early = [run for run in runs if EARLY_END in run]
    if early:
        first = "; ".join(early_end_sentences(early[0]))
        warnings.warn(
            f"in {len(early)} of {len(runs)} runs a connection ended before its flow did, first "
            f"with seed {early[0].attrs['seed']}: {first}",
            stacklevel=2,
        )
    return runs


def run_on_worker(spec: str, name: str, engine: str | None, out: str | Path) -> xr.Dataset:
    """Run an experiment given as JSON, on a Dask worker, into the file ``out``.

    Raises RunFailed where the run would have another ``name`` on this machine: the name covers the
    kernel, qbkit and the stacks, whose versions on a worker may differ.
    """
    experiment = Experiment.from_json(spec)
    if runner.namer(engine)(experiment) != name:
        raise RunFailed(
            f"the worker on {platform.node()} has another kernel, qbkit or version of a stack than "
            "the machine that started the runs; set up both alike"
        )
    return runner.run(experiment, engine=engine, out=out, force=True)


def _stored(
    experiments: Sequence[Experiment], engine: str | None, published: str | Path | None
) -> list[Outcome]:
    """Outcomes with the run where it is stored or published, and the error where it cannot run."""
    outcomes = [
        o if o.error else replace(o, run=runner.stored(store.path_of(o.name), o.name))
        for o in _named(experiments, engine)
    ]
    failures = {o.experiment.hash: o.error for o in outcomes if o.error is not None}
    found = stand_ins(failures, published)
    runs = [found.get(o.experiment.hash) for o in outcomes]
    return [
        o if run is None else replace(o, run=run, error=None)
        for o, run in zip(outcomes, runs, strict=True)
    ]


def _named(experiments: Sequence[Experiment], engine: str | None) -> list[Outcome]:
    """Outcomes with the name of the run, or with the error where it cannot be named."""
    if isinstance(experiments, str | BaseModel) or not isinstance(experiments, Iterable):
        raise SpecError("run_all takes a list of experiments; write one as [experiment]")
    wanted = [runner.as_experiment(one) for one in experiments]
    try:
        name_of = runner.namer(engine)
    except QbkitError as error:
        return [Outcome(experiment, error=error) for experiment in wanted]
    outcomes = []
    for experiment in wanted:
        try:
            outcomes.append(Outcome(experiment, name=name_of(experiment)))
        except QbkitError as error:
            outcomes.append(Outcome(experiment, error=error))
    return outcomes


def _run_to_file(spec: str, name: str, path: str, engine: str | None) -> None:
    """The task of a worker; its result stays there."""
    run_on_worker(spec, name, engine, path)
