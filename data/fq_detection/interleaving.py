"""Makes interleaving.csv: packets of both connections at a shared queue, by the way they are paced.

python data/fq_detection/interleaving.py

The sender has no jitter here, which would blur the pattern. The window is the last 30 ms before
flow 2 is told to stop.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.studies.fair_queuing import detection_experiment
from qbkit.traces.run.pcap import read_packets

HERE = Path(__file__).parent
LINK = qb.Bottleneck(rate_mbps=5, rtt_ms=10, buffer_packets=26)
WINDOW_S = 0.03
LEAST_BYTES = 1000
"""Of a packet with data."""


def main() -> None:
    """One run with random intervals, one with regular ones."""
    parts = []
    for pacing, is_randomised in (("random", True), ("regular", False)):
        experiment = detection_experiment(LINK, is_randomised=is_randomised)
        run = experiment.model_copy(update={"jitter_ms": 0.0}).run(keep="pcap")
        found = qb.fair_queuing_of(run)
        print(pacing, found)
        packets = connections(run)
        last_s = packets.time_s.max()
        window = packets[packets.time_s.between(last_s - WINDOW_S, last_s)]
        parts.append(
            pd.DataFrame(
                {
                    "pacing": pacing,
                    "time_ms": (window.time_s - window.time_s.min()) * 1e3,
                    "connection": window.connection,
                    "is_dropped": window.is_dropped,
                    "loss_ratio": found.loss_ratio,
                }
            )
        )
    pd.concat(parts).to_csv(HERE / "interleaving.csv", index=False, float_format="%.5g")


def connections(run: xr.Dataset) -> pd.DataFrame:
    """Arrivals at the queue with their connection, 1 or 2; the run itself has both as one flow."""
    captured = read_packets(run.qb.kept_folder / "before.pcap")
    to_server = captured.destination_port == captured.destination_port[0]
    is_data = to_server & (captured.frame_bytes >= LEAST_BYTES)
    senders = captured.source_port[is_data]
    ports = list(dict.fromkeys(senders.tolist()))
    fates = run.packet_fate.values[run.packet_size_bytes.values >= LEAST_BYTES]
    return pd.DataFrame(
        {
            "time_s": captured.time_ns[is_data] / 1e9,
            "connection": [1 + ports.index(port) for port in senders.tolist()],
            "is_dropped": np.asarray(fates) != 0,
        }
    )


if __name__ == "__main__":
    main()
