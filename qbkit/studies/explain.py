"""Why does an implementation not conform? Compare its inferred parameters with the reference's.

`qbkit.studies.explanation` says what a suspect is, and how much of a difference it accounts for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qbkit.errors import StoreError
from qbkit.execution.many import run_every
from qbkit.execution.stand_ins import CANNOT_RUN
from qbkit.metrics.envelopes.envelope import definition_of
from qbkit.metrics.maps.families import kernel_counterpart
from qbkit.metrics.parameters import PARAMETERS, Parameters, compare, infer, observed
from qbkit.metrics.parameters.effects import PROBING, law
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.store.published import ENVELOPE_SERIES, load_runs, published_index
from qbkit.studies.conformance import (
    DEFAULT_SEEDS,
    Study,
    conformance_study,
    experiments,
    publish_study,
    study_of,
)
from qbkit.studies.exchange import exchange
from qbkit.studies.explanation import Explanation
from qbkit.studies.probing import probing

if TYPE_CHECKING:
    import xarray as xr

PROBE_S = 60.0
PROBE_SEEDS = 2
"""Longest duration and number of the runs of a lone flow, from which parameters are inferred."""


def explain(
    test: str | Flow,
    reference: str | Flow = "tcp:cubic",
    *,
    bottleneck: Bottleneck | None = None,
    duration_s: float = 120.0,
    seeds: int = DEFAULT_SEEDS,
    definition: str = "imc22",
    engine: str | None = None,
    scheduler: str | None = None,
    progress: bool = False,
    published: str | Path | None = None,
) -> Explanation:
    """Assess ``test`` against ``reference`` and find what most likely causes the difference.

    Besides the conformance study, each of the two runs alone on the same link (60 s or
    ``duration_s`` if that is less, two seeds), because a rival's losses would mask the parameters.
    If the likeliest cause is the receiver, the study runs once more with another one. Stored runs
    are loaded. ``published`` is the folder of a published explanation; it,
    ``scheduler`` and the exceptions are as in `qbkit.conformance_study`.
    """
    definition_of(definition)  # raises for an unknown one
    link = bottleneck or Bottleneck()
    study = conformance_study(
        test,
        reference,
        bottleneck=link,
        duration_s=duration_s,
        seeds=seeds,
        engine=engine,
        scheduler=scheduler,
        progress=progress,
        published=published,
    )
    ours, theirs = (
        probes(flow, link, duration_s=duration_s, seeds=seeds) for flow in (test, reference)
    )
    try:
        alone = run_every([*ours, *theirs], engine=engine, scheduler=scheduler, progress=progress)
    except CANNOT_RUN:
        if published is None:
            raise
        return load_explanation(published, definition=definition)
    halves = alone[: len(ours)], alone[len(ours) :]

    def run(wanted: Sequence[Experiment]) -> list[xr.Dataset]:
        return run_every(wanted, engine=engine, scheduler=scheduler, progress=progress)

    seen = probed((test, reference), (study.test, study.reference), link, halves, run)
    sides = (observed(half, more) for half, more in zip(halves, seen, strict=True))
    found = explanation(study, *sides, definition=definition)
    found = replace(found, alone=tuple(each[0] for each in (seen if seen[0] else halves)))
    if not found.suspects_receiver:
        return found
    exchanged = exchange(
        study, found.assessment, engine=engine, scheduler=scheduler, progress=progress
    )
    return replace(found, exchange=exchanged)


def probed(
    flows: Sequence[str | Flow],
    names: Sequence[str],
    link: Bottleneck,
    alone: Sequence[Sequence[xr.Dataset]],
    run: Callable[[Sequence[Experiment]], list[xr.Dataset]],
) -> list[list[xr.Dataset]]:
    """The runs of both flows on a path that probes them, if either models its path; else none.

    ``names`` are those of the study, and ``alone`` the runs of each flow alone on the link.
    """
    if not models_path(names, *(infer(half) for half in alone)):
        return [[] for _ in flows]
    both = run([each for flow in flows for each in probing(flow, link)])
    return [both[: len(both) // 2], both[len(both) // 2 :]]


def probes(
    flow: str | Flow, link: Bottleneck, *, duration_s: float, seeds: int
) -> list[Experiment]:
    """The lone flows from which `explain` infers the parameters of a side."""
    shorter_s, few = min(duration_s, PROBE_S), min(seeds, PROBE_SEEDS)
    return experiments([flow], link, duration_s=shorter_s, seeds=few)


def explanation(
    study: Study, test: Parameters, reference: Parameters, *, definition: str = "imc22"
) -> Explanation:
    """The explanation of a study by inferred parameters."""
    assessment = study.assess(definition=definition)
    fair_mbps = float(study.tests[0].attrs["rate_mbps"]) / study.tests[0].sizes["flow"]
    part = assessment.delta_throughput_mbps / fair_mbps
    models = models_path((study.test, study.reference), test, reference)
    differences = compare(test, reference, part, models_path=models)
    return Explanation(study, assessment, test, reference, differences)


def models_path(names: Sequence[str], test: Parameters, reference: Parameters) -> bool:
    """Whether a side is known to model the path, or was seen to."""
    known = any(kernel_counterpart(name) == "tcp:bbr" for name in names)
    return known or law(test, reference) == PROBING


def publish_explanation(explained: Explanation, folder: str | Path) -> Path:
    """Write a study's envelopes and the inferred parameters, and return the path of the index."""
    sides = {"test": explained.test, "reference": explained.reference}
    facts = {
        "parameters": {side: _part(found, of_source=True) for side, found in sides.items()},
        "behaviour": {side: _part(found, of_source=False) for side, found in sides.items()},
    }
    return publish_study(explained.study, folder, facts=facts, series=ENVELOPE_SERIES)


def _part(found: Parameters, *, of_source: bool) -> dict[str, Any]:
    """The parameters alone, which `qbkit reproduce` infers again, or the behaviour alone."""
    chosen = [e for e in found.values() if (e.name in PARAMETERS) is of_source]
    return Parameters(found.label, chosen).to_dict()


def load_explanation(folder: str | Path, *, definition: str = "imc22") -> Explanation:
    """What `publish_explanation` wrote; StoreError if a file is missing or was changed."""
    runs, index = load_runs(folder), published_index(folder)
    try:
        ours, theirs = (_published(index, side) for side in ("test", "reference"))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise StoreError(f"the study in {folder} has no parameters of both sides") from None
    return explanation(study_of(runs, index), ours, theirs, definition=definition)


def _published(index: Mapping[str, Any], side: str) -> Parameters:
    """The parameters of a side, and its behaviour where that was published, too."""
    parts = [index["parameters"][side]]
    parts += [index["behaviour"][side]] if "behaviour" in index else []
    found = [Parameters.from_dict(part) for part in parts]
    return Parameters(found[0].label, [e for part in found for e in part.values()])
