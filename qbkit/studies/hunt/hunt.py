"""``qb.hunt``: where is an implementation at its worst, compared with the kernel's?

A network's score is the difference of the two in that network, each beside the same rival with the
same seed. The budget is processor time: that of the runs, which each run keeps. So a hunt that is
started again loads its stored runs, counts what they took, and goes on where it was.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from qbkit.errors import RunFailed, SpecError
from qbkit.execution.cluster import local_cluster
from qbkit.execution.many import run_all
from qbkit.execution.preflight import cpu_s
from qbkit.execution.runner import namer
from qbkit.metrics.evaluation.harm import compared
from qbkit.metrics.evaluation.measures import MEASURES
from qbkit.metrics.maps.families import kernel_counterpart
from qbkit.progress import bar as progress_bar
from qbkit.spec.book import Scenario
from qbkit.spec.experiment import Experiment
from qbkit.spec.flow import Flow, as_flow
from qbkit.studies.alike import require_same
from qbkit.studies.hunt.found import Hunt, book_of
from qbkit.studies.hunt.metric import METRICS
from qbkit.studies.hunt.network import Network
from qbkit.studies.hunt.search import GENERATION, Spent, first_networks, search, shrink
from qbkit.suggestions import did_you_mean
from qbkit.testbed.engines import runs_at_once
from qbkit.traces.run.early_end import EARLY_END, early_end_sentences

SEARCH_PART = 0.6
"""Part of the budget for the search; the rest is for the way back."""
SEARCH_SEEDS, SHRINK_SEEDS = (1001,), (1001, 1002)
CONFIRMING = 5
"""New seeds, from 1 on."""
STAYS = 0.7
"""A simpler network shows the finding if it keeps this part of the score."""
LEAST_SCORE = 0.05
"""A score below this is no finding."""
SHRINK_STEPS = 6
"""Networks that the way back takes at least."""


def hunt(
    sender: str | Flow,
    *,
    metric: str = "share",
    budget_s: float = 1800.0,
    engine: str | None = None,
    scheduler: str | None = None,
    progress: bool = False,
) -> Hunt:
    """Search the network where a sender is at its worst compared with the kernel's controller.

    ``metric`` is ``share`` (of the link beside a rival, too little or too much), ``utilisation`` or
    ``delay``. The kernel's controller of the same family takes the sender's place with the same
    rival and seed. The worst network is shrunk to the simplest that keeps `STAYS` of the
    difference, and run again with new seeds. ``budget_s`` is processor time of the runs, about;
    stored runs count with what they took, so that a hunt that is started again goes on.
    Raises SpecError before the first run for an unknown metric, a sender without a counterpart in
    the kernel, and a budget that is too small; RunFailed if no network of the search could be run.
    """
    tested = as_flow(sender)
    if metric not in METRICS:
        near = did_you_mean(str(metric), list(METRICS))
        raise SpecError(f"there is no metric {metric!r}{near}; choose from {', '.join(METRICS)}")
    reference = kernel_counterpart(tested.name)
    if not reference or tested.text == reference:
        raise SpecError(
            f"{tested.text} has no other counterpart in the kernel; hunt a CUBIC, Reno or BBR"
        )
    require_same(tested, [Flow(reference)])
    namer(engine)(Experiment(flows=(tested,)))  # raises for what cannot run at all
    hunter = _Hunter(tested.text, reference, metric, budget_s, engine)
    _require_budget(hunter)
    how = {"total": budget_s, "desc": tested.text, "bar_format": BAR, "leave": False}
    with (
        _workers(engine, scheduler) as hunter.scheduler,
        progress_bar(disable=not progress, **how) as hunter.bar,
    ):
        return hunter.hunt()


@contextmanager
def _workers(engine: str | None, scheduler: str | None) -> Iterator[str]:
    """Address of the scheduler, or of a new one of this machine's processors, for all runs."""
    if scheduler is not None:
        yield scheduler
        return
    with local_cluster(runs_at_once(engine)) as cluster:
        yield cluster.scheduler_address


BAR = "{desc} |{bar}| {n:.0f}/{total:.0f} processor s [{elapsed}<{remaining}]"


def _require_budget(hunter: _Hunter) -> None:
    """Raise SpecError for a budget that leaves too little for the search and the way back."""
    networks = first_networks(hunter.metric.rivals)
    first_s = sum(hunter.expected_s(network, 1) for network in networks)
    mean_s = first_s / len(networks)
    needed_s = first_s / SEARCH_PART + mean_s * (SHRINK_STEPS * len(SHRINK_SEEDS) + CONFIRMING)
    if not isinstance(hunter.budget_s, int | float) or not hunter.budget_s >= 0:
        raise SpecError(f"budget_s = {hunter.budget_s!r}: give processor seconds")
    if hunter.budget_s < needed_s:
        raise SpecError(
            f"a budget of {hunter.budget_s:.0f} processor seconds is too small for "
            f"{hunter.sender}: the first {GENERATION} networks, and the way back from the worst, "
            f"take about {needed_s:.0f}; give {math.ceil(needed_s / 60)}m or more"
        )


class _Hunter:
    """A hunt under way: what was run, and what it took."""

    bar: Any = None
    scheduler: str | None = None

    def __init__(
        self,
        sender: str,
        reference: str,
        metric: str,
        budget_s: float,
        engine: str | None,
    ) -> None:
        self.sender, self.reference = sender, reference
        self.metric_name, self.metric = metric, METRICS[metric]
        self.budget_s = budget_s
        self.engine = engine
        self.spent: dict[str, float] = {}
        self.expected: dict[str, float] = {}
        """Name of a run → processor seconds that it took, and that were expected."""
        self.rows: list[dict[str, Any]] = []
        self.scored: dict[tuple[Network, Sequence[int]], float] = {}
        self.failed: list[str] = []
        self.early = ""

    @property
    def spent_s(self) -> float:
        """Processor seconds of all runs so far."""
        return sum(self.spent.values())

    def hunt(self) -> Hunt:
        """Search, shrink, confirm."""
        self.allowed_s = SEARCH_PART * self.budget_s
        search(self.search_scores, self.metric.rivals)
        if not self.rows:
            why = self.failed[0] if self.failed else "none ended"
            raise RunFailed(f"no network of the search could be run: {why}")
        worst = max(self.rows, key=lambda row: row["score"])
        self.early = ""
        network = worst["network"]
        if worst["score"] >= LEAST_SCORE:
            network = self.simplest(network)
        return self.confirm(worst["network"], network)

    def search_scores(self, networks: Sequence[Network]) -> list[float]:
        """Scores of a generation; raises `Spent` if the search has no budget for it."""
        return self.scores(networks, SEARCH_SEEDS, "search")

    def simplest(self, worst: Network) -> Network:
        """The simplest network that shows what the worst one shows."""
        self.allowed_s = math.inf
        [whole] = self.scores([worst], SHRINK_SEEDS, "shrink")

        def remains(network: Network) -> bool:
            rest_s = 2 * CONFIRMING * self.expected_s(network, 1)
            self.allowed_s = max(self.budget_s - rest_s, 0.0)
            try:
                [score] = self.scores([network], SHRINK_SEEDS, "shrink")
            except (Spent, SpecError):
                return False
            return score >= max(STAYS * whole, LEAST_SCORE)

        return shrink(worst, remains, alone=self.metric.alone)

    def confirm(self, worst: Network, network: Network) -> Hunt:
        """The finding, with new seeds."""
        scenario = network.scenario([self.metric.measure])
        seeds = range(1, CONFIRMING + 1)
        ours = self.values(scenario, self.sender, seeds)
        theirs = self.values(scenario, self.reference, range(1, 2 * CONFIRMING + 1))
        shown = self.metric.shown_by(float(np.nanmean(ours)), float(np.nanmean(theirs)))
        if shown != self.metric.measure:
            ours, theirs = [1 - value for value in ours], [1 - value for value in theirs]
        standards = {self.reference: theirs[:CONFIRMING]}
        one = compared(ours, standards, MEASURES[shown], is_harm=False, rtt_ms=network.rtt_ms)
        rows = [{**row, "network": str(row["network"])} for row in self.rows]
        return Hunt(
            self.sender,
            self.reference,
            self.metric_name,
            worst,
            network,
            book_of(self.sender, self.reference, network.scenario([shown])),
            one,
            own_spread(theirs),
            CONFIRMING,
            pd.DataFrame(rows),
            self.spent_s,
            tuple(dict.fromkeys(self.failed)),
            self.early,
        )

    def scores(self, networks: Sequence[Network], seeds: Sequence[int], what: str) -> list[float]:
        """The score of each network, as the mean over seeds; 0 where a run failed."""
        fresh = [n for n in dict.fromkeys(networks) if (n, seeds) not in self.scored]
        if self.spent_s + sum(self.expected_s(n, len(seeds)) for n in fresh) > self.allowed_s:
            raise Spent
        scenarios = {network: network.scenario([self.metric.measure]) for network in fresh}
        trials = {
            (network, sender, seed): scenario.experiment(sender, {}, seed)
            for network, scenario in scenarios.items()
            for sender in (self.sender, self.reference)
            for seed in seeds
        }
        values = self.measured(trials, scenarios)
        for network in fresh:
            ours, theirs = (
                float(np.mean([values[network, sender, seed] for seed in seeds]))
                for sender in (self.sender, self.reference)
            )
            score = self.metric.score(ours, theirs, network)
            self.scored[network, seeds] = score
            self.rows.append({"what": what, "network": network, "ours": ours, "theirs": theirs,
                              "score": score})  # fmt: skip
        return [self.scored[network, seeds] for network in networks]

    def values(self, scenario: Scenario, sender: str, seeds: Sequence[int]) -> list[float]:
        """The metric's number of a sender in a scenario, by seed; NaN where a run failed."""
        trials = {(None, sender, seed): scenario.experiment(sender, {}, seed) for seed in seeds}
        return list(self.measured(trials, {None: scenario}).values())

    def measured(
        self, trials: dict[tuple[Any, str, int], Experiment], scenarios: dict[Any, Scenario]
    ) -> dict[tuple[Any, str, int], float]:
        """The metric's number of each trial; NaN where its run failed."""
        found = {}
        outcomes = run_all(list(trials.values()), engine=self.engine, scheduler=self.scheduler)
        for (key, experiment), outcome in zip(trials.items(), outcomes, strict=True):
            if outcome.run is None:
                self.failed.append(outcome.reason)
                found[key] = math.nan
                continue
            self.count(outcome.name, outcome.run, experiment)
            found[key] = self.metric.value(outcome.run, scenarios[key[0]])
            if key[1] == self.sender and EARLY_END in outcome.run:
                self.early = early_end_sentences(outcome.run)[0]
        return found

    def count(self, name: str, run: xr.Dataset, experiment: Experiment) -> None:
        """Count what a run took."""
        if name not in self.spent:
            self.spent[name] = float(run.attrs["cpu_s"])
            self.expected[name] = cpu_s(experiment)
            if self.bar is not None:
                self.bar.update(self.spent[name])

    def expected_s(self, network: Network, seeds: int) -> float:
        """Processor seconds of both sides in a network, by what runs have taken so far."""
        scenario = network.scenario([self.metric.measure])
        both = (scenario.experiment(sender, {}, 1) for sender in (self.sender, self.reference))
        part = self.spent_s / sum(self.expected.values()) if self.expected else 1.0
        return seeds * part * sum(cpu_s(experiment) for experiment in both)


def own_spread(values: Sequence[float]) -> float:
    """95 % of the differences between the means of two halves of the values; NaN for under four."""
    known = np.array([value for value in values if math.isfinite(value)])
    if len(known) < 4:
        return math.nan
    half = len(known) // 2
    apart = [
        abs(known[list(chosen)].mean() - np.delete(known, list(chosen)).mean())
        for chosen in itertools.combinations(range(len(known)), half)
    ]
    return float(np.quantile(apart, 0.95))
