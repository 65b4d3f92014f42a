"""Many runs on a Dask cluster: what exists is not run again, what fails does not stop the rest."""

from __future__ import annotations

import logging
import platform
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qbkit.errors import EngineError, QbkitError, RunFailed
from qbkit.execution.attempts import Attempts, try_twice, words
from qbkit.spec import Experiment
from qbkit.store.sweep_folder import Results
from qbkit.testbed.engines import named, runs_at_once

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

CONNECT_S = 5
MACHINE = "machine"
"""Dask resource that a real-time run takes whole: it would disturb, and be disturbed by, others."""
GONE = "the scheduler is gone; start the sweep again: it goes on where it was"
SELDOM = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.system-monitor.gil.enabled": False,
}
"""How often Dask looks at itself. Its own settings, up to 100 times a second, take an eighth of a
processor from the runs (benchmarks/sweep.py)."""


@dataclass(frozen=True)
class Task:
    """A run that is to be: its name in the results, and what to run."""

    name: str
    experiment: Experiment


@dataclass(frozen=True)
class Failure:
    """A run that failed twice, and the sentence that says why."""

    name: str
    experiment: Experiment
    reason: str


def run_tasks(
    tasks: Sequence[Task],
    results: Results,
    *,
    engine: str | None = None,
    scheduler: str | None = None,
    progress: bool = False,
) -> list[Failure]:
    """Run all tasks whose result is not there yet; those that failed twice.

    Warns of those that passed the second time.
    """
    there = results.names()
    missing = {task.name: task.experiment for task in tasks if task.name not in there}
    calls = {
        name: (run_one, experiment.to_json(), name, results.url, engine)
        for name, experiment in missing.items()
    }
    done = run_calls(calls, engine=engine, scheduler=scheduler, progress=progress, unit="run")
    done.warn(lambda name: words(missing[name]))
    return [Failure(name, missing[name], str(error)) for name, error in done.failed.items()]


def run_calls(
    calls: Mapping[str, Sequence[Any]],
    *,
    engine: str | None = None,
    scheduler: str | None = None,
    progress: bool = False,
    unit: str,
) -> Attempts[str]:
    """Run calls (a function and its arguments, by name), each tried twice if need be.

    Without a ``scheduler`` (address of a Dask scheduler) a cluster of this machine's processors is
    started for the time. Raises EngineError when the scheduler does not answer.
    """
    if not calls:
        return Attempts({}, {})
    with _client(scheduler, engine) as client:
        return try_twice(
            lambda chosen: dict(
                _work(client, {n: calls[n] for n in chosen}, engine, progress, unit)
            ),
            calls,
        )


def _work(
    client: Client,
    calls: Mapping[str, Sequence[Any]],
    engine: str | None,
    progress: bool,
    unit: str,
) -> Iterator[tuple[str, QbkitError]]:
    """Each call that failed, and why."""
    from distributed import as_completed
    from tqdm.auto import tqdm

    if client.status != "running":
        yield from ((name, EngineError(GONE)) for name in calls)
        return
    needs = {MACHINE: 1} if named(engine).real_time else {}
    this = uuid.uuid4().hex[:6]  # Dask answers for a key that it knows as it did before
    by_key = {
        client.submit(*call, key=f"{unit}-{name}-{this}", resources=needs, pure=False): name
        for name, call in calls.items()
    }
    _tell_of_missing_workers(client, needs)
    with tqdm(total=len(calls), unit=unit, disable=not progress, smoothing=0.05) as bar:
        for future in as_completed(by_key):
            name = by_key.pop(future)
            bar.update()
            if future.status != "finished":
                yield name, _error(future)
            future.release()  # memory stays flat in the number of calls


def _tell_of_missing_workers(client: Client, needs: Mapping[str, int]) -> None:
    """On stderr, for Dask waits without a word; workers may well come later."""
    workers = client.scheduler_info()["workers"].values()
    if not any(needs.keys() <= worker["resources"].keys() for worker in workers):
        words = ["dask worker", client.scheduler.address, "--nthreads 1"]
        words += [f"--resources {name}={count}" for name, count in needs.items()]
        print("waiting for a worker; start one:", *words, file=sys.stderr)


def _error(future: Any) -> QbkitError:
    """Why a call failed, in one sentence."""
    error = None if future.cancelled() else future.exception()
    if isinstance(error, QbkitError):
        return error
    if type(error).__name__ == "KilledWorker":
        return RunFailed("the workers that ran it died, one after the other")
    if error is None:  # cancelled, by the client that lost its scheduler
        return EngineError(GONE)
    return RunFailed(f"{type(error).__name__}: {error}")


def run_one(spec: str, name: str, url: str, engine: str | None) -> None:
    """Run an experiment on a worker and put its result where the sweep wants it."""
    import dask

    from qbkit.execution.runner import names, run
    from qbkit.store.figures import digest

    experiment = Experiment.from_json(spec)
    if names([experiment], engine) != [name]:
        raise RunFailed(
            f"the worker on {platform.node()} has another kernel, qbkit or version of a stack than "
            "the machine that started the sweep; set both up alike"
        )
    results = Results(url)
    # On a worker xarray would take a lock of the whole cluster for a file that only this run knows.
    alone = dask.config.set(scheduler="synchronous")
    with alone, tempfile.TemporaryDirectory(prefix="qbkit-") as scratch:
        file = Path(scratch) / f"{name}.nc"
        dataset = run(experiment, engine=engine, out=file)
        results.put(name, file, digest(dataset))


@contextmanager
def _client(scheduler: str | None, engine: str | None) -> Iterator[Client]:
    """The given scheduler's client, or that of a cluster on this machine."""
    from distributed import Client

    if scheduler is None:
        with local_cluster(runs_at_once(engine)) as cluster, Client(cluster) as client:
            yield client
        return
    # Its loggers would report a lost scheduler by tracebacks of their own.
    for logger in ("distributed", "distributed.client"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    try:
        client = Client(scheduler, timeout=CONNECT_S)
    except (OSError, TimeoutError, ValueError):
        raise EngineError(
            f"no Dask scheduler answers at {scheduler}; start one with `dask scheduler`, and "
            "`dask worker` on the machines that are to work"
        ) from None
    with client:
        yield client


@contextmanager
def local_cluster(workers: int) -> Iterator[LocalCluster]:
    """So many workers of one run at a time each, which leave the processors to the runs."""
    import dask
    from distributed import LocalCluster

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1, **SELDOM}),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            resources={MACHINE: 1},
            host="127.0.0.1",
            silence_logs=logging.CRITICAL,
            memory_limit=0,
        ) as cluster,
    ):
        yield cluster
