"""Makes means.csv: CUBIC against detection + delay-based, 30 s each on a link with fair queuing.

python data/fq_detection/means.py --rates 5 16

The paper's table (section VI-D) has all 125 networks; this has the least, middle and greatest RTT
and buffer at the rates asked for, or other buffers with ``--buffers``. It keeps the rows that it
has.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from make import BUFFERS_PACKETS, RTTS_MS, add, link

import qbkit as qb

HERE = Path(__file__).parent
DURATION_S = 30.0
KEYS = ["flow", "rate_mbps", "rtt_ms", "buffer_packets"]


def main() -> None:
    """One rate after the other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rates", type=int, nargs="+", default=[5, 16])
    parser.add_argument("--buffers", type=int, nargs="+", default=BUFFERS_PACKETS[::2])
    args = parser.parse_args()
    for rate in args.rates:
        add(means(rate, args.buffers), HERE / "means.csv", KEYS)


def means(rate_mbps: int, buffers_packets: Sequence[int]) -> list[dict[str, object]]:
    """A row for each network and controller; queueing delay and throughput as in `summary`."""
    cells = [
        (flow, rate_mbps, rtt_ms, buffer)
        for flow in ("tcp:cubic", "qbkit:fq-detect")
        for rtt_ms in RTTS_MS[::2]
        for buffer in buffers_packets
    ]
    experiments = [
        qb.Experiment(bottleneck=link("fq", *network), flows=[flow], duration_s=DURATION_S)
        for flow, *network in cells
    ]
    rows = []
    for cell, outcome in zip(cells, qb.run_all(experiments, progress=True), strict=True):
        if outcome.run is None:
            print(f"{cell}: {outcome.error}")
            continue
        (summary,) = qb.metrics.summary(outcome.run).to_dict("records")
        is_detected = cell[0] != "tcp:cubic" and qb.fair_queuing_of(outcome.run).is_fair
        rows.append(
            {
                **dict(zip(KEYS, cell, strict=True)),
                **{
                    name: summary[name]
                    for name in ("throughput_mbps", "rtt_mean_ms", "loss_percent")
                },
                "is_detected": is_detected,
                "run": outcome.run.attrs["hash"],
                "cpu_s": outcome.run.attrs["cpu_s"],
            }
        )
    return rows


if __name__ == "__main__":
    main()
