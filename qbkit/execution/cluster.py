"""Many calls on a Dask cluster; calls that fail are retried and do not stop the others."""

from __future__ import annotations

import logging
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import forkserver
from typing import TYPE_CHECKING, Any

from qbkit.errors import EngineError, QbkitError, RunFailed
from qbkit.execution.attempts import Attempts, try_twice
from qbkit.execution.interrupts import start_deaf, uninterrupted
from qbkit.testbed.engines import named, runs_at_once

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

CONNECT_S = 5
MACHINE = "machine"
"""Dask resource of a whole machine. A real-time run takes it, as runs would disturb each other."""
MAIN_IS = ("__file__", "__spec__")
"""Attributes by which `multiprocessing` finds the main program, to import it elsewhere."""
GONE = "the scheduler is gone; start again: qbkit runs only what is missing"
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.system-monitor.gil.enabled": False,
}
"""Intervals at which Dask monitors itself. Its defaults, up to 100 times per second, cost the runs
an eighth of a processor (benchmarks/sweep.py)."""
SETTINGS = {
    "distributed.scheduler.allowed-failures": 0,
    # Fork workers from a process without threads that has imported all they need.
    "distributed.worker.multiprocessing-method": "forkserver",
    **QUIET,
}
PRELOADED = ["distributed.nanny", "qbkit.execution.sweeps"]


def run_calls(
    calls: Mapping[str, Sequence[Any]],
    *,
    engine: str | None = None,
    scheduler: str | None = None,
    progress: bool = False,
    unit: str,
    title: str | None = None,
) -> Attempts[str]:
    """Run calls (a function and its arguments, by name), and retry each that fails once.

    ``title`` stands before the progress bar. Without a ``scheduler`` (address of a Dask scheduler),
    start a cluster of this machine's processors for these calls, or none where there are no calls.
    Raises EngineError when the scheduler does not answer.
    """
    if not calls:
        return Attempts({}, {})
    with _client(scheduler, min(len(calls), runs_at_once(engine))) as client:
        return try_twice(
            lambda chosen: dict(
                _work(client, {n: calls[n] for n in chosen}, engine, progress, unit, title)
            ),
            calls,
        )


def _alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call it on a worker, where xarray would lock the whole cluster for a file of this call."""
    import dask

    with dask.config.set(scheduler="synchronous"):
        return function(*arguments)


def _work(
    client: Client,
    calls: Mapping[str, Sequence[Any]],
    engine: str | None,
    progress: bool,
    unit: str,
    title: str | None,
) -> Iterator[tuple[str, QbkitError]]:
    """Yield each call that failed, with its error."""
    from distributed import as_completed

    from qbkit.progress import bar as progress_bar

    if client.status != "running":
        yield from ((name, EngineError(GONE)) for name in calls)
        return
    needs = {MACHINE: 1} if named(engine).needs_machine else {}
    this = uuid.uuid4().hex[:6]  # Dask repeats its answer to a key it knows
    by_key = {
        client.submit(_alone, *call, key=f"{unit}-{name}-{this}", resources=needs, pure=False): name
        for name, call in calls.items()
    }
    _report_missing_workers(client, needs)
    with progress_bar(
        desc=title, total=len(calls), unit=unit, disable=not progress, smoothing=0.05
    ) as bar:
        for future in as_completed(by_key):
            name = by_key.pop(future)
            bar.update()
            if future.status != "finished":
                yield name, _error(future)
            future.release()  # memory stays flat in the number of calls


def _report_missing_workers(client: Client, needs: Mapping[str, int]) -> None:
    """Say on stderr that no worker is there: Dask waits silently, and workers may come later."""
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
        return RunFailed("the worker process that ran it was killed")
    if error is None:  # cancelled, by the client that lost its scheduler
        return EngineError(GONE)
    return RunFailed(f"{type(error).__name__}: {error}")


@contextmanager
def _client(scheduler: str | None, workers: int) -> Iterator[Client]:
    """A client of the scheduler, or of a new cluster of ``workers`` on this machine."""
    from distributed import Client

    if scheduler is None:
        with local_cluster(workers) as cluster, Client(cluster) as client:
            client.register_worker_callbacks(partial(_take_environment, dict(os.environ)))
            yield client
        return
    # Dask would log tracebacks for a lost scheduler.
    for logger in ("distributed", "distributed.client"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    try:
        client = Client(scheduler, timeout=CONNECT_S)
    except (OSError, TimeoutError, ValueError):
        raise EngineError(
            f"no Dask scheduler answers at {scheduler}; start one with `dask scheduler`, and "
            "`dask worker` on each machine that takes part"
        ) from None
    with client:
        yield client


@contextmanager
def local_cluster(workers: int) -> Iterator[LocalCluster]:
    """Start ``workers`` that run one call at a time each and take little processor time themselves.

    Dask replaces a worker that is killed; its call fails, and `run_calls` retries it.
    """
    import dask
    from distributed import LocalCluster
    from distributed.utils import get_mp_context

    with dask.config.set(SETTINGS):
        get_mp_context().set_forkserver_preload(PRELOADED)
        start_deaf(forkserver.ensure_running)
    with dask.config.set(SETTINGS), _hidden_main():
        with uninterrupted():
            started = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                resources={MACHINE: 1},
                host="127.0.0.1",
                silence_logs=logging.CRITICAL,
                memory_limit=0,
            )
        with started as cluster:
            yield cluster


def _take_environment(environment: dict[str, str]) -> None:
    """Give a worker the client's present variables, not those of the client's first cluster."""
    os.environ.clear()
    os.environ.update(environment)


@contextmanager
def _hidden_main() -> Iterator[None]:
    """Keep new processes from importing the main program, which workers do not need.

    Importing a script would run it again, and fail where it starts a study outside of
    ``if __name__ == "__main__"``.
    """
    main = sys.modules["__main__"]
    attributes: dict[str, Any] = vars(main)
    known = {name: attributes[name] for name in MAIN_IS if name in attributes}
    attributes.update(dict.fromkeys(known))
    try:
        yield
    finally:
        attributes.update(known)
