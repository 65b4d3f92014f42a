"""What each controller looks like in packets, and which of them a connection resembles.

A *signature* is, for each feature, how often the controller's connections show it, and ten values
that stand for those they show. A feature speaks for a controller by

    ln(density among the controller's connections / density among all connections),

where not showing the feature counts as a value. Densities are sums of Laplace kernels of the
feature's closeness around the ten values, and a tenth of a uniform one, for what implementations do
that nobody has seen. No feature counts for or against by more than `MOST`. The sum over features is
a naive Bayes classifier, which takes features for independent: they are not, so the sum is an order
and no probability. What an answer needs (`Needs`) is fitted on connections of code that the
signatures have not seen (``data/identify``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np
import pandas as pd

from qbkit.metrics.identity.features import FEATURES, Feature
from qbkit.traces.arrays import FloatArray

UNKNOWN = "unknown"
ALL = "all"
"""The name under which the table has the connections of all senders."""
VALUES = 10
"""So many values stand for those that a controller's connections show."""
UNSEEN = 0.1
"""Part of the density that is uniform over the values of all senders."""
MOST = 2.5
"""Most that a feature counts for or against a controller."""
FAR = 5.0
"""A value is unlike a controller's if it is this many times `Feature.close` from each of them."""
OF_MODEL = ("bbr", "bbr2")
"""Controllers that model the path."""
TOLD = 3
"""A sentence names this many features."""


@dataclass(frozen=True)
class Needs:
    """What an answer needs; the defaults are what ``data/identify/make.py --judge`` fits."""

    lead: float = 2.5
    """Its sum exceeds that of the next controller by this. Below 0 there is no answer: the
    connection is then less like any controller's than like those of all senders."""
    most_unlike: int = 1
    """At most so many of its values are unlike all that the controller ever showed."""


@dataclass(frozen=True)
class Identity:
    """Which controller a connection has."""

    answer: str
    """Name of the controller, or "unknown"."""
    reason: str
    """Why, in one sentence."""
    scores: dict[str, float]
    """Controller → how much speaks for it; the highest first. Empty where nothing was seen."""
    features: dict[str, float]
    """What the packets show, as `features_of` gives it."""
    evidence: pd.DataFrame
    """A row per feature: its meaning, its value, and what it counts for each controller."""
    unlike: Sequence[str] = ()
    """Features whose values are unlike all that the first controller of the scores ever showed."""

    def doubts(self, needs: Needs) -> str:
        """Which need an answer would not meet: "score", "lead", "unlike", "held", or ""."""
        first, second = list(self.scores.values())[:2]
        if first < 0:
            return "score"
        if first - second < needs.lead:
            return "lead"
        if len(self.unlike) > needs.most_unlike:
            return "unlike"
        return "held" if self.may_be_held else ""

    @property
    def may_be_held(self) -> bool:
        """Whether flow control, too, can make what seems to model the path.

        A receiver that reads in cycles makes a window look so; it has no ProbeRTT, and no loss.
        """
        shown = ("kept_percent", "probe_rtt_interval_s")
        return next(iter(self.scores)) in OF_MODEL and all(
            math.isnan(self.features[name]) for name in shown
        )


NEEDS = Needs()


@dataclass(frozen=True, eq=False)
class Signatures:
    """The signature of each controller, and of all senders together."""

    seen: pd.DataFrame
    """(controllers, features): part of the connections that show the feature."""
    values: Mapping[tuple[str, str], FloatArray]
    """(controller, feature) → up to `VALUES` values, in order."""

    @classmethod
    def fit(cls, features: pd.DataFrame, controllers: pd.Series) -> Signatures:
        """Signatures from connections, a row each; ``controllers`` names those to tell apart.

        Connections of other controllers ("" in ``controllers``) count among all senders only.
        """
        groups = {ALL: features}
        groups |= {str(name): rows for name, rows in features.groupby(controllers) if name}
        # With few connections, what they do not show may still happen (Krichevsky-Trofimov).
        seen = {name: (rows.notna().sum() + 0.5) / (len(rows) + 1) for name, rows in groups.items()}
        values = {
            (name, feature): _stand_ins(rows[feature].dropna().to_numpy())
            for name, rows in groups.items()
            for feature in FEATURES
        }
        return cls(pd.DataFrame(seen).T[list(FEATURES)], values)

    def table(self) -> pd.DataFrame:
        """A row per controller and feature: the part that shows it, and the values."""
        rows = [
            {"controller": name, "feature": feature, "seen": self.seen.loc[name, feature]}
            | {f"value_{i}": value for i, value in enumerate(self.values[name, feature])}
            for name in self.seen.index
            for feature in FEATURES
        ]
        return pd.DataFrame(rows)

    @classmethod
    def of_table(cls, table: pd.DataFrame) -> Signatures:
        """The inverse of `table`."""
        columns = [f"value_{i}" for i in range(VALUES)]
        numbers = table[columns].to_numpy(float)
        keys = zip(table["controller"], table["feature"], numbers, strict=True)
        values = {(name, feature): row[np.isfinite(row)] for name, feature, row in keys}
        seen = table.pivot(index="controller", columns="feature", values="seen")
        return cls(seen[list(FEATURES)], values)

    def identify(self, features: Mapping[str, float], needs: Needs = NEEDS) -> Identity:
        """The controller that a connection with these features has."""
        names = [str(name) for name in self.seen.index if name != ALL]
        speaks = {feature: self._speaks(feature, features[feature]) for feature in FEATURES}
        evidence = pd.DataFrame({name: {f: speaks[f][name] for f in FEATURES} for name in names})
        sums = evidence.sum().sort_values(ascending=False)
        scores = {str(name): float(score) for name, score in sums.items()}
        first = next(iter(scores))
        unlike = [name for name in FEATURES if self._is_far(first, name, features[name])]
        meanings = [feature.meaning for feature in FEATURES.values()]
        evidence.insert(0, "meaning", meanings)
        evidence.insert(1, "value", [features[name] for name in FEATURES])
        shown = evidence[["meaning", "value", *scores]]
        undecided = Identity(UNKNOWN, "", scores, dict(features), shown, unlike)
        doubts = undecided.doubts(needs)
        answer = UNKNOWN if doubts else first
        return replace(undecided, answer=answer, reason=_reason(undecided, doubts, needs))

    def _is_far(self, name: str, feature: str, value: float) -> bool:
        """Whether a value is unlike all that a controller's connections show."""
        values = self.values[name, feature]
        if math.isnan(value) or not len(values):
            return False
        return float(_apart(FEATURES[feature], value, values).min()) > FAR

    def _speaks(self, feature: str, value: float) -> dict[str, float]:
        """How much a feature counts for each controller."""
        seen: dict[str, float] = self.seen[feature].to_dict()
        everybody = seen.pop(ALL)
        if math.isnan(value):
            found = {name: math.log((1 - ours) / (1 - everybody)) for name, ours in seen.items()}
        else:
            like = self._densities(FEATURES[feature], feature, value)
            found = {
                name: math.log(ours / everybody) + math.log(like[name] / like[ALL])
                for name, ours in seen.items()
            }
        return {name: min(max(counts, -MOST), MOST) for name, counts in found.items()}

    def _densities(self, kind: Feature, feature: str, value: float) -> dict[str, float]:
        """Density of a value, per closeness, among the connections of each and of all senders."""
        wide = np.array([kind.scaled(v) for v in (*self.values[ALL, feature], value)])
        uniform = 1 / max(float(np.ptp(wide)), 2.0)
        names = self.seen.index
        return {n: _density(kind, value, self.values[n, feature], uniform) for n in names}


@cache
def shipped() -> Signatures:
    """The signatures that data/identify/make.py wrote."""
    with (files("qbkit.metrics.identity") / "signatures.csv").open(encoding="utf-8") as file:
        return Signatures.of_table(pd.read_csv(file))


def _stand_ins(values: FloatArray) -> FloatArray:
    """At most `VALUES` of the values that stand for all: their quantiles."""
    if len(values) <= VALUES:
        return np.sort(values)
    levels = (np.arange(VALUES) + 0.5) / VALUES
    return np.quantile(values, levels, method="inverted_cdf")


def _density(feature: Feature, value: float, values: FloatArray, uniform: float) -> float:
    """Density of a value among ``values``; ``uniform`` is the one where nothing was seen."""
    if not len(values):
        return uniform
    like = float(np.exp(-_apart(feature, value, values)).mean()) / 2
    return (1 - UNSEEN) * like + UNSEEN * uniform


def _apart(feature: Feature, value: float, values: FloatArray) -> FloatArray:
    """Distance of a value from each of the values, in closenesses."""
    here = feature.scaled(value)
    found: FloatArray = np.abs([feature.scaled(v) - here for v in values])
    return found


def _reason(found: Identity, doubts: str, needs: Needs) -> str:
    """Why this is the answer: the features that set it apart from the next, or what is missing."""
    (first, score), (second, next_score) = list(found.scores.items())[:2]
    if doubts == "score":
        return f"it resembles no controller; {first} comes nearest ({score:.1f}, and 0 is needed)"
    if doubts == "lead":
        return (
            f"it could be {first} or {second} ({score:.1f} and {next_score:.1f}, and an answer "
            f"needs a lead of {needs.lead:g})"
        )
    if doubts == "unlike":
        numbers = _in_words(found.unlike, found.features)
        return f"it behaves as {first}, but not in numbers: {numbers}"
    if doubts == "held":
        return (
            f"it resembles {first}, but so does a window that flow control holds, where nothing is "
            "lost and no ProbeRTT is seen (a BBR shows two within 25 s)"
        )
    lead = (found.evidence[first] - found.evidence[second]).sort_values(ascending=False)
    return f"{_in_words(list(lead.index), found.features)} ({second} is next)"


def _in_words(names: Sequence[str], features: Mapping[str, float]) -> str:
    """The first features, with their values."""
    told = (f"{FEATURES[name].meaning}: {_short(features[name])}" for name in names[:TOLD])
    return "; ".join(told)


def _short(value: float) -> str:
    return "not seen" if math.isnan(value) else f"{value:.3g}"
