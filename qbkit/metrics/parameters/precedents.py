"""Which change makes two senders differ like this: precedents, of which the change is known.

``precedents.csv`` has a row for each pair of senders that differ by one change: the set it belongs
to, the names under which the change is found, and by how much each parameter differs. The rows
most like a new pair vote on its change. ``benchmarks/precedents.py`` writes the table, and
``benchmarks/causes.py`` judges each set by the rows of the others.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from qbkit.metrics.parameters.between_runs import runs_apart
from qbkit.metrics.parameters.estimates import Estimate, Parameters
from qbkit.metrics.parameters.laws import SIGNAL
from qbkit.metrics.parameters.rules import RULES
from qbkit.traces.arrays import FloatArray

TABLE = Path(__file__).with_suffix(".csv")
VOTERS, POWER = 5, 4
"""So many rows vote, each with its likeness to this power."""
OF_SOURCE = 0.15
"""By how much (ln) a number of a source differs to count as one step; rules have their own."""
MOST_STEPS = 3.0
BY_CHANCE = 0.2
"""Weight of a difference that seeds alone could make."""
LEAST = 0.3
"""Less counts as equal."""
ONE_SIDE, WORD = 1.5, 2.0
"""Steps for a number that one side alone shows, and for another word."""
LEAST_VALUE = 1e-3
"""Numbers below this count as this where ratios are taken."""
SEEN = " seen"
"""Ends a key of `steps` that says which side shows a number."""


@dataclass(frozen=True)
class Votes:
    """What the precedents of a pair of senders say."""

    of: Mapping[str, float]
    """The name of a change → its part of the votes; those for several names are divided, but
    not to one of which both sides show the same word."""
    named: Mapping[str, float]
    """The name of a change → the part of the votes that name it, alone or among others."""
    likeness: float
    """Of the one most like it, from 0 to 1 (the same differences)."""
    own_steps: Mapping[str, float]
    """The name of a parameter → by how many steps the pair differs in it."""


class Precedents:
    """Pairs of senders that differ by one known change: rows of the table, at least one."""

    def __init__(self, rows: list[dict[str, str]]) -> None:
        self._names = [row["truth"].split() for row in rows]
        seen = [parsed(row["steps"]) for row in rows]
        self._columns = sorted({key for found in seen for key in found})
        self._differences = np.array([self._direction(found)[0] for found in seen])

    def votes(self, test: Parameters, reference: Parameters) -> Votes:
        """The votes on the change between two senders; either may be the changed one."""
        found = steps(test, reference)
        direction, part = self._direction(found)
        # With the sides of a pair exchanged, all its steps change their signs.
        likeness = np.abs(self._differences @ direction) * part
        voters = np.argsort(-likeness, kind="stable")[:VOTERS]
        weights = likeness[voters] ** POWER
        weights /= weights.sum() or 1.0
        same = {name for name in test.keys() & reference.keys() if _one_word(name, test, reference)}
        divided: defaultdict[str, float] = defaultdict(float)
        whole: defaultdict[str, float] = defaultdict(float)
        for voter, weight in zip(voters, weights, strict=True):
            names = self._names[voter]
            possible = [name for name in names if name not in same] or names
            for name in possible:
                divided[name] += float(weight) / len(possible)
            for name in names:
                whole[name] += float(weight)
        return Votes(divided, whole, float(likeness.max()), own_steps(found))

    def _direction(self, found: Mapping[str, float]) -> tuple[FloatArray, float]:
        """The steps as a vector of length 1, and what part of their length the columns have."""
        vector = np.array([found.get(key, 0.0) for key in self._columns])
        whole = math.hypot(*found.values()) or 1.0
        length = float(np.linalg.norm(vector)) or 1.0
        return vector / length, length / whole


@cache
def known_precedents(without: str = "") -> Precedents:
    """The precedents of the table; ``without`` is a set that is left out, as if it was unseen."""
    with TABLE.open(newline="") as file:
        return Precedents([row for row in csv.DictReader(file) if row["set"] != without])


def steps(test: Parameters, reference: Parameters) -> dict[str, float]:
    """By how much two senders differ, in steps that count; without those that are equal.

    A key is the name of a parameter, ``NAME seen`` where one side alone shows it, and
    ``NAME=WORD`` for a word of one side.
    """
    found: dict[str, float] = {}
    for name in (test.keys() & reference.keys()) - {SIGNAL}:  # no precedent was marked
        ours, theirs = test[name], reference[name]
        apart = runs_apart(ours, theirs)
        weight = 1.0 if apart else BY_CHANCE
        if ours.known != theirs.known:
            found[f"{name}{SEEN}"] = math.copysign(ONE_SIDE, ours.known - theirs.known) * weight
        elif ours.known and not (ours.word or theirs.word):
            found[name] = _steps(ours, theirs) * weight
        for sign, side in ((WORD, ours), (-WORD, theirs)):
            if apart and side.word and ours.word != theirs.word:
                found[f"{name}={side.word}"] = sign
    return {key: round(value, 1) for key, value in sorted(found.items()) if abs(value) >= LEAST}


def own_steps(found: Mapping[str, float]) -> dict[str, float]:
    """The name of a parameter → by how many steps two senders differ in it."""
    return {key.split("=")[0].removesuffix(SEEN): abs(found[key]) for key in found}


def _one_word(name: str, *sides: Parameters) -> bool:
    words = {side[name].word for side in sides}
    return len(words) == 1 and "" not in words


def _steps(test: Estimate, reference: Estimate) -> float:
    rule = RULES.get(test.name)
    step = rule.apart if rule and rule.apart else OF_SOURCE
    if rule and rule.is_part:
        difference = test.value - reference.value
    else:
        ours, theirs = (max(side.value, LEAST_VALUE) for side in (test, reference))
        difference = math.log(ours / theirs)
    return max(-MOST_STEPS, min(MOST_STEPS, difference / step))


def written(found: Mapping[str, float]) -> str:
    """Steps as a cell of the table."""
    return "; ".join(f"{key}: {value:g}" for key, value in found.items())


def parsed(cell: str) -> dict[str, float]:
    """What `written` was given."""
    pairs = (pair.rpartition(": ") for pair in cell.split("; ") if pair)
    return {key: float(value) for key, _, value in pairs}
