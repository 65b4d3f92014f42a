"""Virtual seconds per processor second, fixed cost of a run, and two runs side by side.

    python benchmarks/speed.py [--flows tcp:cubic tcp:cubic] [--duration-s 120] [--write]
    python benchmarks/speed.py --all-stacks --duration-s 20 [--code after] [--write]

Everything is counted: boot, network, flows, capture, dataset, file; ``shell_cpu_s`` is `qbkit run`
of one virtual second, from the shell to the file. Each figure is the best of three, in a cache of
its own; run it on an idle machine. With --all-stacks, the first controller of every ready stack
runs against tcp:cubic, best of two, one line each. QBKIT_KERNEL chooses another kernel. The tables
are ``speed`` and ``speed_stacks``; ``--code`` names the code that was measured.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markdown_tables import add_write, record

from qbkit import stacks
from qbkit.execution import runner
from qbkit.spec import Experiment
from qbkit.testbed import kernel

KEYS = ["flows", "code"]
STACK_KEYS = ["stack, against tcp:cubic"]
WARM_UP_S = 3
"""In less time a browser does not connect."""


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


def best_cpu_s(flows: list[str], duration_s: float, tries: int = 3) -> float:
    """Processor seconds of the cheapest run; each try has a seed of its own."""
    return min(cost(flows, duration_s, seed)[0] for seed in range(1, tries + 1))


def shell_cpu_s(flows: list[str]) -> float:
    """Processor seconds of `qbkit run` of one virtual second, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["run", *flows, "--duration-s", "1", "--out", f"{folder}/run.nc", "--json"]
        before = cpu_s()
        command = [sys.executable, "-m", "qbkit.cli", *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return cpu_s() - before


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


def speed(flows: list[str], duration_s: float, tries: int) -> dict[str, Any]:
    """The cost of whole runs."""
    cost(flows, WARM_UP_S, 1)  # imports and builds are not part of a run
    whole_s = best_cpu_s(flows, duration_s, tries)
    return {
        "flows": flows,
        "kernel": kernel.require().fingerprint,
        "duration_s": duration_s,
        "cpu_s": round(whole_s, 3),
        "virtual_s_per_cpu_s": round(duration_s / whole_s, 2),
    }


def overheads(flows: list[str], duration_s: float) -> dict[str, float]:
    """The cost of what is not the flows."""
    found = {
        "fixed_cpu_s": round(best_cpu_s(flows, 0.1), 3),
        "shell_cpu_s": round(min(shell_cpu_s(flows) for _ in range(3)), 3),
    }
    if len(os.sched_getaffinity(0)) > 1:
        found["two_at_once"] = round(side_by_side(flows, duration_s), 2)
    return found


def measure(words: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One dictionary for each pair of flows."""
    if not words.all_stacks:
        found = speed(words.flows, words.duration_s, 3)
        yield {**found, **overheads(words.flows, words.duration_s)}
        return
    for stack in stacks.all_stacks():
        if stack.status().ready:
            flows = [f"{stack.name}:{stack.controllers()[0]}", "tcp:cubic"]
            yield speed(flows, words.duration_s, 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--flows", nargs="+", default=["tcp:cubic", "tcp:cubic"])
    parser.add_argument("--all-stacks", action="store_true")
    parser.add_argument("--duration-s", type=float, default=120)
    parser.add_argument("--code", default="now", help="what was measured, in a word")
    parser.add_argument("--json", action="store_true", help="one JSON object a line; no table")
    add_write(parser)
    words = parser.parse_args()
    for figures in measure(words):
        if words.json:
            print(json.dumps(figures), flush=True)
        elif words.all_stacks:
            record("speed_stacks", [stack_row(figures, words.code)], STACK_KEYS, words.write)
        else:
            record("speed", [row(figures, words.code)], KEYS, words.write)


def row(figures: dict[str, Any], code: str) -> dict[str, object]:
    """One pair of flows, in the table of speed."""
    return {
        "flows": ", ".join(figures["flows"]),
        "code": code,
        "virtual s": f"{figures['duration_s']:g}",
        "processor s": figures["cpu_s"],
        "virtual s per processor s": f"{figures['virtual_s_per_cpu_s']:.1f}",
        "fixed cost, processor s": figures["fixed_cpu_s"],
        "`qbkit run` of 1 virtual s, processor s": figures["shell_cpu_s"],
        "two at once": figures.get("two_at_once", ""),
    }


def stack_row(figures: dict[str, Any], code: str) -> dict[str, object]:
    """One stack, with the column of the code that was measured."""
    return {"stack, against tcp:cubic": figures["flows"][0], code: f"{figures['cpu_s']:.1f}"}


if __name__ == "__main__":
    main()
