"""Makes the table of BBRs along the draft's test cases: one to ten processor minutes a sender.

python data/bbr_draft/make.py [SENDER ...]

Runs are stored as always, and the table is written after each sender, so it can be stopped and
started at any time; senders that are not given keep their rows.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

import qbkit as qb
from qbkit.errors import QbkitError

TABLE = Path(__file__).with_name("cases.csv")
REPRODUCIBLE: dict[str, object] = {}
OTHER = {"cases.csv": "each row has the command of its first run"}


def main(senders: list[str]) -> None:
    """Judge each sender with three seeds, and write the table of all."""
    for sender in senders:
        try:
            report = qb.judge_cases(sender, progress=True)
        except QbkitError as error:
            print(f"{sender}: {error}", file=sys.stderr)
            continue
        rows = report.frame()
        rows.insert(0, "sender", sender)
        if TABLE.exists():
            before = pd.read_csv(TABLE)
            rows = pd.concat([before[before["sender"] != sender], rows])
        order = rows.sort_values(["sender", "case"], kind="stable")
        order.to_csv(TABLE, index=False, lineterminator="\n")


if __name__ == "__main__":
    main(sys.argv[1:] or [name for name in qb.list_implementations() if "bbr" in name])
