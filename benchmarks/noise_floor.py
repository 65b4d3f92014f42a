"""Conformance of the kernel's controllers with themselves, against the number of seeds.

    python benchmarks/noise_floor.py [--controllers cubic] [--seeds 20] [--start-window-s 0]
        [--write]

For each number of trials a side (1, 2, 5, 10, 20), disjoint random sets of trials are compared;
mean and the span between the 2.5th and 97.5th percentile over 200 draws. The second table has the
mean and the standard deviation over trials of each trial's mean throughput and queueing delay.
Runs that exist are loaded; new ones of 120 s take about 4 processor seconds each. Results of 20
seeds are in the tables ``noise_floor`` and ``noise_floor_spread``, those of 40 in
``noise_floor_40_seeds``.
"""

from __future__ import annotations

import argparse

import numpy as np
from markdown_tables import arguments, record

from qbkit.execution.many import datasets, run_all
from qbkit.metrics import conformance, envelope, operating_points
from qbkit.spec import Bottleneck, Experiment

SIDES = (1, 2, 5, 10, 20)
DRAWS = 200
SEEDS = 20
"""Of the tables in the documentation."""
Row = dict[str, object]


def floor(points: list[np.ndarray], definition: str, column: str) -> list[Row]:
    """One row per number of trials a side; the column has the mean and the span."""
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
        text = f"{np.mean(values):.2f} [{low:.2f}, {high:.2f}]"
        rows.append({"seeds a side": side, column: text})
    return rows


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


def spread(points: list[np.ndarray], column: str) -> list[Row]:
    """How trials of one controller differ from each other: a row for each axis."""
    means = np.array([p.mean(axis=0) for p in points])
    texts = [
        f"{mean:.2f} ± {deviation:.2f}"
        for mean, deviation in zip(means.mean(axis=0), means.std(axis=0, ddof=1), strict=True)
    ]
    units = ("ms", "Mbit/s")
    return [
        {"mean of the trials": unit, column: text} for unit, text in zip(units, texts, strict=True)
    ][::-1]


def column(controller: str, definition: str, words: argparse.Namespace) -> str:
    """What a column of the tables is of, in words."""
    parts = [f"tcp:{controller}", "at once" if words.start_window_s == 0 else "random starts"]
    if definition != "imc22":
        parts.append(definition)
    if words.jitter_ms is not None:
        parts.append(f"jitter {words.jitter_ms:g} ms")
    return ", ".join(parts)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--controllers", nargs="+", default=["cubic", "reno", "bbr"])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--duration-s", type=float, default=120)
    parser.add_argument("--jitter-ms", type=float)
    parser.add_argument("--start-window-s", type=float, help="0: both flows start at once")
    parser.add_argument("--definitions", nargs="+", default=["imc22"])
    words = parser.parse_args()
    floors, spreads = [], []
    for controller in words.controllers:
        points = trials(controller, words)
        spreads += spread(points, column(controller, "imc22", words))
        for definition in words.definitions:
            floors += floor(points, definition, column(controller, definition, words))
    more = "" if words.seeds == SEEDS else f"_{words.seeds}_seeds"
    record(f"noise_floor{more}", floors, ["seeds a side"], words.write)
    spread_too = words.write and words.seeds == SEEDS
    record("noise_floor_spread", spreads, ["mean of the trials"], spread_too)


if __name__ == "__main__":
    main()
