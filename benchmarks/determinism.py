"""Repeat one experiment on a busy machine and compare every byte of every data variable.

python benchmarks/determinism.py [--flows quic-go:cubic tcp:cubic] [--repeats 20]
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

import xarray as xr

from qbkit.spec import Experiment

RESTLESS = str(Path(__file__).with_name("restless.py"))
NEIGHBOURS = [["-c", "while True: pass"], [RESTLESS], [RESTLESS]]
"""Arguments of Python: one that spins, and two that preempt a guest at any instruction."""


def digest(run: xr.Dataset) -> str:
    """SHA-256 over the names and bytes of all variables."""
    whole = hashlib.sha256()
    for name in sorted(run.variables, key=str):
        whole.update(str(name).encode() + run[name].values.tobytes())
    return whole.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", nargs="+", default=["quic-go:cubic", "tcp:cubic"])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--duration-s", type=float, default=20)
    words = parser.parse_args()
    experiment = Experiment(flows=words.flows, duration_s=words.duration_s)
    neighbours = [subprocess.Popen([sys.executable, *each]) for each in 2 * NEIGHBOURS]
    found = set()
    try:
        for repeat in range(words.repeats):
            with tempfile.TemporaryDirectory() as folder:
                found.add(digest(experiment.run(engine="virtual", out=Path(folder) / "run.nc")))
            print(f"{repeat + 1} runs, {len(found)} distinct", flush=True)
    finally:
        for process in neighbours:
            process.kill()
            process.wait()
    sys.exit(len(found) != 1)


if __name__ == "__main__":
    main()
