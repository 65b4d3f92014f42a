"""What real-time video has beside bulk transfers: throughput, latency of frames, freezes.

    python benchmarks/media.py [--write] [media:gcc media:scream]

Each sender runs alone, and beside CUBIC and BBR, for 60 s at 5 Mbit/s and 50 ms with a buffer of
1 and 4 BDP. A cell is the mean of three seeds, with the least and the largest. The table is
``media``.
"""

from __future__ import annotations

import argparse
import itertools

import pandas as pd
from markdown_tables import add_write, record

import qbkit as qb

SENDERS = ("media:gcc", "media:scream")
BESIDE = ("", "tcp:cubic", "tcp:bbr", "quinn:bbr")
BUFFERS_BDP, SEEDS, DURATION_S = (1, 4), (1, 2, 3), 60
COLUMNS = {
    "Mbit/s": "{throughput_mbps:.1f}",
    "latency p95, ms": "{object_p95_ms:.0f}",
    "later than 250 ms, %": "{late_250ms_percent:.1f}",
    "freezes": "{freezes:.0f}",
    "frozen, s": "{frozen_s:.1f}",
}
"""Column → a format of the summary."""
KEYS = ("sender", "beside", "buffer, BDP")


def row(sender: str, beside: str, buffer_bdp: float) -> dict[str, str]:
    """The cells of a sender beside another."""
    link = qb.Bottleneck(rate_mbps=5, rtt_ms=50, buffer_bdp=buffer_bdp)
    flows = [sender, beside] if beside else [sender]
    runs = [
        qb.Experiment(bottleneck=link, flows=flows, duration_s=DURATION_S, seed=seed).run()
        for seed in SEEDS
    ]
    found = pd.concat([run.qb.summary().iloc[[0]] for run in runs])
    cells = {title: cell(found, form) for title, form in COLUMNS.items()}
    return dict(zip(KEYS, (sender, beside or "nothing", f"{buffer_bdp:g}"), strict=True)) | cells


def cell(found: pd.DataFrame, form: str) -> str:
    """The mean, and the range where it shows."""
    mean, least, most = (
        form.format_map(found.agg(how, numeric_only=True)) for how in ("mean", "min", "max")
    )
    return mean if least == most else f"{mean} ({least} to {most})"


def main() -> None:
    """Print or write a row for each pair and buffer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("senders", nargs="*", default=SENDERS)
    add_write(parser)
    words = parser.parse_args()
    for case in itertools.product(words.senders, BESIDE, BUFFERS_BDP):
        record("media", [row(*case)], KEYS, words.write)


if __name__ == "__main__":
    main()
