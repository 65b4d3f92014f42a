"""Write the precedents by which `qb.explain` judges two senders that differ by one change.

    python benchmarks/precedents.py [--set causes_fifth …]

For each changed sender of ``senders.csv``: by how much each parameter differs from that of its
reference, in ``qbkit/metrics/parameters/precedents.csv``. The runs are those of ``causes.py``;
those that exist are loaded. Rows of other sets, and of senders that cannot run here, stay.
"""

from __future__ import annotations

import argparse
import csv

from causes import SETS, parameters
from sender_cases import Case

from qbkit.metrics.parameters.precedents import TABLE, steps, written
from qbkit.spec.network_words import network_text
from qbkit.studies.lone import is_one_sender

HEAD = ("set", "flow", "link", "truth", "steps")
KEY = HEAD[:3]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", nargs="*", choices=SETS, default=[*SETS], help="only these")
    chosen = parser.parse_args().set
    rows = {tuple(row[name] for name in KEY): row for row in stored()}
    for name in chosen:
        for case in SETS[name]:
            one = is_one_sender((case.flow, case.reference))
            if case.truth and one and (row := row_of(case, name)):
                rows[tuple(row[key] for key in KEY)] = row
                write([*rows.values()])


def row_of(case: Case, name: str) -> dict[str, str] | None:
    """The row of a case of a set; None if a run of it cannot be had here."""
    test, reference = (parameters(case, flow, 1, name) for flow in (case.flow, case.reference))
    if not (test and reference):
        return None
    truth, link = " ".join(case.truth), network_text(case.link)
    cells = (name, case.flow, link, truth, written(steps(test, reference)))
    return dict(zip(HEAD, cells, strict=True))


def stored() -> list[dict[str, str]]:
    if not TABLE.exists():
        return []
    with TABLE.open(newline="") as file:
        return [*csv.DictReader(file)]


def write(rows: list[dict[str, str]]) -> None:
    """Beside and renamed, so that the table is whole."""
    part = TABLE.with_suffix(".part")
    with part.open("w", newline="") as file:
        writer = csv.DictWriter(file, HEAD, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    part.replace(TABLE)


if __name__ == "__main__":
    main()
