"""Many runs side by side on this machine: one guest a processor, in worker processes.

Worker processes, not threads: what a run costs is counted per process, a Ctrl-C reaches them all,
and each ends its guest when it ends itself.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from qbkit import store
from qbkit.errors import QbkitError
from qbkit.runner import run
from qbkit.spec import Experiment
from qbkit.testbed.console import die_with_parent


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

    One that fails does not stop the others; its outcome holds the error. Real-time runs
    (engine host) go one after the other, for they would disturb each other.
    """
    workers = 1 if engine == "host" else len(os.sched_getaffinity(0))
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, context, initializer=die_with_parent) as pool:
        futures = {pool.submit(_run_one, e, engine): i for i, e in enumerate(experiments)}
        try:
            outcomes = {futures[f]: f.result() for f in _as_shown(futures, progress)}
        except BaseException:
            for process in list((pool._processes or {}).values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [outcomes[i] for i in range(len(experiments))]


def datasets(outcomes: Iterable[Outcome]) -> list[xr.Dataset]:
    """Load what was run; raises the first error there is."""
    loaded = []
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
        assert outcome.path is not None
        loaded.append(store.load(outcome.path))
    return loaded


def _run_one(experiment: Experiment, engine: str | None) -> Outcome:
    try:
        dataset = run(experiment, engine=engine)
    except QbkitError as error:
        return Outcome(experiment, error=error)
    return Outcome(experiment, path=Path(dataset.encoding["source"]))


def _as_shown(futures: dict[Future[Outcome], int], progress: bool) -> Iterable[Future[Outcome]]:
    """Futures as they complete, with a progress bar if one is wanted."""
    from tqdm.auto import tqdm

    with tqdm(total=len(futures), desc="runs", unit="run", disable=not progress) as bar:
        pending = set(futures)
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            bar.update(len(done))
            yield from done
