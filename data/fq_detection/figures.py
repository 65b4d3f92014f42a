"""Publishes the runs of the paper's figures 2 to 7 for notebooks/08_fq_detection.ipynb.

python data/fq_detection/figures.py
"""

from __future__ import annotations

from pathlib import Path

import qbkit as qb

HERE = Path(__file__).parent
BUFFER_PACKETS = 100
HEAD_START_S = 5.0
ALONE_S, TOGETHER_S = 15.0, 20.0


def main() -> None:
    """Two flows alone at 10 Mbit/s, two pairs at 50 Mbit/s; 10 ms and 100 packets."""
    slow = qb.Bottleneck(rate_mbps=10, rtt_ms=10, buffer_packets=BUFFER_PACKETS)
    shared = slow.model_copy(update={"rate_mbps": 50.0})
    fair = qb.Bottleneck(
        rate_mbps=50,
        rtt_ms=10,
        buffer_packets=10_000,
        qdisc="fq",
        qdisc_options={"flow_limit": BUFFER_PACKETS},
    )
    experiments = {
        "figure-2": alone("tcp:cubic", slow),
        "figure-3": alone("qbkit:delay", slow),
        "figures-4-5": beside_cubic("qbkit:delay", shared),
        "figures-6-7": beside_cubic("qbkit:fq-detect", fair),
    }
    runs = {name: experiment.run() for name, experiment in experiments.items()}
    qb.publish_runs(runs, HERE / "figures", series=["throughput_mbps", "queue_delay_ms"])


def alone(flow: str, link: qb.Bottleneck) -> qb.Experiment:
    """A flow on an empty link."""
    return qb.Experiment(bottleneck=link, flows=[flow], duration_s=ALONE_S)


def beside_cubic(flow: str, link: qb.Bottleneck) -> qb.Experiment:
    """The flow joins a CUBIC flow that has had the link for 5 s."""
    return qb.Experiment(
        bottleneck=link,
        flows=["tcp:cubic", qb.Flow(flow, start_s=HEAD_START_S)],
        duration_s=TOGETHER_S,
        start_window_s=0,
    )


if __name__ == "__main__":
    main()
