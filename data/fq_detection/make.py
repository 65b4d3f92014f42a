"""Makes verdicts.csv, which notebooks/08_fq_detection.ipynb opens where no engine works.

python data/fq_detection/make.py fq fifo --competitor tcp:cubic --seeds 1

The networks are those of the paper's own code, which rounds its five evenly spaced values; with
``--coarse`` the least, middle and greatest of them. What was run before is loaded. The table is
written after every rate, and keeps the rows that it has.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import pandas as pd

import qbkit as qb
from qbkit.studies.fair_queuing import detection_experiment

HERE = Path(__file__).parent
RATES_MBPS = (5, 16, 28, 39, 50)
RTTS_MS = (10, 32, 55, 78, 100)
BUFFERS_PACKETS = (1, 26, 50, 75, 100)
FAIR = ("fq", "fq_codel", "cake", "sfq")
LIMIT_PACKETS = 10_000
"""Of fq as a whole, its default; the buffer is that of one flow."""
KEYS = ["qdisc", "competitor", "seed", "rate_mbps", "rtt_ms", "buffer_packets"]


def main() -> None:
    """Run what is asked for, rate by rate."""
    parser = argparse.ArgumentParser()
    parser.add_argument("qdiscs", nargs="+")
    parser.add_argument("--competitor", default="")
    parser.add_argument("--coarse", action="store_true")
    parser.add_argument("--regular", action="store_true", help="pace at regular intervals")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--out", type=Path, default=HERE / "verdicts.csv")
    args = parser.parse_args()
    values = slice(None, None, 2 if args.coarse else 1)
    for qdisc, seed, rate in itertools.product(args.qdiscs, args.seeds, RATES_MBPS[values]):
        networks = list(itertools.product(RTTS_MS[values], BUFFERS_PACKETS[values]))
        how = {"competitor": args.competitor or None, "is_randomised": not args.regular}
        rows = run_rate(qdisc, seed, rate, networks, how)
        if not rows:
            continue
        known = [pd.read_csv(args.out, keep_default_na=False)] if args.out.exists() else []
        whole = pd.concat([*known, pd.DataFrame(rows)]).drop_duplicates(KEYS, keep="last")
        whole.sort_values(KEYS).to_csv(args.out, index=False, float_format="%.6g")
        right = sum(row["found"] == ("fair" if row["is_fair"] else "shared") for row in rows)
        print(
            f"{qdisc} {args.competitor or 'alone'} seed {seed} {rate} Mbit/s: {right}/{len(rows)}",
            flush=True,
        )


def run_rate(
    qdisc: str, seed: int, rate_mbps: int, networks: list[tuple[int, int]], how: dict[str, Any]
) -> list[dict[str, object]]:
    """The networks of a rate (RTT in ms, buffer in packets), a row each."""
    experiments = [
        detection_experiment(link(qdisc, rate_mbps, rtt_ms, buffer), seed=seed, **how)
        for rtt_ms, buffer in networks
    ]
    rows = []
    for (rtt_ms, buffer), outcome in zip(networks, qb.run_all(experiments), strict=True):
        if outcome.run is None:
            print(f"{qdisc} {rate_mbps} {rtt_ms} {buffer}: {outcome.error}")
            continue
        found = qb.fair_queuing_of(outcome.run)
        rows.append(
            {
                "qdisc": qdisc,
                "competitor": how["competitor"] or "",
                "seed": seed,
                "rate_mbps": rate_mbps,
                "rtt_ms": rtt_ms,
                "buffer_packets": buffer,
                "is_fair": qdisc in FAIR,
                "found": {True: "fair", False: "shared", None: "nothing"}[found.is_fair],
                "loss_ratio": found.loss_ratio,
                "probe_ms": found.probe_ms,
                **{f"sent_packets_{i}": n for i, n in enumerate(found.sent_packets, 1)},
                **{f"lost_packets_{i}": n for i, n in enumerate(found.lost_packets, 1)},
                "run": outcome.run.attrs["hash"],
                "cpu_s": outcome.run.attrs["cpu_s"],
            }
        )
    return rows


def link(qdisc: str, rate_mbps: float, rtt_ms: float, buffer_packets: int) -> qb.Bottleneck:
    """The buffer is a shared queue's, or with fq each flow's, as in the paper."""
    if qdisc != "fq":
        return qb.Bottleneck(
            rate_mbps=rate_mbps, rtt_ms=rtt_ms, buffer_packets=buffer_packets, qdisc=qdisc
        )
    return qb.Bottleneck(
        rate_mbps=rate_mbps,
        rtt_ms=rtt_ms,
        buffer_packets=LIMIT_PACKETS,
        qdisc="fq",
        qdisc_options={"flow_limit": buffer_packets},
    )


if __name__ == "__main__":
    main()
