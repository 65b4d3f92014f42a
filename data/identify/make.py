"""Makes what `qbkit identify` knows, and shows how often it is right.

python data/identify/make.py [NAME ...]     runs implementations, and writes features.csv
python data/identify/make.py --judge        writes the signatures, answers.csv and confusion.csv

A NAME is an implementation (``quinn:cubic``) or a stack; without one, all that are ready here. Each
is alone on one link, for about eight processor minutes in all. Some have rows beside another flow
as well, whose columns say in which network: they are made again with the others. Stored runs are
not run again, and the rows of other implementations stay, so it can be stopped and started.

Each answer is that of signatures without the connections of any stack that shares code with the
one in question (`CODE`). What an answer needs is fitted without them, too: on the other code bases,
each with signatures of the rest. A controller that fewer than `LEAST_CODES` code bases have cannot
be learned in this way, and "unknown" is then the right answer.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.errors import MetricError, QbkitError
from qbkit.metrics.identity import (
    FEATURES,
    NEEDS,
    UNKNOWN,
    Identity,
    Needs,
    Signatures,
    features_of,
)
from qbkit.metrics.parameters import observe
from qbkit.store.tables import replace_rows
from qbkit.studies.reproduction import Precision, Recipe, Table

HERE = Path(__file__).parent
FEATURES_CSV = HERE / "features.csv"
SIGNATURES = Path(qb.__file__).parent / "metrics/identity/signatures.csv"
ALONE = {"rate_mbps": 6, "rtt_ms": 100, "buffer_bdp": 1, "duration_s": 50, "seed": 1}
"""The network of the lone flows."""
LEAST_CODES = 4
CHOICES = [Needs(lead, unlike) for lead in np.arange(4, -0.5, -0.5).tolist() for unlike in range(4)]
"""What an answer may need: the first that has the most right answers, less the wrong ones. Of those
that are as good, the first answers least."""
KERNEL = (
    *("vegas", "westwood", "bic", "htcp", "illinois", "veno"),
    *("scalable", "highspeed", "hybla", "yeah", "cdg"),
)
FURTHER = [f"tcp:{name}" for name in KERNEL]
FURTHER += [f"qbkit:{name}" for name in ("copa", "vegas", "westwood")]
"""Implementations that surveys of all stacks leave out."""
CODE = {
    "google-quiche": "chromium",
    "quiche-0.7": "quiche",
    "ngtcp2-0.12": "ngtcp2",
    "nginx-1.26": "nginx",
    "noq": "quinn",
    "qbkit": "aioquic",
}
"""Stack → the one whose code it shares: releases, forks, and the transport of our controllers."""
FIRST_BBR = {
    *("tcp:bbr", "qbkit:bbr", "quinn:bbr", "lsquic:bbr", "msquic:bbr", "tquic:bbr"),
    *("picoquic:bbr1", "google-quiche:bbr", "chromium:bbr", "ngtcp2-0.12:bbr"),
}
"""Implementations of BBR's first version; other BBRs are of version 2 or 3."""
REPRODUCIBLE = {"features.csv": Table(Precision(digits=4))}
OTHER = dict.fromkeys(
    ("answers.csv", "confusion.csv", "accuracy.csv", "confusion.png"),
    "it follows from features.csv by make.py --judge",
)


def again(file: str, row: dict[str, Any]) -> Recipe:
    """How a row is made."""
    return Recipe([[experiment(row)]], lambda runs: shown_by(row, runs[0]))


def experiment(row: dict[str, Any]) -> qb.Experiment:
    """The experiment of a row."""
    return qb.Experiment(
        flows=str(row["flows"]).split(),
        bottleneck=qb.Bottleneck(**{name: float(row[name]) for name in LINK}),
        duration_s=float(row["duration_s"]),
        seed=int(row["seed"]),
    )


LINK = ("rate_mbps", "rtt_ms", "buffer_bdp")
SPEC = ("implementation", "flows", "flow", *LINK, "duration_s", "seed")


def shown_by(row: dict[str, Any], run: xr.Dataset) -> dict[str, Any]:
    """The row: what the run shows of the flow, or why it shows nothing."""
    try:
        shown, reason = features_of(observe(run, int(row["flow"]))), ""
    except MetricError as error:
        shown, reason = dict.fromkeys(FEATURES, float("nan")), str(error)
    return {**{name: row[name] for name in SPEC}, "unknown_because": reason, **shown}


def controller_of(name: str) -> str:
    """The algorithm of an implementation, by its name there."""
    controller = name.partition(":")[2]
    if controller.startswith("bbr"):
        return "bbr" if name in FIRST_BBR else "bbr2"
    return "reno" if controller == "newreno" else controller


def code_of(name: str) -> str:
    """The code base of an implementation."""
    stack = name.partition(":")[0]
    return CODE.get(stack, stack)


def told_apart(features: pd.DataFrame) -> pd.Series:
    """The controller of each row; "" for one that few code bases have."""
    controllers = features["implementation"].map(controller_of)
    codes = features["implementation"].map(code_of).groupby(controllers).nunique()
    return controllers.where(controllers.map(codes) >= LEAST_CODES, "")


class Judge:
    """Identifies connections by signatures of other code."""

    def __init__(self, features: pd.DataFrame) -> None:
        self.features = features
        self.numbers = features[list(FEATURES)].to_dict("index")
        self.controllers = told_apart(features)
        self.codes = features["implementation"].map(code_of)
        self.shown = features["unknown_because"] == ""
        self.signatures = cache(self._signatures)

    def _signatures(self, without: frozenset[str]) -> Signatures:
        """The signatures of all connections but those of some code bases."""
        kept = self.shown & ~self.codes.isin(without)
        return Signatures.fit(self.features.loc[kept, list(FEATURES)], self.controllers[kept])

    def identify(self, i: int, without: frozenset[str], needs: Needs) -> Identity:
        """What signatures without its code, and some more, say of a connection."""
        known = self.signatures(without | {self.codes[i]})
        return known.identify(self.numbers[i], needs)

    def needs(self, without: frozenset[str] = frozenset()) -> Needs:
        """What an answer needs, by all code bases but some, each with signatures of the rest."""
        mine = self.features.index[self.shown & ~self.codes.isin(without)]
        found = [(self.identify(i, without, CHOICES[0]), self.controllers[i]) for i in mine]
        return max(CHOICES, key=lambda needs: sum(gain(one, right, needs) for one, right in found))

    def answers(self) -> pd.DataFrame:
        """A row per connection: its controller, the answer, why, and the two highest scores."""
        made = []
        for code, mine in self.features.groupby(self.codes):
            needs = self.needs(frozenset({str(code)}))
            made += [self._answer(i, row, needs) for i, row in mine.iterrows()]
        return pd.DataFrame(made).sort_values(["implementation", "flows", *LINK])

    def _answer(self, i: int, row: pd.Series, needs: Needs) -> dict[str, Any]:
        head = {name: row[name] for name in ("implementation", "flows", *LINK)}
        head["controller"] = self.controllers[i] or controller_of(row["implementation"])
        head["right"] = self.controllers[i] or UNKNOWN
        head |= {"needed_lead": needs.lead, "most_unlike": needs.most_unlike}
        if reason := row["unknown_because"]:
            return {**head, "answer": UNKNOWN, "score": 0.0, "lead": 0.0, "why": reason}
        found = self.identify(i, frozenset(), needs)
        first, second = list(found.scores.values())[:2]
        return {**head, "answer": found.answer, "score": first, "lead": first - second,
                "why": found.reason}  # fmt: skip


def gain(found: Identity, right: str, needs: Needs) -> int:
    """1 for a right answer, -1 for a wrong one; "unknown" is right for a controller of few."""
    if found.doubts(needs):
        return int(not right)
    return 1 if next(iter(found.scores)) == right else -1


def run_one(name: str) -> None:
    """Run an implementation alone, and again what features.csv has of it, and write its rows."""
    alone = {"implementation": name, "flows": name, "flow": 0, **ALONE}
    table = published_features() if FEATURES_CSV.exists() else pd.DataFrame({"flows": []})
    others = table[(table["flows"] != name) & (table.get("implementation") == name)]
    try:
        rows = [shown_by(row, experiment(row).run()) for row in (alone, *others.to_dict("records"))]
    except QbkitError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return
    replace_rows(FEATURES_CSV, pd.DataFrame(rows), "implementation")
    print(name, flush=True)


def published_features() -> pd.DataFrame:
    """The rows of features.csv."""
    features = pd.read_csv(FEATURES_CSV)
    return features.assign(unknown_because=features["unknown_because"].fillna(""))


def judge() -> None:
    """Write the signatures, and how often signatures of other code are right."""
    judging = Judge(published_features())
    judged = judging.answers()
    judged.round(3).to_csv(HERE / "answers.csv", index=False)
    counts = judged.groupby(["right", "answer"]).size().unstack(fill_value=0)
    counts.to_csv(HERE / "confusion.csv")
    accuracy(judged).to_csv(HERE / "accuracy.csv", index=False, float_format="%.3f")
    title = "The controller by its packets, with no code of the stack seen before"
    qb.plots.save_chart(qb.plots.confusion_chart(judged, title=title), HERE / "confusion.png")
    shipped = judging.signatures(frozenset())
    shipped.table().to_csv(SIGNATURES, index=False, float_format="%.4g")
    print(f"Fitted on all: {judging.needs()}; qbkit has {NEEDS}.")


def accuracy(judged: pd.DataFrame) -> pd.DataFrame:
    """A row per group of connections: how many, and which part is right, wrong and unknown."""
    names = sorted(set(judged["right"]))
    can_be_known = judged["right"] != UNKNOWN
    alone = judged["flows"] == judged["implementation"]
    groups = {
        "alone, of a known controller": can_be_known & alone,
        "beside another flow": can_be_known & ~alone,
        **{f"alone, of {name}": alone & (judged["right"] == name) for name in names},
    }
    rows = []
    for name, chosen in groups.items():
        mine = judged[chosen]
        right, unknown = mine["answer"] == mine["right"], mine["answer"] == UNKNOWN
        rows.append({"connections": name, "count": len(mine), "right": right.mean(),
                     "unknown": (unknown & ~right).mean(),
                     "wrong": (~unknown & ~right).mean()})  # fmt: skip
    return pd.DataFrame(rows)


def main(words: list[str]) -> None:
    """Run implementations, or judge what was run."""
    if words == ["--judge"]:
        judge()
        return
    wanted = set(words)
    for name in dict.fromkeys([*qb.list_implementations(), *FURTHER]):
        if not wanted or wanted & {name, name.partition(":")[0]}:
            run_one(name)


if __name__ == "__main__":
    main(sys.argv[1:])
