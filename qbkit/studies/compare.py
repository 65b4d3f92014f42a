"""Two runs or two studies side by side: numbers, causes, and in what they were made differently."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from qbkit import plots
from qbkit.errors import MetricError
from qbkit.metrics import parameters, summary
from qbkit.metrics.flows.lookup import flow_labels, has_packets
from qbkit.studies.conformance import Study
from qbkit.studies.explanation import DECISIVE_VOTES, Explanation
from qbkit.studies.lone import differences_of_runs
from qbkit.studies.results import Results, is_cube, require_results
from qbkit.traces.run.attributes import require_run, spec_of

if TYPE_CHECKING:
    import altair as alt

MOST_NAMED = 2
"""Causes in a sentence about two lone flows."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """Two runs, or two studies with their explanations if they have them, by their names."""

    names: tuple[str, str]
    results: tuple[Results, Results]

    @property
    def sides(self) -> tuple[xr.Dataset | Study, xr.Dataset | Study]:
        """The two runs, or the two studies."""
        first, second = (r.study if isinstance(r, Explanation) else r for r in self.results)
        return first, second

    def frame(self) -> pd.DataFrame:
        """One row per number: both values, and the second minus the first.

        A flow is called by its label if both runs have the same labels, or have it in the same
        place; other flows are paired by their place, as `pairing` says, and their labels are rows.
        Two lone flows also have what their packets show of their senders.
        """
        names = _names(*self._labels) if self._labels else ((), ())
        first, second = (_numbers(side, each) for side, each in zip(self.sides, names, strict=True))
        rows = []
        for key in dict.fromkeys([*first, *second]):
            a, b = first.get(key), second.get(key)
            known = isinstance(a, float) and isinstance(b, float)
            rows.append((*key, a, b, b - a if known else float("nan")))  # type: ignore[operator]
        columns = ["of", "number", *self.names, "difference"]
        return pd.DataFrame(rows, columns=columns).dropna(subset=list(self.names), how="all")

    def made_differently(self) -> pd.DataFrame:
        """One row per field of the experiments, or version of a stack, in which the two differ."""
        first, second = (_origin(side) for side in self.sides)
        rows = [
            (key, first.get(key, "–"), second.get(key, "–"))
            for key in dict.fromkeys([*first, *second])
            if first.get(key) != second.get(key)
        ]
        return pd.DataFrame(rows, columns=["field", *self.names])

    @property
    def verdicts(self) -> list[str]:
        """The verdicts of two studies in a line each, or what sets two lone flows apart."""
        first, second = self.results
        if isinstance(first, xr.Dataset) or isinstance(second, xr.Dataset):
            return self._apart()
        return [
            f"{name}: {' '.join((r.verdict if isinstance(r, Explanation) else r.verdict()).lines)}"
            for name, r in zip(self.names, (first, second), strict=True)
        ]

    @property
    def pairing(self) -> str:
        """A sentence where flows of several have other labels, or none beside them; else empty."""
        if not self._labels or max(map(len, self._labels)) == 1:
            return ""
        (ours, theirs), (one, other) = self._labels, self.names
        said = []
        if len(ours) != len(theirs):
            counts = f"{_flows(len(ours))} and {other} {_flows(len(theirs))}"
            said.append(f"{one} has {counts}, so not every flow has one beside it.")
        pairs = zip(_names(ours, theirs)[0], ours, theirs, strict=False)
        unlike = ((name, a, b) for name, a, b in pairs if name != a)
        clauses = [f"{name} is {a} in {one} and {b} in {other}" for name, a, b in unlike]
        if clauses:
            said.append(f"Flows of other labels are paired by their place: {'; '.join(clauses)}.")
        return " ".join(said)

    @property
    def _labels(self) -> tuple[list[str], list[str]] | None:
        """The labels of the flows of two runs; None for studies."""
        first, second = self.sides
        if isinstance(first, Study) or isinstance(second, Study):
            return None
        return flow_labels(first), flow_labels(second)

    def _apart(self) -> list[str]:
        """The causes by which two lone flows differ, as a sentence; empty without any."""
        runs = [r for r in self.results if isinstance(r, xr.Dataset)]
        if not all(map(_is_lone, runs)):
            return []
        try:
            found = differences_of_runs(runs[1], runs[0])
        except MetricError as error:
            return [f"Their packets show no cause: {error}."]
        causes = [d for d in found if d.role == "cause" and not d.explained]
        voted = bool(causes) and not math.isnan(causes[0].votes)  # on the one change
        clauses = [d.clause for d in causes[: 1 if voted else MOST_NAMED]]
        said = " and ".join(clauses) or "no parameter differs"
        one, other = self.names
        sets = "may set" if voted and causes[0].votes < DECISIVE_VOTES else "sets"
        return [f"What {sets} {other} apart from {one}, from a run of each: {said}."]

    def chart(self) -> alt.HConcatChart:
        """Timelines and envelopes of the first flow of both, with the first one in grey."""
        trials = [side.tests if isinstance(side, Study) else side for side in self.sides]
        runs = dict(zip(self.names, trials, strict=True))
        return plots.linked_chart(runs, reference=self.names[0], title=" against ".join(self.names))

    def __repr__(self) -> str:
        return f"<Comparison of {self.names[0]} and {self.names[1]}>"

    def _repr_html_(self) -> str:
        different = self.made_differently()
        words = "made alike" if different.empty else different.to_html(index=False, escape=True)
        table = self.frame().to_html(index=False, float_format="{:.3f}".format, na_rep="–")
        head = escape(" and ".join(self.names))
        verdicts = "".join(f"<p>{escape(line)}</p>" for line in self.verdicts)
        verdicts += f"<p>{escape(self.pairing)}</p>" * bool(self.pairing)
        made = f"<p>What differs in how they were made:</p>{words}"
        return f"<p><b>{head}</b></p>{verdicts}{table}{made}"


def compare(first: Results, second: Results, names: tuple[str, str] = ("A", "B")) -> Comparison:
    """Two runs or two studies side by side; MetricError for two of different kinds, or sweeps."""
    for one in (first, second):
        require_results(one)
    if not isinstance(names, Sequence) or len(names) != 2:
        raise MetricError(
            f"{names!r} are not two names; give one for each of the two results", refused=True
        )
    runs = [r for r in (first, second) if isinstance(r, xr.Dataset)]
    if len(runs) == 1:
        raise MetricError(
            "a run cannot be compared with a study; give two of one kind", refused=True
        )
    if any(is_cube(run) for run in runs):
        raise MetricError("sweeps cannot be compared; give two runs or two studies", refused=True)
    for run in runs:
        require_run(run)
    if names[0] == names[1]:
        names = (f"{names[0]} (first)", f"{names[1]} (second)")
    return Comparison(names, (first, second))


def _names(ours: Sequence[str], theirs: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What the flows of two runs are called, so that those that are compared have one name."""
    if sorted(ours) == sorted(theirs) and len(set(ours)) == len(ours):
        return ours, theirs
    same = {i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a == b}
    first, second = (
        [label if i in same else f"flow {i + 1}" for i, label in enumerate(labels)]
        for labels in (ours, theirs)
    )
    return first, second


def _flows(count: int) -> str:
    return f"{count} flow{'s' * (count != 1)}"


def _numbers(side: xr.Dataset | Study, names: Sequence[str]) -> dict[tuple[str, str], float | str]:
    """The numbers of a run by flow, called by ``names``, or of a study's assessment."""
    if isinstance(side, Study):
        a = side.assess()
        rows = a.frame().iloc[:, :2].itertuples(index=False)
        return {("study", "outcome"): a.outcome, **{("study", str(n)): float(v) for n, v in rows}}
    table = summary(side).drop(columns=["stack", "controller"])
    numbers = {
        (flow, str(name)): value if isinstance(value, str) else float(value)
        for i, flow in enumerate(names)
        for name, value in table.iloc[i].items()
        if not (name == "label" and value == flow)  # its name says it
    }
    return numbers | _inferred(side, names[0])


def _inferred(run: xr.Dataset, flow: str) -> dict[tuple[str, str], float | str]:
    """What the packets of a lone flow show of its sender; empty for other runs."""
    if not _is_lone(run):
        return {}
    try:
        found = parameters.infer(run)
    except MetricError:
        return {}
    return {(flow, e.name): e.word or e.value for e in found.values() if e.known}


def _is_lone(run: xr.Dataset) -> bool:
    return has_packets(run) and run.sizes["flow"] == 1


def _origin(side: xr.Dataset | Study) -> dict[str, str]:
    """Fields of the experiment and versions, flat; those of the first run of a study."""
    run = side.tests[0] if isinstance(side, Study) else side
    spec = spec_of(run)
    versions = json.loads(run.attrs.get("stack_versions") or "{}")
    known = {f"version of {stack}": str(text) for stack, text in versions.items()}
    transports = json.loads(run.attrs.get("transport_versions") or "{}")
    known |= {f"transport of {stack}": str(text) for stack, text in transports.items()}
    known |= {n: str(run.attrs.get(n, "")) for n in ("kernel_version", "qbkit_version", "engine")}
    return {**dict(flat("", spec)), **known}


def flat(prefix: str, value: Any) -> list[tuple[str, str]]:
    """The fields of a spec by their dotted names."""
    if isinstance(value, Mapping):
        return [row for k, v in value.items() for row in flat(f"{prefix}.{k}".lstrip("."), v)]
    if isinstance(value, list):
        return [row for i, v in enumerate(value) for row in flat(f"{prefix}.{i}", v)]
    return [(prefix, str(value))]
