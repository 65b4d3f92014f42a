"""Conformance of the kernel's controllers with themselves, against the number of seeds.

    python benchmarks/noise_floor.py [--controllers cubic reno bbr] [--seeds 40] [--jitter-ms 0.3]

For each number of trials a side (1, 2, 5, 10, 20), disjoint random sets of trials are compared;
mean and the span between the 2.5th and 97.5th percentile over 200 draws. Runs that exist are
loaded; new ones take about 6 processor seconds each.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from qbkit.batch import datasets, run_all
from qbkit.metrics import conformance, envelope, operating_points
from qbkit.spec import Bottleneck, Experiment

SIDES = (1, 2, 5, 10, 20)
DRAWS = 200


def floor(points: list[np.ndarray], definition: str) -> pd.DataFrame:
    """One row per number of trials a side."""
    rng = np.random.default_rng(0)
    rows = []
    for side in (n for n in SIDES if 2 * n <= len(points)):
        values = []
        for _ in range(DRAWS):
            order = rng.permutation(len(points))
            a, b = ([points[i] for i in part] for part in (order[:side], order[side : 2 * side]))
            values.append(conformance(envelope(a, definition), envelope(b, definition)))
        low, high = np.quantile(values, [0.025, 0.975])
        rows.append({"seeds": side, "conformance": np.mean(values), "low": low, "high": high})
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--controllers", nargs="+", default=["cubic", "reno", "bbr"])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--jitter-ms", type=float)
    parser.add_argument("--definitions", nargs="+", default=["imc22", "refined"])
    parser.add_argument("--out", help="CSV file to write")
    words = parser.parse_args()
    frames = []
    for controller in words.controllers:
        flows = [f"tcp:{controller}"] * 2
        runs = datasets(
            run_all(
                [
                    Experiment(
                        bottleneck=Bottleneck(),
                        flows=flows,
                        duration_s=120,
                        seed=seed,
                        jitter_ms=words.jitter_ms,
                    )
                    for seed in range(1, words.seeds + 1)
                ],
                progress=True,
            )
        )
        points = [operating_points(run, 0).xy for run in runs]
        for definition in words.definitions:
            frame = floor(points, definition)
            frames.append(frame.assign(controller=controller, definition=definition))
    table = pd.concat(frames)
    print(table.round(2).to_string(index=False))
    if words.out:
        table.to_csv(words.out, index=False)


if __name__ == "__main__":
    main()
