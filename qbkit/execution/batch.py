"""Many runs side by side on this machine: one guest a processor, in worker processes.

Worker processes, not threads: what a run costs is counted per process, a Ctrl-C reaches them all,
and each ends its guest when it ends itself.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from qbkit import store
from qbkit.errors import QbkitError, RunFailed
from qbkit.execution.attempts import try_twice, words
from qbkit.execution.runner import run
from qbkit.spec import Experiment
from qbkit.testbed.console import die_with_parent
from qbkit.testbed.engines import runs_at_once


@dataclass(frozen=True)
class Outcome:
    """What became of one experiment: the path of its dataset, or the error."""

    experiment: Experiment
    path: Path | None = None
    error: QbkitError | None = None


def run_all(
    experiments: Sequence[Experiment], *, engine: str | None = None, progress: bool = False
) -> list[Outcome]:
    """Run experiments (those that exist are not run again), as many at once as processors.

    One that fails is tried once more after the others, with a warning if it passes then; else its
    outcome holds the error. It does not stop the others. Real-time runs (engine host) go one after
    the other, for they would disturb each other.
    """
    at_once = runs_at_once(engine)
    outcomes: dict[int, Outcome] = {}

    def attempt(wanted: list[int]) -> dict[int, QbkitError]:
        chosen = {i: experiments[i] for i in wanted}
        outcomes.update(_side_by_side(chosen, engine, at_once, progress))
        return {i: error for i in wanted if (error := outcomes[i].error) is not None}

    try_twice(attempt, range(len(experiments))).warn(lambda i: words(experiments[i]))
    return [outcomes[i] for i in range(len(experiments))]


def datasets(outcomes: Sequence[Outcome]) -> list[xr.Dataset]:
    """Load what was run; raises what stopped a run, and says which runs are left to do."""
    failed = [(o.experiment, o.error) for o in outcomes if o.error is not None]
    for _, error in failed:
        if not isinstance(error, RunFailed):
            raise error
    if failed:
        experiment, error = failed[0]
        raise RunFailed(
            f"{len(failed)} of {len(outcomes)} runs failed twice, first {words(experiment)} "
            f"({error}); what ran is stored: start again, and only what failed is run"
        )
    return [store.load_run(outcome.path) for outcome in outcomes if outcome.path is not None]


def _side_by_side(
    experiments: dict[int, Experiment], engine: str | None, at_once: int, progress: bool
) -> dict[int, Outcome]:
    """Run each once, in processes of their own."""
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(at_once, context, initializer=die_with_parent) as pool:
        futures = {pool.submit(_run_one, e, engine): i for i, e in experiments.items()}
        try:
            return {
                futures[f]: _outcome(f, experiments[futures[f]])
                for f in _as_shown(futures, progress)
            }
        except BaseException:
            for process in list((pool._processes or {}).values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _run_one(experiment: Experiment, engine: str | None) -> Outcome:
    try:
        dataset = run(experiment, engine=engine)
    except QbkitError as error:
        return Outcome(experiment, error=error)
    return Outcome(experiment, path=Path(dataset.encoding["source"]))


def _outcome(future: Future[Outcome], experiment: Experiment) -> Outcome:
    """Of a run that ended; a process that was killed takes those that waited with it."""
    try:
        return future.result()
    except BrokenProcessPool:
        return Outcome(experiment, error=RunFailed("a process that ran it, or another, was killed"))


def _as_shown(futures: Iterable[Future[Outcome]], progress: bool) -> Iterator[Future[Outcome]]:
    """Futures as they complete, with a progress bar if one is wanted."""
    from tqdm.auto import tqdm

    pending = set(futures)
    with tqdm(total=len(pending), desc="runs", unit="run", disable=not progress) as bar:
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            bar.update(len(done))
            yield from done
