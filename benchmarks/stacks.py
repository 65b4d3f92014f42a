"""Every ready implementation alone on 20 Mbit/s, 50 ms, 1 BDP for 20 s: what it reaches and costs.

    python benchmarks/stacks.py [--write]

The table is ``stacks``. Runs one after the other, pinned to one processor each, on an otherwise
idle machine.
"""

from __future__ import annotations

from markdown_tables import arguments, record

import qbkit as qb

KEYS = ["implementation"]


def main() -> None:
    parser = arguments(__doc__)
    words = parser.parse_args()
    for name in qb.list_implementations():
        run = qb.Experiment(flows=[name], duration_s=20, seed=1).run(rerun=True)
        mbps = float(run.throughput_mbps.sel(time=slice(2, None)).mean())
        delay_ms = float(run.qb.summary().queue_delay_mean_ms[0])
        drops = int(run.dropped_packets.sum())
        cells = row(name, mbps, drops, delay_ms, run.attrs["cpu_s"])
        record("stacks", [cells], KEYS, words.write)


def row(name: str, mbps: float, drops: int, delay_ms: float, cpu_s: float) -> dict[str, object]:
    return {
        "implementation": name,
        "Mbit/s from 2 s on": f"{mbps:.1f}",
        "drops": drops,
        "mean queueing delay, ms": f"{delay_ms:.0f}",
        "processor s": f"{cpu_s:.1f}",
    }


if __name__ == "__main__":
    main()
