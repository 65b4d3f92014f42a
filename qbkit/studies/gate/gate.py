"""A gate: the checks of one build, on one network, from as few runs as they need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import xarray as xr

from qbkit.arguments import whole
from qbkit.errors import MetricError, SpecError
from qbkit.execution.many import run_every
from qbkit.metrics import Parameters, infer
from qbkit.metrics.envelopes.envelope import require_hull
from qbkit.metrics.maps.families import kernel_counterpart
from qbkit.metrics.verdicts.gates import require_bounds
from qbkit.plots.drawing.link_words import link_words
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.spec.flow import as_flow
from qbkit.studies.alike import require_same
from qbkit.studies.conformance import DEFAULT_SEEDS, Study, experiments
from qbkit.studies.gate.baseline import Baseline, baseline_check, read_baseline, require_alike
from qbkit.studies.gate.checks import (
    Answer,
    Check,
    conformance_check,
    connection_check,
    draft_check,
    evaluation_check,
    share_check,
    worst,
)
from qbkit.studies.probing import alone

RIVALS = ("tcp:cubic", "tcp:reno", "tcp:bbr")
DURATION_S = 60.0


@dataclass(frozen=True)
class Gated:
    """A build and its checks."""

    sender: str
    reference: str
    network: str
    study: Study
    parameters: Parameters
    checks: list[Check]
    cpu_s: float
    """What its runs cost when they were made; stored ones cost nothing again."""

    @property
    def answer(self) -> Answer:
        """That of the worst check."""
        return worst([check.answer for check in self.checks])


def gate(
    sender: str,
    reference: str | None = None,
    *,
    rivals: Sequence[str] = RIVALS,
    bottleneck: Bottleneck | None = None,
    duration_s: float = DURATION_S,
    seeds: int = DEFAULT_SEEDS,
    min_conformance: float | Literal["floor"] = "floor",
    max_share_percent: float | None = None,
    baseline: Path | None = None,
    bbr_draft: bool = False,
    evaluation: bool = False,
    engine: str | None = None,
    progress: bool = False,
) -> Gated:
    """Check a build: whether its connections last, its conformance with the reference, and its
    share beside each rival; on request a baseline, the test cases of the draft of BBR, and a quick
    evaluation.

    The ``reference`` is by default the kernel's controller of the same family, else its CUBIC. All
    that can be refused is refused before the first run: SpecError, MetricError, StoreError,
    StackNotReady or EngineError.
    """
    link, ours = bottleneck or Bottleneck(), as_flow(sender)
    mine = Flow(reference or kernel_counterpart(ours.name) or "tcp:cubic")
    _require(min_conformance, max_share_percent, seeds, ours, bbr_draft=bbr_draft)
    require_same(ours, [mine])
    require_hull("imc22", duration_s, link.rtt_ms)
    pairs = {"test": [ours, mine], "reference": [mine, mine]}
    pairs |= {rival: [ours, as_flow(rival)] for rival in rivals}
    of = partial(experiments, bottleneck=link, duration_s=duration_s, seeds=seeds)
    wanted = {name: of(flows) for name, flows in pairs.items()}
    before = read_baseline(baseline) if baseline else None
    if before:
        require_alike(before, [*wanted["test"], *wanted["reference"]])
    wanted["alone"] = alone(ours, link, duration_s=duration_s, seeds=seeds)
    runs = _carried_out(wanted, engine=engine, progress=progress)
    study = Study(ours.title, mine.title, runs["test"], runs["reference"])
    parameters = infer(runs["alone"])
    of_build = {
        run.attrs["hash"]: run for name, each in runs.items() if name != "reference" for run in each
    }
    connection = connection_check([*of_build.values()])
    checks = [
        connection,
        _conformance(study, min_conformance, connection),
        share_check(ours.title, {rival: runs[rival] for rival in rivals}, max_share_percent),
        *([_unchanged(before, study, parameters, connection)] if before else []),
        *_requested(ours, bbr_draft, evaluation, engine, progress),
    ]
    cost = {run.attrs["hash"]: float(run.attrs["cpu_s"]) for each in runs.values() for run in each}
    words = ", ".join([*link_words(link), f"{duration_s:g} s", f"seeds 1 to {seeds}"])
    return Gated(ours.title, mine.title, words, study, parameters, checks, sum(cost.values()))


def _require(
    least: float | str, most_share: float | None, seeds: int, ours: Flow, *, bbr_draft: bool
) -> None:
    """Raise for what cannot be a gate."""
    require_bounds(least, None, None)
    if most_share is not None and not 0 < most_share <= 100:
        raise SpecError(f"{most_share:g} % is no share of a link; give more than 0, at most 100")
    if whole(seeds, "seeds") < 2:
        raise SpecError(f"seeds = {seeds}: a gate needs at least 2, and 5 or more for a verdict")
    if bbr_draft and "bbr" not in ours.controller.lower():
        raise SpecError(f"{ours.title} is no BBR; leave --bbr-draft out")


def _carried_out(
    wanted: dict[str, list[Experiment]], *, engine: str | None, progress: bool
) -> dict[str, list[xr.Dataset]]:
    """The runs of each name; an experiment that several ask for is run once."""
    every = {e.hash: e for each in wanted.values() for e in each}
    done = run_every(list(every.values()), engine=engine, progress=progress)
    by_hash = dict(zip(every, done, strict=True))
    return {name: [by_hash[e.hash] for e in each] for name, each in wanted.items()}


def _conformance(study: Study, least: float | Literal["floor"], connection: Check) -> Check:
    """Whether it conforms, if its connections lasted long enough for that."""
    return _unless_too_short(
        "conformance",
        [connection],
        lambda: conformance_check(study, study.gates(min_conformance=least)),
    )


def _unchanged(before: Baseline, study: Study, parameters: Parameters, connection: Check) -> Check:
    """Whether it behaves as before, if the connections of both lasted long enough for that."""
    connections = [connection, connection_check(before.study.tests)]
    make = partial(baseline_check, before, study, parameters)
    return _unless_too_short("baseline", connections, make)


def _unless_too_short(name: str, connections: Sequence[Check], make: Callable[[], Check]) -> Check:
    """A check, undecided where connections ended too early for it."""
    try:
        return make()
    except MetricError as error:
        if worst([check.answer for check in connections]) != "fails":
            raise
        return Check(name, "undecided", str(error))


def _requested(
    ours: Flow,
    bbr_draft: bool,
    evaluation: bool,
    engine: str | None,
    progress: bool,
) -> list[Check]:
    """The checks that are made on request only."""
    checks = []
    if bbr_draft:
        from qbkit.studies.evaluation.cases import judge_cases

        checks.append(draft_check(judge_cases(ours, engine=engine, progress=progress)))
    if evaluation:
        from qbkit.studies.evaluation.evaluate import evaluate

        quick = evaluate(ours.text, quick=True, engine=engine, progress=progress)
        checks.append(evaluation_check(quick))
    return checks
