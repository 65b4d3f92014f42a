"""Does an implementation behave like the reference? The experiment of IMC'22 §2.1, seed by seed.

A test flow competes with a control flow of the reference. In a second run, a reference flow
competes with the same control flow. Each seed gives one trial of both, and the Performance
Envelopes of all trials are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import xarray as xr

from qbkit import plots, stacks
from qbkit.arguments import whole
from qbkit.errors import MetricError, SpecError, StoreError
from qbkit.execution.many import run_every
from qbkit.metrics import Assessment, Gate, assess, envelope, gates
from qbkit.metrics.verdicts.words import Verdict, study_verdict
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.spec.flow import as_flow
from qbkit.store.faults import Fault, fault_line, faults_html, known_faults, possible_faults
from qbkit.store.published import load_runs, publish_runs, published_index
from qbkit.studies.alike import require_same
from qbkit.traces.run.early_end import EARLY_END

if TYPE_CHECKING:
    import altair as alt

    from qbkit.studies.replay_on_click import ReplayOnClick

MOST_SEEDS = 1000
DEFAULT_SEEDS = 5


class StudyPlots:
    """``study.plot``: charts of a study, as Altair charts that can be layered and saved."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._reference = f"{study.reference} (reference)"
        self.sides = {study.test: study.tests, self._reference: study.references}

    def envelope(self, *, definition: str = "imc22") -> alt.LayerChart:
        """Envelopes of both sides, and the verdict; see `qbkit.plots.envelope_chart`."""
        return plots.envelope_chart(
            {name: envelope(runs, definition=definition) for name, runs in self.sides.items()},
            reference=self._reference,
            assessment=self._study.assess(definition=definition),
            title=self._study.test,
        )

    def linked(self, *, definition: str = "imc22") -> alt.HConcatChart:
        """Timelines and envelopes, linked by a brush; see `qbkit.plots.linked_chart`."""
        return plots.linked_chart(self.sides, definition=definition, reference=self._reference)


@dataclass(frozen=True, repr=False)
class Study:
    """The runs of a test and of its reference; flow 0 of each run is the one under test."""

    test: str
    reference: str
    tests: list[xr.Dataset]
    references: list[xr.Dataset]

    def assess(self, *, definition: str = "imc22") -> Assessment:
        """Conformance, deviation and verdict; see `qbkit.metrics.assess`.

        Computed once for each definition.
        """
        if definition not in self._assessments:
            self._assessments[definition] = assess(
                self.tests,
                self.references,
                names=(self.test, self.reference),
                definition=definition,
            )
        return self._assessments[definition]

    @cached_property
    def faults(self) -> list[Fault]:
        """The known faults of the test that the reference lacks, from ``data/faults.csv``.

        Between two releases of a stack there are none: nobody looked whether the other has them.
        Nor is one that ends connections, if no connection of the test ended early.
        """
        shared = {f.fault for f in possible_faults(_first_flow(self.references) or self.reference)}
        ours = known_faults(_first_flow(self.tests) or self.test)
        ended = any(EARLY_END in run and run[EARLY_END].notnull()[0] for run in self.tests)
        found = [fault for fault in ours if fault.fault not in shared]
        return [fault for fault in found if ended or not fault.ends_flow]

    def verdict(self, cause: str = "", *, definition: str = "imc22") -> Verdict:
        """The verdict, with a known fault of the test, or else with ``cause``, as a line."""
        assessment = self.assess(definition=definition)
        if not self.faults:
            return study_verdict(assessment, cause)
        remedied = self.faults[0].remedied
        return study_verdict(assessment, fault=fault_line(self.faults), remedied=remedied)

    def gates(
        self,
        *,
        min_conformance: float | Literal["floor"] | None = None,
        max_delta_throughput_mbps: float | None = None,
        max_delta_delay_ms: float | None = None,
        definition: str = "imc22",
    ) -> list[Gate]:
        """Whether the study meets the given bounds; see `qbkit.metrics.verdicts.gates`."""
        return gates(
            self.tests,
            self.references,
            min_conformance=min_conformance,
            max_delta_throughput_mbps=max_delta_throughput_mbps,
            max_delta_delay_ms=max_delta_delay_ms,
            definition=definition,
        )

    @property
    def plot(self) -> StudyPlots:
        """Charts of the study."""
        return StudyPlots(self)

    def replay_on_click(self, chart: alt.TopLevelMixin | None = None) -> ReplayOnClick:
        """A chart of `plot`, by default `StudyPlots.linked`, whose points replay their time.

        See `RunAccessor.replay_on_click`.
        """
        from qbkit.studies.replay_on_click import ReplayOnClick

        return ReplayOnClick(self.plot.sides, self.plot.linked() if chart is None else chart)

    def __repr__(self) -> str:
        counts = f"{len(self.tests)} and {len(self.references)} runs"
        return f"<Study of {self.test} against {self.reference}: {counts}>"

    def _repr_html_(self) -> str:
        from qbkit.plots.drawing.html import run_sentence

        head = f"{self.test} against {self.reference}"
        runs = f"{len(self.tests)} and {len(self.references)} runs"
        link = run_sentence(self.tests[0], of_one_run=False) if self.tests else ""
        facts = f"<p>{escape(head)}: {escape(runs)}, {escape(link)}</p>"
        try:
            return facts + self.assess().html(self.verdict(), faults_html(self.faults))
        except MetricError as error:
            return f"{facts}<p>{escape(str(error))}</p>"

    @cached_property
    def _assessments(self) -> dict[str, Assessment]:
        return {}


def experiments(
    flows: Sequence[str | Flow],
    bottleneck: Bottleneck,
    *,
    duration_s: float,
    seeds: int,
    start_window_s: float | None = None,
) -> list[Experiment]:
    """Experiments of the same flows with seeds 1 to ``seeds``."""
    parsed = tuple(as_flow(flow) for flow in flows)
    return [
        Experiment(
            bottleneck=bottleneck,
            flows=parsed,
            duration_s=duration_s,
            seed=seed,
            start_window_s=start_window_s,
        )
        for seed in range(1, seeds + 1)
    ]


def conformance_study(
    test: str | Flow,
    reference: str | Flow = "tcp:cubic",
    *,
    bottleneck: Bottleneck | None = None,
    duration_s: float = 120.0,
    seeds: int = DEFAULT_SEEDS,
    start_window_s: float | None = None,
    engine: str | None = None,
    scheduler: str | None = None,
    progress: bool = False,
    published: str | Path | None = None,
) -> Study:
    """Run test and reference (``stack:controller``, or a `Flow`) with seeds 1 to ``seeds``.

    The control flow of both is the reference, as in the paper. Both flows start at random within
    ``start_window_s`` (default: `Experiment.effective_start_window_s`). Stored runs are loaded.
    ``scheduler`` is the address of a Dask scheduler, as for `qbkit.run_all`, and ``published`` the
    folder of a published study, as for `qbkit.run`. Raises what `qbkit.run_all` and `qbkit.run`
    raise.
    """
    if (seeds := whole(seeds, "seeds")) < 1:
        raise SpecError(f"seeds = {seeds}: give at least 1, and 5 or more for a verdict")
    if seeds > MOST_SEEDS:
        raise SpecError(f"seeds = {seeds}: give at most {MOST_SEEDS}; 5 decide most verdicts")
    ours, theirs = as_flow(test), as_flow(reference)
    _require_one_kind(ours, theirs)
    require_same(ours, [theirs], ("bytes", "direction"))
    link = bottleneck or Bottleneck()
    wanted = [
        run
        for judged in (test, reference)
        for run in experiments(
            [judged, reference],
            link,
            duration_s=duration_s,
            seeds=seeds,
            start_window_s=start_window_s,
        )
    ]
    loaded = run_every(
        wanted, engine=engine, scheduler=scheduler, progress=progress, published=published
    )
    names = (ours.title, theirs.title)
    if names[0] == names[1]:
        names = (ours.text, theirs.text)
    return Study(*names, loaded[:seeds], loaded[seeds:])


def study_with(study: Study, test: Flow, **how: Any) -> Study:
    """A study of experiments once more, with another flow as the test; `conformance_study` knows
    ``how``."""
    spec = study.tests[0].qb.experiment
    assert spec is not None  # as of experiments
    return conformance_study(
        test,
        spec.flows[1],
        bottleneck=spec.bottleneck,
        duration_s=spec.duration_s,
        seeds=len(study.tests),
        start_window_s=spec.start_window_s,
        **how,
    )


def _require_one_kind(*flows: Flow) -> None:
    """Raise SpecError where only one of test and reference makes bulk transfers."""
    others = [flow for flow in flows if flow.app or not stacks.get(flow.stack).bulk]
    if 0 < len(others) < len(flows):
        flow = others[0]
        what = (
            f"what its app {flow.app.kind} gives it" if flow.app else "frames at a rate of its own"
        )
        shown = f"'{flow.text}'" if flow.app else flow.name
        raise SpecError(
            f"{flow.name} sends {what}, so envelopes of bulk transfers say nothing of it; give a "
            f"reference of the same kind, or look at it alone: qbkit run {shown} tcp:cubic"
        )


def publish_study(
    study: Study,
    folder: str | Path,
    *,
    facts: Mapping[str, Any] | None = None,
    series: Sequence[str] | None = None,
) -> Path:
    """Write a study for others to open, and return the path of its index.

    `qbkit.store.published.publish_runs` writes the runs. ``facts`` go into the index beside the
    names of test and reference. What is published has no packets (but below an RTT of 10 ms): bins
    of 0.1 s stand for them, so the last printed digit of an assessment of `load_study` may differ
    from that of ``study``. Cite one of the two.
    """
    named = {"test": study.test, "reference": study.reference, **(facts or {})}
    return publish_runs(runs_by_name(study), folder, facts=named, series=series)


def _first_flow(runs: Sequence[xr.Dataset]) -> Flow | None:
    """The flow under test; None where there is no run, or none of an experiment of ours."""
    spec = runs[0].qb.experiment if runs else None
    return spec.flows[0] if spec else None


def runs_by_name(study: Study) -> dict[str, xr.Dataset]:
    """Runs by side and seed, or by a number if seeds are not distinct, as in captures."""
    found: dict[str, xr.Dataset] = {}
    for side, runs in (("test", study.tests), ("reference", study.references)):
        seeds = [run.attrs["seed"] for run in runs]
        distinct = len(set(seeds)) == len(seeds)
        for i, run in enumerate(runs):
            found[f"{side}-seed-{seeds[i]}" if distinct else f"{side}-{i + 1}"] = run
    return found


def load_study(folder: str | Path) -> Study:
    """The study that `publish_study` wrote; StoreError if a file is missing or was changed."""
    return study_of(load_runs(folder), published_index(folder))


def study_of(runs: Mapping[str, xr.Dataset], index: Mapping[str, Any]) -> Study:
    """The study that consists of published runs and their index."""
    sides = {
        side: [run for name, run in runs.items() if name.startswith(side)]
        for side in ("test", "reference")
    }
    if not all(isinstance(index.get(side), str) and runs for side, runs in sides.items()):
        raise StoreError("the published runs are no study: they lack the test or the reference")
    test, reference = (_title(index[side], each) for side, each in sides.items())
    return Study(test, reference, sides["test"], sides["reference"])


def _title(name: str, runs: Sequence[xr.Dataset]) -> str:
    """The published name of a side, with the options that studies once left out of it."""
    spec = runs[0].qb.experiment
    return spec.flows[0].title if spec and spec.flows[0].name == name else name
