"""Conformance of the kernel's controllers with themselves, against the number of seeds.

    python benchmarks/noise_floor.py [--controllers cubic] [--seeds 40] [--start-window-s 0]

For each number of trials a side (1, 2, 5, 10, 20), disjoint random sets of trials are compared;
mean and the span between the 2.5th and 97.5th percentile over 200 draws. The second table has the
mean and the standard deviation over trials of each trial's mean throughput and queueing delay.
Runs that exist are loaded; new ones of 120 s take about 4 processor seconds each.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from qbkit.execution.many import datasets, run_all
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
            values.append(
                conformance(envelope(a, definition=definition), envelope(b, definition=definition))
            )
        low, high = np.quantile(values, [0.025, 0.975])
        rows.append({"seeds": side, "conformance": np.mean(values), "low": low, "high": high})
    return pd.DataFrame(rows)


def trials(controller: str, words: argparse.Namespace) -> list[np.ndarray]:
    """Operating points (n, 2) of the first of two equal flows, one array a seed."""
    wanted = [
        Experiment(
            bottleneck=Bottleneck(),
            flows=[f"tcp:{controller}"] * 2,
            duration_s=words.duration_s,
            seed=seed,
            jitter_ms=words.jitter_ms,
            start_window_s=words.start_window_s,
        )
        for seed in range(1, words.seeds + 1)
    ]
    return [operating_points(run, 0).xy for run in datasets(run_all(wanted, progress=True))]


def spread(points: list[np.ndarray]) -> dict[str, float]:
    """How trials of one controller differ from each other."""
    means = np.array([p.mean(axis=0) for p in points])
    (delay_ms, mbps), (delay_sd_ms, mbps_sd) = means.mean(axis=0), means.std(axis=0, ddof=1)
    return {
        "throughput_mbps": mbps,
        "sd_mbps": mbps_sd,
        "queue_delay_ms": delay_ms,
        "sd_ms": delay_sd_ms,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--controllers", nargs="+", default=["cubic", "reno", "bbr"])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--duration-s", type=float, default=120)
    parser.add_argument("--jitter-ms", type=float)
    parser.add_argument("--start-window-s", type=float, help="0: both flows start at once")
    parser.add_argument("--definitions", nargs="+", default=["imc22", "refined"])
    parser.add_argument("--out", help="CSV file to write")
    words = parser.parse_args()
    frames, spreads = [], []
    for controller in words.controllers:
        points = trials(controller, words)
        spreads.append({"controller": controller, **spread(points)})
        for definition in words.definitions:
            frame = floor(points, definition)
            frames.append(frame.assign(controller=controller, definition=definition))
    table = pd.concat(frames)
    print(table.round(2).to_string(index=False))
    print(pd.DataFrame(spreads).round(3).to_string(index=False))
    if words.out:
        table.to_csv(words.out, index=False)


if __name__ == "__main__":
    main()
