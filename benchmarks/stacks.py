"""Every ready implementation alone on 20 Mbit/s, 50 ms, 1 BDP for 20 s: what it reaches and costs.

python benchmarks/stacks.py: a Markdown table on stdout. Runs one after the other, pinned to one
processor each, on an otherwise idle machine.
"""

from __future__ import annotations

import qbkit as qb

HEAD = "| implementation | Mbit/s from 2 s on | drops | mean queueing delay, ms | processor s |"


def main() -> None:
    print(HEAD, "|---|---|---|---|---|", sep="\n")
    for name in qb.list_implementations():
        run = qb.Experiment(flows=[name], duration_s=20, seed=1).run(rerun=True)
        mbps = float(run.throughput_mbps.sel(time=slice(2, None)).mean())
        row = run.qb.summary().iloc[0]
        drops = int(run.dropped_packets.sum())
        cost_s = run.attrs["cpu_s"]
        print(f"| {name} | {mbps:.1f} | {drops} | {row.queue_delay_mean_ms:.0f} | {cost_s:.1f} |")


if __name__ == "__main__":
    main()
