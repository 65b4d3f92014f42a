"""How exact a link is whose capacity changes, and what the schedule costs.

    python benchmarks/changing_links.py [--flow tcp:cubic] [--write]

One flow alone for 20 s at 5 to 35 Mbit/s and 20 ms. Each row has steps of another length; the
errors are those of each frame's departure against an ideal link (`ideal_link`). The processor time
is the least of three runs, per frame; its ratio is to that of the constant link of ``tc``. The
table is ``changing_links``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from ideal_link import departures, served_s
from markdown_tables import arguments, record

from qbkit.execution import runner
from qbkit.spec import Bottleneck, Experiment

DURATION_S, MEAN_MBPS, RTT_MS, REPEATS = 20.0, 20.0, 20.0, 3
STEPS_S = (1.0, 0.1, 0.01, 0.001)
HEAD = (
    *("steps", "changes", "median error, us", "99 %, us", "largest, us"),
    *("carried, Mbit/s", "processor us a frame", "of the constant link's"),
)


def schedule(step_s: float) -> list[tuple[float, float]]:
    """Random rates between 5 and 35 Mbit/s, the same ones every time."""
    times_s = np.arange(0, DURATION_S, step_s).round(6)
    mbps = np.random.default_rng(1).uniform(5, 35, len(times_s)).round(3)
    return list(zip(times_s.tolist(), mbps.tolist(), strict=True))


def measured(flow: str, capacity: list[tuple[float, float]] | None) -> tuple[list[Any], float]:
    """The errors and the throughput of a run, and the least processor time in us of a frame."""
    link = Bottleneck(rate_mbps=MEAN_MBPS, rtt_ms=RTT_MS, buffer_bdp=4, capacity=capacity)
    spec = Experiment(bottleneck=link, flows=[flow], duration_s=DURATION_S)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run.nc"
        runs = [runner.run(spec, out=out, rerun=True) for _ in range(REPEATS)]
    at_s, left_s, sizes = departures(runs[0])
    times_s, mbps = zip(*(capacity or [(0.0, MEAN_MBPS)]), strict=True)
    errors_us = np.abs(left_s - served_s(at_s, sizes, list(times_s), list(mbps))) * 1e6
    carried = sizes[left_s < DURATION_S].sum() * 8e-6 / DURATION_S
    found = [*(f"{np.percentile(errors_us, q):.2f}" for q in (50, 99, 100)), f"{carried:.2f}"]
    return found, min(float(run.attrs["cpu_s"]) for run in runs) * 1e6 / len(sizes)


def main() -> None:
    """Print or write a row for each length of the steps."""
    parser = arguments(__doc__)
    parser.add_argument("--flow", default="tcp:cubic")
    words = parser.parse_args()
    constant, base_us = measured(words.flow, None)
    rows = [["none, tc's tbf", "0", *constant, f"{base_us:.1f}", "1.00"]]
    for step_s in (DURATION_S, *STEPS_S):
        capacity = schedule(step_s) if step_s < DURATION_S else [(0.0, MEAN_MBPS)]
        found, cpu_us = measured(words.flow, capacity)
        name = f"{step_s * 1e3:g} ms" if step_s < DURATION_S else "none, a schedule of one"
        changes = str(len(capacity) - 1)
        rows.append([name, changes, *found, f"{cpu_us:.1f}", f"{cpu_us / base_us:.2f}"])
    found = [dict(zip(HEAD, row, strict=True)) for row in rows]
    record("changing_links", found, HEAD[:1], words.write)


if __name__ == "__main__":
    main()
