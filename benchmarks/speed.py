"""Virtual seconds per processor second, fixed cost of a run, and two runs side by side.

    python benchmarks/speed.py [--flows tcp:cubic tcp:cubic] [--duration-s 120] [--json]

Everything is counted: boot, network, flows, capture, dataset, file. Each figure is the best of
three, in a cache of its own; run it on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path

from qbkit import runner
from qbkit.spec import Experiment


def cpu_s() -> float:
    """Processor seconds of this process and its ended children."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def cost(flows: list[str], duration_s: float, seed: int) -> tuple[float, float]:
    """(processor seconds, wall-clock seconds) of one run from spec to stored dataset."""
    experiment = Experiment(flows=flows, duration_s=duration_s, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        cpu, wall = cpu_s(), time.monotonic()
        runner.run(experiment, engine="virtual", out=Path(folder) / "run.nc")
        return cpu_s() - cpu, time.monotonic() - wall


def best(flows: list[str], duration_s: float) -> tuple[float, float]:
    """The cheapest of three runs."""
    return min(cost(flows, duration_s, seed) for seed in (1, 2, 3))


def side_by_side(flows: list[str], duration_s: float) -> float:
    """Rate of two runs at once over the rate of one; the shortest of three tries each."""
    alone = min(at_once(flows, duration_s, 1) for _ in range(3))
    return 2 * alone / min(at_once(flows, duration_s, 2) for _ in range(3))


def at_once(flows: list[str], duration_s: float, number: int) -> float:
    """Wall-clock seconds of as many runs side by side, each in a process of its own."""
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=cost, args=(flows, duration_s, s + 1)) for s in range(number)]
    started = time.monotonic()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", nargs="+", default=["tcp:cubic", "tcp:cubic"])
    parser.add_argument("--duration-s", type=float, default=120)
    parser.add_argument("--json", action="store_true")
    words = parser.parse_args()
    cost(words.flows, 0.1, 1)  # imports and builds are not part of a run
    fixed_s, _ = best(words.flows, 0.1)
    whole_s, _ = best(words.flows, words.duration_s)
    figures = {
        "flows": words.flows,
        "duration_s": words.duration_s,
        "fixed_cpu_s": round(fixed_s, 3),
        "cpu_s": round(whole_s, 3),
        "virtual_s_per_cpu_s": round(words.duration_s / whole_s, 2),
    }
    if len(os.sched_getaffinity(0)) > 1:
        figures["two_at_once"] = round(side_by_side(words.flows, words.duration_s), 2)
    if words.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:22} {value}")


if __name__ == "__main__":
    main()
