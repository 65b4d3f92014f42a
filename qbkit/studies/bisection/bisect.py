"""Which version is the first that behaves differently, and why?

Single runs are samples of a chaotic system, so a version counts as different only if a permutation
test over seeds says so (`qbkit.metrics.verdicts.permutation.difference_p`), with as many seeds on
either side. A version is on the bad side if it differs from the good end, and on the good side if
it differs from the bad end alone. One that differs from neither is skipped, as is one that cannot
be built or run; the answer is then a range. If there are several changes, the answer is one of
them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from qbkit import stacks
from qbkit.arguments import whole
from qbkit.errors import MetricError, QbkitError, SpecError
from qbkit.execution.many import run_every
from qbkit.execution.runner import run
from qbkit.metrics.envelopes.envelope import require_hull
from qbkit.metrics.verdicts.permutation import difference_p, enough_trials, smallest_p
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.stacks.base import Say
from qbkit.studies.bisection.measures import Measure, measure_of
from qbkit.studies.bisection.search import Side, search
from qbkit.studies.bisection.versions import Clone, Commit, Version, commits, ends, releases
from qbkit.studies.conformance import DEFAULT_SEEDS, Study, experiments
from qbkit.studies.explain import explanation_of
from qbkit.studies.explanation import Explanation
from qbkit.studies.lone import lone
from qbkit.studies.probing import ALONE_S
from qbkit.traces.arrays import FloatArray

if TYPE_CHECKING:
    import xarray as xr

LEVEL = 0.05


@dataclass(frozen=True, repr=False)
class Bisection:
    """Where a difference begins."""

    measure: Measure
    versions: Sequence[Version]
    """All versions, the earliest first."""
    values: Mapping[int, FloatArray]
    """The numbers of the versions that were run, one per seed."""
    skipped: Mapping[int, str]
    """Why other versions that were tried say nothing."""
    last_good: int
    first_bad: int
    explained: Explanation
    """The first bad version against the last good one."""

    @property
    def between(self) -> Sequence[Version]:
        """Skipped versions before the first bad one, each of which may be the first."""
        return self.versions[self.last_good + 1 : self.first_bad]

    @property
    def p_value(self) -> float:
        """p of the difference between the last good and the first bad version."""
        return difference_p(self.values[self.first_bad], self.values[self.last_good])

    @property
    def noise_floor(self) -> float:
        """Mean difference between two trials of the last good version."""
        return spread(self.values[self.last_good])

    @property
    def lines(self) -> tuple[str, str, str]:
        """The answer, its evidence and its cause."""
        last, first = self.versions[self.last_good].name, self.versions[self.first_bad].title
        now, then = (self.values[i].mean() for i in (self.first_bad, self.last_good))
        answer = f"{first} is the first that differs"
        if self.between:
            names = [version.title for version in self.between]
            answer = f"The first that differs is one of {', '.join([*names, first])}"
        seen = f"{self.measure.words} {now:.4g} instead of {then:.4g} of {last}"
        tests = f"p = {self.p_value:.2g}, two trials of {last} differ by {self.noise_floor:.2g}"
        why = [f"{self.versions[i].name} skipped: {text}" for i, text in self.skipped.items()]
        evidence = "; ".join([tests, *why])
        return f"{answer}: {seen}.", f"Evidence: {evidence}.", self.explained.cause_line

    @property
    def next_lines(self) -> list[str]:
        """As `Explanation.next_lines`, without commands for a commit, which no other process has.

        Its stack is registered by this bisection alone.
        """
        ours = [f"{v.stack}:" for v in self.versions if isinstance(v, Commit)]
        lines = self.explained.next_lines
        return [line for line in lines if not any(name in line for name in ours)]

    def frame(self) -> pd.DataFrame:
        """One row per version that was tried: its number, and on which side it is."""
        rows = []
        for i in sorted({*self.values, *self.skipped}):
            value = float(self.values[i].mean()) if i in self.values else math.nan
            side = "good" if i <= self.last_good else "bad"
            rows.append((self.versions[i].title, value, self.skipped.get(i, side)))
        return pd.DataFrame(rows, columns=["version", self.measure.name, "side"])

    def parameters(self) -> pd.DataFrame:
        """What packets show of both: see `Explanation.frame`."""
        return self.explained.frame()

    def __repr__(self) -> str:
        return "\n".join(self.lines)


def bisect(
    good: str,
    bad: str,
    *,
    metric: str = "share",
    controller: str = "cubic",
    reference: str = "tcp:cubic",
    bottleneck: Bottleneck | None = None,
    duration_s: float = 60.0,
    seeds: int = DEFAULT_SEEDS,
    clone: str | Path | None = None,
    build: str | None = None,
    progress: bool = False,
    say: Say = lambda _: None,
) -> Bisection:
    """Find the first version after ``good`` that differs in a metric, as ``bad`` does.

    ``good`` and ``bad`` are releases of one stack (``quinn@0.11.2``), or with ``clone`` and
    ``build`` two commits of a stack in the user's ``stacks.toml`` (``mine@v1.0``), whose program is
    in that clone and is made there by the command. ``metric`` is ``share`` or ``conformance``, a
    column of `qbkit.metrics.summary`, or an inferred parameter such as ``beta``; the latter are of
    flows alone on the link, and the others of flows beside the ``reference``. Runs and builds are
    stored, so that a bisection that was stopped goes on where it was.

    Raises MetricError for an unknown metric and if the ends do not differ, SpecError for versions
    that cannot be bisected, and what builds and runs of the ends raise.
    """
    measure = measure_of(metric)
    if (seeds := whole(seeds, "seeds")) < 1 or smallest_p(seeds, seeds) > LEVEL:
        raise SpecError(f"seeds = {seeds} cannot decide; give {enough_trials(LEVEL)} or more")
    link = bottleneck or Bottleneck()
    require_hull("imc22", duration_s, link.rtt_ms)  # for the explanation at the end
    stack, first, last = ends(good, bad)
    if (clone is None) != (build is None):
        raise SpecError(
            "commits need both the folder of a clone and a command that builds it; "
            "give --clone and --build (in Python: clone and build)"
        )
    versions: Sequence[Version] = releases(stack, first, last) if clone is None else []
    if clone is not None and build is not None:
        where = Clone(stack, Path(clone).expanduser().resolve(), build)
        versions = commits(where, first, last)
    for version in (versions[0], versions[-1]):
        version.check(controller)
    beside = Flow(reference)
    stacks.get(beside.stack).check(beside.controller, beside.options, beside.source)
    trial = _Trials(
        versions, measure, controller, reference, link, duration_s, seeds, progress, say
    )
    return trial.bisected()


@dataclass
class _Trials:
    """The runs of versions, and what they show."""

    versions: Sequence[Version]
    measure: Measure
    controller: str
    reference: str
    link: Bottleneck
    duration_s: float
    seeds: int
    progress: bool
    say: Say
    values: dict[int, FloatArray] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)

    def bisected(self) -> Bisection:
        """The whole search."""
        bad = len(self.versions) - 1
        for end in (0, bad):
            self.values[end] = self._measured(end)
        self._require_difference(bad)
        found = search(len(self.versions), self._side)
        explained = self._explained(found.first_bad, found.last_good)
        both = (found.last_good, found.first_bad)
        return Bisection(self.measure, self.versions, self.values, self.skipped, *both, explained)

    def _require_difference(self, bad: int) -> None:
        """Raise MetricError unless the two ends differ."""
        for end in (0, bad):
            if unseen := self._unseen(self.values[end]):
                name = self.versions[end].name
                raise MetricError(f"{unseen} of {name}; take another metric, or longer runs")
        p = difference_p(self.values[bad], self.values[0])
        if p > LEVEL:
            now, then = self.values[bad].mean(), self.values[0].mean()
            raise MetricError(
                f"{self.versions[bad].name} does not differ from {self.versions[0].name}: "
                f"{self.measure.words} {now:.4g} and {then:.4g}, p = {p:.2g}, where two trials "
                f"differ by {spread(self.values[0]):.2g}; take more seeds or another metric"
            )

    def _side(self, i: int) -> Side:
        """On which side a version is; unknown if it cannot be built, run or judged."""
        try:
            values = self._measured(i)
        except QbkitError as error:
            self.skipped[i] = str(error)
            self.say(f"skipped {self.versions[i].title}: {error}")
            return "unknown"
        self.values[i] = values
        if unseen := self._unseen(values):
            self.skipped[i] = unseen
            return "unknown"
        if difference_p(values, self.values[0]) <= LEVEL:
            return "bad"
        if difference_p(values, self.values[len(self.versions) - 1]) <= LEVEL:
            return "good"
        self.skipped[i] = f"{self.seeds} seeds do not tell it from either end"
        return "unknown"

    def _unseen(self, values: FloatArray) -> str:
        """In how many runs of a version the metric is not seen; "" if it is in all."""
        unseen = int((~np.isfinite(values)).sum())
        return f"{self.measure.name} is not seen in {unseen} of {self.seeds} runs" if unseen else ""

    def _measured(self, i: int) -> FloatArray:
        """The numbers of a version, one per seed."""
        self.versions[i].prepare(self.say)
        flow = self._flow(i)
        is_alone = self.measure.is_alone
        runs = self._run([flow]) if is_alone else self._competing(flow)
        values = self.measure.values(runs, self._of_reference)
        self.say(f"{self.versions[i].title}: {self.measure.words} {values.mean():.4g}")
        return values

    def _flow(self, i: int) -> str:
        return f"{self.versions[i].stack}:{self.controller}"

    @cached_property
    def _of_reference(self) -> list[xr.Dataset]:
        """The reference against itself, which only the conformance needs."""
        return self._competing(self.reference) if self.measure.name == "conformance" else []

    def _competing(self, flow: str) -> list[xr.Dataset]:
        return self._run([flow, self.reference])

    def _run(self, flows: Sequence[str]) -> list[xr.Dataset]:
        wanted = experiments(flows, self.link, duration_s=self.duration_s, seeds=self.seeds)
        return self._run_all(wanted)

    def _run_all(self, wanted: Sequence[Experiment]) -> list[xr.Dataset]:
        if isinstance(self.versions[0], Commit):  # only this process knows their stacks
            return [run(experiment, progress=self.progress) for experiment in wanted]
        return run_every(wanted, progress=self.progress)

    def _explained(self, first_bad: int, last_good: int) -> Explanation:
        """What most likely sets the first bad version apart from the last good one."""
        is_next = first_bad == last_good + 1
        what = "is the first that differs" if is_next else "is the first of those run that differs"
        self.say(
            f"{self.versions[first_bad].title} {what}; looking for the cause: "
            f"it and {self.versions[last_good].name} run alone, for up to {ALONE_S:g} s"
        )
        new, old = (self._flow(i) for i in (first_bad, last_good))
        study = Study(new, old, self._competing(new), self._competing(old))
        sides = lone(
            (new, old),
            self.link,
            self._run_all,
            duration_s=self.duration_s,
            seeds=self.seeds,
        )
        return explanation_of(study, sides)


def spread(values: FloatArray) -> float:
    """Mean absolute difference between two trials: the noise floor of one number."""
    apart = np.abs(values[:, None] - values[None, :])
    return float(apart.sum() / (len(values) * (len(values) - 1)))
