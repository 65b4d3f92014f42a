"""Prints every suspect and symptom of data/README.md from the published inference of the cases.

python data/causes.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import qbkit as qb

CASES = {
    "bbr-120-explained": "BBR's rate at 120 %, 1 BDP",
    "google-cubic": "Google QUICHE's CUBIC, 3 BDP",
    "ack-10": "quinn's NewReno, an ACK for ten packets, 1 BDP",
    "quiche-now": "quiche 0.30's CUBIC, 1 BDP",
}


def rows(explained: qb.Explanation) -> Iterator[str]:
    """A row of the table for each suspect, then for each symptom."""
    for suspect in explained.suspects:
        yield f"| suspect | {suspect} | {explained.effect_text(suspect).removeprefix('alone: ')} |"
    for symptom in explained.symptoms:
        yield f"| symptom | {symptom} | |"


if __name__ == "__main__":
    for name, title in CASES.items():
        print(f"\n{title}:\n", "| | what differs | throughput, alone |", "|---|---|---|", sep="\n")
        print(*rows(qb.load_explanation(Path(__file__).parent / "cases" / name)), sep="\n")
