"""Run a whole sweep on a cluster, and gather its results into a cube."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from filelock import Timeout
from fsspec import AbstractFileSystem

from qbkit import extras
from qbkit.arguments import as_path
from qbkit.errors import MISNAMED, RunFailed, SpecError, StackNotReady, StoreError
from qbkit.execution.attempts import words
from qbkit.execution.many import Outcome, run_on_worker
from qbkit.execution.outcome import called
from qbkit.execution.preflight import announcement, cpu_s, needs, require_room
from qbkit.execution.runner import drivers_of, namer
from qbkit.files import lock
from qbkit.spec.sweep import Sweep
from qbkit.store.cube import cube, figures_of, runs_of
from qbkit.store.figures import run_figures
from qbkit.store.published import load_published, write_cube
from qbkit.store.sweep_folder import CUBE, Results, opened, storage
from qbkit.testbed import engines
from qbkit.traces.run.early_end import EARLY_END

FAILURES = "failures.json"
LOCK = ".lock"


@dataclass(frozen=True, repr=False)
class SweepResult:
    """A finished sweep: its cube, and the runs that failed twice."""

    cube: xr.Dataset
    failures: list[Outcome]
    runs: int
    ran: int
    """How many ran now; the others were stored."""
    ended_early: int = 0
    """Runs with a connection that ended before its flow did; they are results, not failures."""

    def report(self) -> list[dict[str, Any]]:
        """Each run that failed: its name, the value of each swept field, its flows, and why."""
        names = self.cube["run"]
        found = []
        for failure in self.failures:
            place = np.argwhere(names.values == failure.name)[0]
            values = {f: names[f].values[i].item() for f, i in zip(names.dims, place, strict=True)}
            flows = failure.experiment.labels
            found.append(
                {"run": failure.name, "point": values, "flows": flows, "reason": failure.reason}
            )
        return found

    def __repr__(self) -> str:
        swept = ", ".join(f"{n} of {field}" for field, n in self.cube["run"].sizes.items())
        early = f", {self.ended_early} ended early" if self.ended_early else ""
        counts = f"{self.runs} runs, {self.ran} now{early}, {len(self.failures)} failed"
        return f"<sweep: {counts}; {swept}>"


def run_sweep(
    sweep: Sweep,
    out: str | Path,
    *,
    engine: str | None = None,
    scheduler: str | None = None,
    progress: bool = False,
    published: xr.Dataset | None = None,
) -> SweepResult:
    """Run those runs of a sweep that are missing in ``out`` (a folder, or an fsspec URL).

    Those that the ``published`` cube holds are not run either; see `gather`.

    Every run is stored as soon as it ends, so a sweep that was killed resumes where it stopped. A
    run that fails is retried, then reported, and does not stop the others. At the end the results
    are gathered into ``out/cube.zarr``. Raises StoreError while another sweep runs in the folder.
    """
    extras.require("zarr", to="write the cube of a sweep")
    if not isinstance(sweep, Sweep):
        raise SpecError(f"{sweep!r} is no sweep; read one by qb.Sweep.from_file")
    if not (url := str(out)):
        raise SpecError("the folder for the results has no name; give one, or a URL")
    known, earlier = _kept(published)
    with _alone(url):
        stored = Results(url)
        stored.make()
        there = known.keys() | stored.names()
        ids = _names(sweep, engine, there, earlier)
        experiments = {name: p.experiment for name, p in zip(ids, sweep.points(), strict=True)}
        missing = {name: e for name, e in experiments.items() if name not in there}
        if "://" not in url:
            room = [needs(experiment, engine) for experiment in missing.values()]
            require_room(room, Path(url), engine, scheduler)
        title = announcement(list(missing.values()), len(experiments), engine, scheduler)
        how = {"engine": engine, "scheduler": scheduler, "progress": progress, "title": title}
        # Workers may have another working folder.
        calls = {n: (_run_into, e.to_json(), n, stored.url, engine) for n, e in missing.items()}
        failed = {**called(calls, lambda name: words(missing[name]), unit="run", **how)}
        found = {**known, **Results(url).figures(ids)}
        lost = [name for name in experiments if name not in found and name not in failed]
        reason = f"it ended, but its result is not in {url}; give a folder that all workers share"
        failed.update({name: RunFailed(reason) for name in lost})
        failures = [Outcome(experiments[n], name=n, error=error) for n, error in failed.items()]
        early = sum(EARLY_END in found[name] for name in experiments if name in found)
        whole = cube(sweep, ids, found)
        result = SweepResult(whole, failures, len(experiments), len(missing), early)
        _write(result, sweep, url)
    return result


def _run_into(spec: str, name: str, url: str, engine: str | None) -> None:
    """Run an experiment on a worker, and store its result in the sweep's folder."""
    results = Results(url)
    with tempfile.TemporaryDirectory(prefix="qbkit-") as scratch:
        file = Path(scratch) / f"{name}.nc"
        dataset = run_on_worker(spec, name, engine, file)
        results.put(name, file, run_figures(dataset))


def gather(
    sweep: Sweep,
    out: str | Path,
    *,
    engine: str | None = None,
    published: xr.Dataset | None = None,
) -> xr.Dataset:
    """The cube of the runs that are in ``out`` now; ``done`` marks them.

    A run that is missing there comes from the ``published`` cube, if that holds it: under its name,
    or else under the one that it had with an earlier stack or engine, with a warning.
    """
    known, earlier = _kept(published)
    results = Results(str(out))
    present = known.keys() | results.names()
    ids = _names(sweep, engine, present, earlier, may_miss=published is not None)
    return cube(sweep, ids, {**known, **results.figures(ids)})


def _kept(published: xr.Dataset | None) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """The figures of the runs in a cube by name, and their names by experiment as JSON."""
    return ({}, {}) if published is None else (figures_of(published), runs_of(published))


def _names(
    sweep: Sweep,
    engine: str | None,
    present: Set[str],
    earlier: Mapping[str, str],
    *,
    may_miss: bool = False,
) -> list[str]:
    """The name of each run; its ``earlier`` one where the run is not ``present`` under its name.

    Raises StackNotReady for a run without an earlier one whose stack is not ready. If runs may be
    missing, such a run has no name ("").
    """
    name_of = namer(engine)
    ids, kept = [], 0
    for point in sweep.points():
        before = earlier.get(point.experiment.to_json())
        try:
            name = name_of(point.experiment)
        except StackNotReady:
            if before is None and not may_miss:
                raise
            name = ""
        if before is not None and name not in present:
            name, kept = before, kept + 1
        ids.append(name)
    if kept:
        why = "they are of another version of a stack or the engine, or a stack is not ready here"
        warnings.warn(f"{kept} of {len(ids)} runs stay as they were published; {why}", stacklevel=4)
    return ids


def publish_sweep(spec: str | Path, out: str | Path, *, engine: str | None = None) -> Path:
    """Write the runs of SPEC.yaml that are in ``out`` beside it: SPEC.nc and SPEC.json.

    Runs that are published already and missing in ``out`` stay. So a sweep with new values can be
    published again without the folders of its earlier runs; a warning says how many of these are of
    another version of a stack or the engine, or of a stack that is not ready here. The JSON holds
    the versions of qbkit, kernel and stacks, the number of runs, their processor time, the date,
    the command that reproduces them, and the SHA-256 of the cube. Returns the path of the JSON.
    Raises StoreError where ``out`` holds none of the runs.
    """
    source = as_path(spec)
    before = load_published(source) if source.with_suffix(".json").exists() else None
    whole = gather(Sweep.from_file(source), out, engine=engine, published=before)
    if not whole["done"].any():
        raise StoreError(
            f"no run of {source} is in {out}; run `qbkit sweep {source} --out {out}`", refused=True
        )
    return write_cube(whole, source)


def _write(result: SweepResult, sweep: Sweep, url: str) -> None:
    """Store the cube and the list of failures."""
    advice = "free space, then start the sweep again: no run is lost"
    with storage(f"cannot write the cube to {url}", advice):
        files, root = opened(url)
        before = _name_of_cube(files, f"{root}/{CUBE}/.zattrs")
        put_cube(result.cube, url)
        if before not in (None, sweep.name):
            warnings.warn(
                f"{url} had the cube of the sweep {before!r}, and now has that of {sweep.name!r}; "
                "give each sweep a folder of its own. The runs of both stay",
                stacklevel=4,
            )
        with files.open(f"{root}/{FAILURES}", "w") as file:
            json.dump(result.report(), file, indent=1)


def _name_of_cube(files: AbstractFileSystem, attributes: str) -> str | None:
    """The name of the sweep whose cube has these attributes; None where there is none to read."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        name: str = json.loads(json.loads(files.cat_file(attributes))["sweep"])["name"]
        return name
    return None


def put_cube(whole: xr.Dataset, url: str) -> None:
    """Write the cube at a path or URL: write beside the target, then rename.

    An object store cannot rename a folder. There the cube is written in place, with the metadata of
    its root, which makes it a cube, last.
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
    """The objects that Zarr would store, by name.

    Zarr writes many objects at once; on a full disk each write fails, some only when the process
    ends, with a traceback. So Zarr writes to memory, and we write the objects one by one.
    """
    from zarr.core.buffer import Buffer
    from zarr.storage import MemoryStore

    pieces: dict[str, Buffer] = {}
    whole.to_zarr(MemoryStore(pieces), consolidated=True, zarr_format=2)
    return {key: piece.to_bytes() for key, piece in pieces.items()}


@contextmanager
def _alone(url: str) -> Iterator[None]:
    """Lock a folder of this machine for one sweep; the lock ends with its process."""
    if "://" in url and not url.startswith("file://"):
        yield  # object stores have no locks; runs are complete or absent there too
        return
    folder = Path(url.removeprefix("file://"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot use {folder} for results: {error.strerror}",
            refused=isinstance(error, MISNAMED),
        ) from None
    owner = folder / LOCK
    with ExitStack() as held:
        try:
            held.enter_context(lock(owner, timeout_s=0))
        except Timeout:
            raise StoreError(
                f"another sweep (process {owner.read_text().strip() or 'unknown'}) works in "
                f"{folder}; wait for it, or choose another folder"
            ) from None
        with storage(f"cannot use {folder} for results", "free space, or choose another folder"):
            owner.write_text(str(os.getpid()))
        yield


def estimate(
    sweep: Sweep,
    out: str | Path | None = None,
    engine: str | None = None,
    *,
    published: xr.Dataset | None = None,
) -> dict[str, float]:
    """{runs, missing, cpu_s}: the work left in ``out`` and ``published``, or all of it.

    The seconds are a guess from the bits sent.
    """
    engines.named(engine)  # raises for an unknown one
    missing = runs = [p.experiment for p in sweep.points()]
    for experiment in runs:
        drivers_of(experiment)  # raises for an unknown stack, controller or option
    if out is not None or published is not None:
        known, earlier = _kept(published)
        there = known.keys() | (set() if out is None else Results(str(out)).names())
        ids = _names(sweep, engine, there, earlier)
        missing = [e for e, name in zip(runs, ids, strict=True) if name not in there]
    return {
        "runs": len(runs),
        "missing": len(missing),
        "cpu_s": round(sum(cpu_s(experiment) for experiment in missing), 1),
    }
