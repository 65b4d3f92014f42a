"""What the sweep layer costs: overhead of a run, a resume with nothing to do, memory.

python benchmarks/sweep.py: a Markdown table on stdout. Real runs of 1 virtual second; the resume
and the memory are those of a finished sweep of 1,000, whose results are copies of these.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from qbkit.batch import run_all
from qbkit.results import Results
from qbkit.runner import names
from qbkit.sweep import Sweep
from qbkit.sweeping import run_sweep

RUNS, MANY, SEEDS = 24, 1000, 2_000_000


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
    return None


def overhead(out: Path) -> None:
    """A sweep of short runs against the same number of runs without it, both on all processors."""
    first = sweep(range(1, RUNS + 1))
    began = time.perf_counter()
    run_sweep(sweep(range(SEEDS, SEEDS + 2)), out / "warm")
    start_s = time.perf_counter() - began
    began = time.perf_counter()
    run_sweep(first, out / "runs")
    swept_s = time.perf_counter() - began
    began = time.perf_counter()
    run_all([p.experiment for p in sweep(range(SEEDS + 100, SEEDS + 100 + RUNS)).points()])
    plain_s = time.perf_counter() - began
    each_ms = 1e3 * (swept_s - plain_s) / RUNS
    print(f"| a sweep of 2 runs of 1 s, cluster started and ended | {start_s:.1f} s |")
    print(f"| {RUNS} runs of 1 s without a sweep | {plain_s:.1f} s |")
    print(f"| the same as a sweep | {swept_s:.1f} s: {each_ms:.0f} ms more a run, start included |")


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
