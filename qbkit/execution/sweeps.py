"""A whole sweep: named runs on a cluster, one at a time in a folder, gathered into a cube."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from qbkit.errors import StoreError
from qbkit.execution.cluster import Failure, Task, run_tasks
from qbkit.execution.runner import names
from qbkit.spec import Experiment
from qbkit.spec.sweep import Sweep
from qbkit.store.cube import cube, digests_of
from qbkit.store.published import load_published, write_cube
from qbkit.store.sweep_folder import CUBE, Results, opened, storage

FAILURES = "failures.json"


@dataclass(frozen=True)
class Outcome:
    """What became of a sweep: its cube, and the runs that failed."""

    cube: xr.Dataset
    failures: list[Failure]
    runs: int
    ran: int
    """How many were run now; the others were there."""


def run_sweep(
    sweep: Sweep,
    out: str | Path,
    *,
    engine: str | None = None,
    scheduler: str | None = None,
    progress: bool = False,
) -> Outcome:
    """Run a sweep into ``out`` (a folder, or an fsspec URL), or what of it is missing there.

    Every run is stored as it ends, so a sweep that was killed goes on where it was. A run that
    fails is tried once more, then reported; the others go on. At the end the results are gathered
    into ``out/cube.zarr``. Raises StoreError when another sweep works in the folder.
    """
    url = str(out)
    points = list(sweep.points())
    ids = names((p.experiment for p in points), engine)
    results = Results(url)
    with _alone(url):
        before = results.names() & set(ids)
        tasks = {name: Task(name, p.experiment) for name, p in zip(ids, points, strict=True)}
        failures = run_tasks(
            list(tasks.values()), results, engine=engine, scheduler=scheduler, progress=progress
        )
        found = Results(url).digests(ids)
        lost = tasks.keys() - found.keys() - {failure.name for failure in failures}
        reason = f"it ended, but its result is not in {url}; give a folder that all workers share"
        failures += [
            Failure(t.name, t.experiment, reason) for t in tasks.values() if t.name in lost
        ]
        whole = cube(sweep, ids, found)
        _write(whole, failures, url)
    ran = len(tasks) - len(before)
    return Outcome(whole, failures, len(tasks), ran)


def gather(
    sweep: Sweep,
    out: str | Path,
    *,
    engine: str | None = None,
    published: xr.Dataset | None = None,
) -> xr.Dataset:
    """The cube of the runs that are in ``out`` now; ``done`` tells which there are.

    A run that is not there is taken from a ``published`` cube that holds the run of that name.
    """
    ids = names((p.experiment for p in sweep.points()), engine)
    known = digests_of(published) if published is not None else {}
    return cube(sweep, ids, {**known, **Results(str(out)).digests(ids)})


def publish_sweep(spec: str | Path, out: str | Path, *, engine: str | None = None) -> Path:
    """Write the runs of SPEC.yaml that are in ``out`` beside it: SPEC.nc and SPEC.json.

    What is published there already stays: runs of the same name that are not in ``out``. So a
    sweep that got more values is published again without the folders of its earlier runs.
    The JSON holds the versions of qbkit, kernel and stacks, how many runs are there, their
    processor time, the day, the command that makes them again, and the SHA-256 of the cube.
    Returns the path of the JSON; raises StoreError where ``out`` holds none of the runs.
    """
    source = Path(spec)
    before = load_published(source) if source.with_suffix(".json").exists() else None
    whole = gather(Sweep.from_file(source), out, engine=engine, published=before)
    if not whole["done"].any():
        raise StoreError(f"no run of {source} is in {out}; run `qbkit sweep {source} --out {out}`")
    return write_cube(whole, source)


def _write(whole: xr.Dataset, failures: list[Failure], url: str) -> None:
    """Store the cube, and what failed."""
    report = [{"run": f.name, "flows": f.experiment.labels, "reason": f.reason} for f in failures]
    advice = "free space, then start the sweep again: no run is lost"
    with storage(f"cannot write the cube to {url}", advice):
        put_cube(whole, url)
        files, root = opened(url)
        with files.open(f"{root}/{FAILURES}", "w") as file:
            json.dump(report, file, indent=1)


def put_cube(whole: xr.Dataset, url: str) -> None:
    """Write the cube at a path or URL: beside its place, then by a rename.

    An object store cannot rename a folder. There the cube is written where it belongs, and what
    makes it one, the metadata of its root, comes last.
    """
    from fsspec.implementations.local import LocalFileSystem

    files, root = opened(url)
    goal = f"{root}/{CUBE}"
    beside = f"{root}/.{CUBE}.part" if isinstance(files, LocalFileSystem) else goal
    part = files.get_mapper(beside)
    part.clear()  # of a sweep that was killed here
    pieces = _pieces(whole)
    for key in sorted(pieces, key=lambda key: "/" not in key):
        part[key] = pieces[key]
    if beside != goal:
        if files.exists(goal):
            files.rm(goal, recursive=True)
        files.mv(beside, goal, recursive=True)


def _pieces(whole: xr.Dataset) -> dict[str, bytes]:
    """What Zarr would store, by name.

    Zarr writes many pieces at once; on a full disk each of them fails, some of them only when the
    process ends, with a traceback. So Zarr gets memory, and the pieces are written in turn.
    """
    from zarr.core.buffer import Buffer
    from zarr.storage import MemoryStore

    pieces: dict[str, Buffer] = {}
    whole.to_zarr(MemoryStore(pieces), consolidated=False, zarr_format=2)
    return {key: piece.to_bytes() for key, piece in pieces.items()}


@contextmanager
def _alone(url: str) -> Iterator[None]:
    """One sweep at a time in a folder of this machine; the lock ends with its process."""
    if "://" in url and not url.startswith("file://"):
        yield  # an object store has no locks; runs are whole or absent there too
        return
    folder = Path(url.removeprefix("file://"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a+")
    except OSError as error:
        raise StoreError(f"cannot use {folder} for results: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            who = lock.read().strip() or "unknown"
            raise StoreError(
                f"another sweep (process {who}) works in {folder}; wait for it, or choose another"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


CPU_S_PER_MBIT = {"tcp": 0.005, "": 0.03}
"""Processor seconds per Mbit sent, by stack, "" for the others; measured by benchmarks/speed.py."""


def estimate(sweep: Sweep, out: str | Path, engine: str | None = None) -> dict[str, float]:
    """{runs, missing, cpu_s}: how much there is to do. The seconds are a guess from the bits."""
    points = list(sweep.points())
    there = Results(str(out)).names()
    ids = names((p.experiment for p in points), engine)
    missing = [p.experiment for p, name in zip(points, ids, strict=True) if name not in there]
    return {
        "runs": len(points),
        "missing": len(missing),
        "cpu_s": round(sum(_cpu_s(experiment) for experiment in missing), 1),
    }


def _cpu_s(experiment: Experiment) -> float:
    """A link that is full all the time, each flow with its share."""
    mbit = experiment.bottleneck.rate_mbps * experiment.duration_s / len(experiment.flows)
    costs = [CPU_S_PER_MBIT.get(f.stack, CPU_S_PER_MBIT[""]) for f in experiment.flows]
    return 1.0 + mbit * sum(costs)
