"""Hunts implementations, and writes their cases and findings.csv.

python data/hunt/make.py [SENDER METRIC [BUDGET_S]]

Without a SENDER, all of `HUNTS`. A finding that is confirmed is looked at by a second method: the
same network with another rival, with `SECOND_SEEDS` seeds a side, or alone without one. What
differs in the packets of both sides (`qbkit.metrics.parameters.compare`) stands beside it. Stored
runs are not run again, and the rows of other hunts stay, so it can be stopped and started.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

import qbkit as qb
from qbkit.metrics.parameters import compare, infer
from qbkit.store.tables import replace_rows
from qbkit.studies.evaluation.evaluate import evaluate
from qbkit.studies.hunt.found import Hunt, book_of

HERE = Path(__file__).parent
HUNTS = {
    ("quinn:bbr", "share"): 120.0,
    ("tquic:bbr3", "utilisation"): 120.0,
    ("s2n-quic:bbr", "share"): 100.0,
    ("quinn:cubic", "utilisation"): 112.0,
    ("quic-go:cubic", "delay"): 112.0,
    ("s2n-quic:cubic", "utilisation"): 100.0,
    ("tquic:bbr", "share"): 100.0,
    ("tquic:cubic", "utilisation"): 105.0,
    ("quinn:cubic", "share"): 100.0,
    ("picoquic:bbr", "share"): 190.0,
    ("picoquic:cubic", "utilisation"): 250.0,
    ("msquic:cubic", "share"): 130.0,
    ("msquic:bbr", "share"): 150.0,
    ("s2n-quic:bbr", "utilisation"): 120.0,
    ("quic-go:cubic", "share"): 120.0,
    ("noq:bbr3", "utilisation"): 250.0,
}
"""Sender and metric → processor seconds."""
OTHER_RIVAL = {"tcp:cubic": "tcp:reno", "tcp:reno": "tcp:cubic", "tcp:bbr": "tcp:cubic", "": ""}
SECOND_SEEDS = 3
MOST_NAMED = 3
REPRODUCIBLE: dict[str, Any] = {}
OTHER = {
    "findings.csv": "each row names the case that makes it again",
    "*.yaml": "it is a case: qbkit evaluate SENDER --book CASE --quick --seeds 5",
}


def second_network(found: Hunt) -> tuple[str, Any]:
    """What the second method changes, and the network; without a rival, the queue is longer."""
    network = found.network
    if network.rival:
        other = OTHER_RIVAL[network.rival]
        return f"beside {other}", replace(network, rival=other)
    twice = replace(network, buffer_bdp=2 * network.buffer_bdp)
    return f"buffer of {twice.buffer_bdp:g} BDP", twice


def second(found: Hunt) -> dict[str, Any]:
    """The measure of both sides in the second network."""
    words, network = second_network(found)
    [measure] = found.book.scenarios[0][1].measures
    book = book_of(found.sender, found.reference, network.scenario([measure]))
    one = evaluate(found.sender, book, quick=True, seeds=SECOND_SEEDS).findings[0].compared
    return {
        "second_method": words,
        "second_value": one.value,
        "second_reference_value": one.bar,
        "second_low": one.low,
        "second_high": one.high,
        "second_answer": one.answer,
    }


def differences(found: Hunt) -> str:
    """What differs most in the packets of both sides, by the runs of the case."""
    sides = []
    for name in (found.sender, found.reference):
        scenario = found.book.scenarios[0][1]
        runs = [scenario.experiment(name, {}, seed).run() for seed in range(1, SECOND_SEEDS + 1)]
        sides.append(infer(runs))
    return "; ".join(str(one) for one in compare(*sides)[:MOST_NAMED])


def row_of(found: Hunt, case: Path) -> dict[str, Any]:
    """The row of a finding."""
    facts = found.to_dict()
    row = {"case": case.name, **{key: facts[key] for key in KEPT if key in facts}}
    row["faults_known"] = len(found.faults)
    row["network"] = str(found.network)
    if found.confirmed:
        row |= {**second(found), "differs_most": differences(found)}
    return row


KEPT = (
    *("sender", "reference", "metric", "measure", "value", "reference_value", "low", "high"),
    *("floor", "confirmed", "networks", "spent_s", "worst"),
)


def main(words: list[str]) -> None:
    """Hunt one sender, or all."""
    wanted = {(words[0], words[1]): float(words[2]) if words[2:] else 120.0} if words else HUNTS
    for (sender, metric), budget_s in wanted.items():
        found = qb.hunt(sender, metric=metric, budget_s=budget_s)
        case = HERE / f"{sender.replace(':', '-')}-{metric}.yaml"
        print(found, flush=True)
        if found.confirmed:
            found.save(case)
        row = pd.DataFrame([row_of(found, case)])
        replace_rows(HERE / "findings.csv", row, "case")


if __name__ == "__main__":
    main(sys.argv[1:])
