"""Makes the table of BBRs along the draft's test cases: one to ten processor minutes a sender.

python data/bbr_draft/make.py [--second] [SENDER ...]

``--second`` writes second_looks.csv: each case of cases.csv that differs, with three other seeds.
Runs are stored as always, and the table is written after each sender, so it can be stopped and
started at any time; senders that are not given keep their rows.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import pandas as pd

import qbkit as qb
from qbkit.errors import QbkitError
from qbkit.studies.evaluation.judgements import CaseReport

TABLE = Path(__file__).with_name("cases.csv")
SECOND = TABLE.with_name("second_looks.csv")
SECOND_SEED = 4
"""The first seed of a second look; cases.csv has the three before."""
REPRODUCIBLE: dict[str, object] = {}
OTHER = dict.fromkeys((TABLE.name, SECOND.name), "each row has the command of its first run")


def main() -> None:
    """Judge one sender after the other, and write the table after each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--second", action="store_true")
    parser.add_argument("senders", nargs="*")
    args = parser.parse_args()
    known = [name for name in qb.list_implementations() if "bbr" in name]
    for sender in args.senders or known:
        try:
            if args.second:
                write(SECOND, sender, qb.judge_cases(sender, **second_look(sender), progress=True))
            else:
                write(TABLE, sender, qb.judge_cases(sender, progress=True))
        except QbkitError as error:
            print(f"{sender}: {error}", file=sys.stderr)


def second_look(sender: str) -> dict[str, Any]:
    """The cases that differ, and other seeds; QbkitError if none differs."""
    cases = pd.read_csv(TABLE).query("sender == @sender and answer == 'differs'")["case"]
    if cases.empty:
        raise QbkitError("no case differs")
    return {"only": cases.tolist(), "first_seed": SECOND_SEED}


def write(table: Path, sender: str, report: CaseReport) -> None:
    """The rows of a sender in place of those that the table has."""
    rows = report.frame()
    rows.insert(0, "sender", sender)
    if table.exists():
        before = pd.read_csv(table)
        rows = pd.concat([before[before["sender"] != sender], rows])
    order = rows.sort_values(["sender", "case"], kind="stable")
    order.to_csv(table, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
