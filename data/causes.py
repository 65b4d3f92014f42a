"""Prints the tables of the cases in data/README.md: their verdicts, then suspects and symptoms.

python data/causes.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import qbkit as qb

HERE = Path(__file__).parent
STUDIES = {
    "BBR's rate at 120 %, 0.5 BDP; at 100 %": ("bbr-120-0.5", "bbr-100-0.5"),
    "the same, 1 BDP": ("bbr-120-1", "bbr-100-1"),
    "the same, 5 BDP": ("bbr-120-5", "bbr-100-5"),
    "CUBIC as two flows, 1 BDP; as one": ("cubic-2-1", "cubic-1-1"),
    "the same, 3 BDP": ("cubic-2-3", "cubic-1-3"),
    "Google QUICHE's CUBIC (Envoy 1.40), 3 BDP; no option": ("google-cubic", ""),
    "quinn's NewReno, an ACK for ten packets; for two": ("ack-10", "ack-2"),
    "quiche 0.30's CUBIC; quiche 0.7.0's, which reverts no reduction": ("quiche-now", "quiche-0.7"),
}
"""What is compared → the case, and the same with the option."""
CASES = {
    "bbr-120-explained": "BBR's rate at 120 %, 1 BDP",
    "google-cubic": "Google QUICHE's CUBIC, 3 BDP",
    "ack-10": "quinn's NewReno, an ACK for ten packets, 1 BDP",
    "quiche-now": "quiche 0.30's CUBIC, 1 BDP",
}


def verdicts() -> Iterator[str]:
    """A row of the table for each case: one trial against one, with and without the option."""
    for title, (case, changed) in STUDIES.items():
        found = assess(case)
        after = assess(changed) if changed else None
        conforms = f"{after.conformance:.2f}" if after else ""
        yield (
            f"| {title} | {found.conformance:.2f} | {conforms} | {found.noise_floor:.2f} "
            f"| {found.outcome} | {after.outcome if after else ''} |"
        )


def assess(case: str) -> qb.metrics.Assessment:
    """The published study of a case, assessed."""
    return qb.load_study(HERE / "cases" / case).assess()


def rows(explained: qb.Explanation) -> Iterator[str]:
    """A row of the table for each suspect, then for each symptom."""
    for suspect in explained.suspects:
        yield f"| suspect | {suspect} | {explained.effect_text(suspect).removeprefix('alone: ')} |"
    for symptom in explained.symptoms:
        yield f"| symptom | {symptom} | |"


if __name__ == "__main__":
    print("| case | conformance | with the option | noise floor | verdict | with the option |")
    print("|---|---|---|---|---|---|")
    print(*verdicts(), sep="\n")
    for name, title in CASES.items():
        print(f"\n{title}:\n", "| | what differs | throughput, alone |", "|---|---|---|", sep="\n")
        print(*rows(qb.load_explanation(HERE / "cases" / name)), sep="\n")
