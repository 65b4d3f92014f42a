"""What the sweep layer costs: overhead of a run, a resume with nothing to do, memory, waiting.

python benchmarks/sweep.py: a Markdown table on stdout. Real runs of 1 virtual second; the resume
and the memory are those of a finished sweep of 1,000, whose results are copies of these.
"""

from __future__ import annotations

import itertools
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import dask
import psutil
from distributed import Client

from qbkit.execution import cluster
from qbkit.execution.many import run_all
from qbkit.execution.runner import names
from qbkit.execution.sweeps import run_sweep
from qbkit.spec.sweep import Sweep
from qbkit.store.sweep_folder import Results

RUNS, MANY, SEEDS = 16, 1000, 2_000_000
IDLE_S = 20
OWN = {name: dask.config.get(name) for name in cluster.SELDOM}
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
    if sys.argv[1:]:
        return peak(int(sys.argv[1]), Path(sys.argv[2]))
    print("| | |", "|---|---|", sep="\n")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        overhead(out)
        resume(out)
    for label, settings in (("as it is", {}), ("with Dask's own settings", OWN)):
        print(f"| processor time of two workers that wait, {label} | {idle(settings):.1f} % |")
    return None


def overhead(out: Path) -> None:
    """Sweeps of short runs against the same runs without a sweep, both on all processors.

    Two sizes of each: the difference between them is what runs cost, the rest is the start.
    """
    run_sweep(sweep(range(SEEDS, SEEDS + 2)), out / "warm")
    swept, plain = ([timed(how, count) for count in (RUNS, 3 * RUNS)] for how in ways(out))
    each_ms = [1e3 * (large - small) / (2 * RUNS) for small, large in (swept, plain)]
    start_s = swept[0] - each_ms[0] * RUNS / 1e3
    print(f"| start and end of the cluster | {start_s:.1f} s |")
    print(f"| a run of 1 s without a sweep | {each_ms[1]:.0f} ms |")
    print(f"| in a sweep | {each_ms[0]:.0f} ms: {each_ms[0] - each_ms[1]:.0f} ms more |")


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
        mock.patch.dict(cluster.SELDOM, settings),
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


def resume(out: Path) -> None:
    """A finished sweep of MANY runs, started again; and its memory against one of a tenth."""
    whole = sweep(range(1, MANY + 1))
    ids = names(p.experiment for p in whole.points())
    there = sorted((out / "runs/runs").glob("*.json"))[0]
    target = out / "many/runs"
    target.mkdir(parents=True)
    for name in ids:
        shutil.copy(there, target / f"{name}.json")
    assert Results(str(out / "many")).names() == set(ids)
    began = time.perf_counter()
    outcome = run_sweep(whole, out / "many")
    assert outcome.ran == 0
    print(f"| {MANY} runs, nothing left to do | {time.perf_counter() - began:.1f} s |")
    words = [sys.executable, __file__]
    for count in (MANY // 10, MANY):
        said = subprocess.run(
            [*words, str(count), str(out / "many")], capture_output=True, text=True
        )
        report = json.loads(said.stdout)
        print(f"| peak memory of that, {count} runs | {report['peak_mb']:.0f} MB |")


def peak(count: int, out: Path) -> None:
    run_sweep(sweep(range(1, count + 1)), out)
    print(json.dumps({"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
