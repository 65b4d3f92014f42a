"""What the sweep layer costs: overhead of a run, a resume with nothing to do, memory, waiting.

    python benchmarks/sweep.py [--write]

The table is ``sweep``. Real runs of 1 virtual second; the resume and the memory are those of a
finished sweep of 1,000, whose results are copies of these.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import dask
import psutil
from distributed import Client
from markdown_tables import arguments, record

from qbkit.execution import cluster
from qbkit.execution.many import run_all
from qbkit.execution.runner import namer
from qbkit.execution.sweeps import run_sweep
from qbkit.spec.sweep import Sweep
from qbkit.store.sweep_folder import Results

KEYS = ["what"]
RUNS, MANY, SEEDS = 16, 1000, 2_000_000
IDLE_S = 20
OWN = {name: dask.config.get(name) for name in cluster.QUIET}
FRESH = itertools.count(time.time_ns() // 1000, 1000)
"""First seeds of runs that do not exist yet."""


def sweep(seeds: range) -> Sweep:
    base = {
        "bottleneck": {"rate_mbps": 10, "rtt_ms": 20},
        "flows": ["tcp:cubic", "tcp:reno"],
        "duration_s": 1,
    }
    return Sweep(name="benchmark", base=base, sweep={"seed": list(seeds)})


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--peak-of", nargs=2, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.peak_of:
        return peak(int(words.peak_of[0]), Path(words.peak_of[1]))
    with tempfile.TemporaryDirectory() as folder:
        record("sweep", measured(Path(folder)), KEYS, words.write)
    return None


def measured(out: Path) -> Iterator[dict[str, str]]:
    """The rows of the table."""
    found = [*overhead(out).items(), *resume(out).items()]
    for label, settings in (("as it is", {}), ("with Dask's own settings", OWN)):
        what = f"processor time of two workers that wait, {label}"
        found.append((what, f"{idle(settings):.1f} %"))
    return ({"what": what, "measured": value} for what, value in found)


def overhead(out: Path) -> dict[str, str]:
    """Sweeps of short runs against the same runs without a sweep, both on all processors.

    Two sizes of each: the difference between them is what runs cost, the rest is the start.
    """
    run_sweep(sweep(range(SEEDS, SEEDS + 2)), out / "warm")
    swept, plain = ([timed(how, count) for count in (RUNS, 3 * RUNS)] for how in ways(out))
    each_ms = [1e3 * (large - small) / (2 * RUNS) for small, large in (swept, plain)]
    start_s = swept[0] - each_ms[0] * RUNS / 1e3
    return {
        "start and end of the cluster": f"{start_s:.1f} s",
        "a run of 1 s without a sweep": f"{each_ms[1]:.0f} ms",
        "in a sweep": f"{each_ms[0]:.0f} ms: {each_ms[0] - each_ms[1]:.0f} ms more",
    }


def ways(out: Path) -> tuple[Callable[[range], object], Callable[[range], object]]:
    """A sweep of the seeds, and the same runs without one."""
    return (
        lambda seeds: run_sweep(sweep(seeds), out / "runs"),
        lambda seeds: run_all([p.experiment for p in sweep(seeds).points()]),
    )


def timed(how: Callable[[range], object], count: int) -> float:
    """Seconds for that many runs, none of which exists yet."""
    first = next(FRESH)
    began = time.perf_counter()
    how(range(first, first + count))
    return time.perf_counter() - began


def idle(settings: dict[str, object]) -> float:
    """Percent of a processor that a cluster takes while its workers wait for guests."""
    with (
        mock.patch.dict(cluster.SETTINGS, settings),
        cluster.local_cluster(2) as started,
        Client(started) as client,
    ):
        waiting = [client.submit(time.sleep, 2 * IDLE_S, pure=False) for _ in range(2)]
        time.sleep(IDLE_S / 4)
        me = psutil.Process()
        family = [me, *me.children(recursive=True)]
        before = sum(sum(p.cpu_times()[:2]) for p in family)
        time.sleep(IDLE_S)
        taken_s = sum(sum(p.cpu_times()[:2]) for p in family) - before
        client.cancel(waiting)
    return 100 * taken_s / IDLE_S


def resume(out: Path) -> dict[str, str]:
    """A finished sweep of MANY runs, started again; and its memory against one of a tenth."""
    whole = sweep(range(1, MANY + 1))
    name_of = namer()
    ids = [name_of(point.experiment) for point in whole.points()]
    there = sorted((out / "runs/runs").glob("*.json"))[0]
    target = out / "many/runs"
    target.mkdir(parents=True)
    for name in ids:
        shutil.copy(there, target / f"{name}.json")
    assert Results(str(out / "many")).names() == set(ids)
    began = time.perf_counter()
    outcome = run_sweep(whole, out / "many")
    assert outcome.ran == 0
    found = {f"{MANY} runs, nothing left to do": f"{time.perf_counter() - began:.1f} s"}
    words = [sys.executable, __file__, "--peak-of"]
    for count in (MANY // 10, MANY):
        said = subprocess.run(
            [*words, str(count), str(out / "many")], capture_output=True, text=True
        )
        report = json.loads(said.stdout)
        found[f"peak memory of that, {count} runs"] = f"{report['peak_mb']:.0f} MB"
    return found


def peak(count: int, out: Path) -> None:
    run_sweep(sweep(range(1, count + 1)), out)
    print(json.dumps({"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
