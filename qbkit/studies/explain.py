"""Why does an implementation not conform? Compare its inferred parameters with the reference's.

`qbkit.studies.explanation` says what a suspect is, and how much of a difference it accounts for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from qbkit.errors import StoreError
from qbkit.execution.many import run_every
from qbkit.execution.stand_ins import CANNOT_RUN
from qbkit.metrics.envelopes.envelope import require_hull
from qbkit.metrics.parameters import PARAMETERS, Parameters
from qbkit.spec import Bottleneck, Flow
from qbkit.store.published import ENVELOPE_SERIES, load_runs, published_index
from qbkit.studies.conformance import (
    DEFAULT_SEEDS,
    Study,
    conformance_study,
    publish_study,
    study_of,
)
from qbkit.studies.exchange import Exchange, exchange
from qbkit.studies.explanation import Explanation
from qbkit.studies.lone import Lone, differences, lone
from qbkit.studies.probing import ALONE_SEEDS


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
    ``duration_s`` if that is less, four seeds), because a rival's losses would mask the parameters.
    If the likeliest cause is the receiver, the study runs once more with another one. Stored runs
    are loaded. ``published`` is the folder of a published explanation; it, ``scheduler`` and the
    exceptions are as in `qbkit.conformance_study`. Flows too short for a hull are a SpecError.
    """
    link = bottleneck or Bottleneck()
    require_hull(definition, duration_s, link.rtt_ms)
    much: dict[str, Any] = {"duration_s": duration_s, "seeds": seeds}
    how: dict[str, Any] = {"engine": engine, "scheduler": scheduler, "progress": progress}
    study = conformance_study(test, reference, bottleneck=link, published=published, **much, **how)
    try:
        sides = lone((test, reference), link, partial(run_every, **how), **much)
    except CANNOT_RUN:
        if published is None:
            raise
        return load_explanation(published, definition=definition)
    found = explanation_of(study, sides, definition=definition)
    if not found.suspects_receiver:
        return found
    return replace(found, exchange=exchange(study, found.assessment, **how))


def explanation_of(
    study: Study, sides: Sequence[Lone], *, definition: str = "imc22"
) -> Explanation:
    """The explanation of a study by what each side does alone, with the runs that show it."""
    found = explanation(study, *(side.parameters for side in sides), definition=definition)
    first = found.suspects[0].name if found.suspects else ""
    return replace(found, alone=tuple(side.showing(first) for side in sides))


def explanation(
    study: Study, test: Parameters, reference: Parameters, *, definition: str = "imc22"
) -> Explanation:
    """The explanation of a study by inferred parameters."""
    assessment = study.assess(definition=definition)
    fair_mbps = float(study.tests[0].attrs["rate_mbps"]) / study.tests[0].sizes["flow"]
    part = assessment.delta_throughput_mbps / fair_mbps
    found = differences(study, test, reference, part)
    return Explanation(study, assessment, test, reference, found)


def publish_explanation(explained: Explanation, folder: str | Path) -> Path:
    """Write a study's envelopes and the inferred parameters, and return the path of the index."""
    sides = {"test": explained.test, "reference": explained.reference}
    facts: dict[str, Any] = {
        "alone_seeds": ALONE_SEEDS,
        "parameters": {side: _part(found, of_source=True) for side, found in sides.items()},
        "behaviour": {side: _part(found, of_source=False) for side, found in sides.items()},
    }
    if explained.exchange:
        facts["exchange"] = explained.exchange.to_dict()
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
        exchanged = Exchange.from_dict(index["exchange"]) if "exchange" in index else None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise StoreError(f"the study in {folder} has no parameters of both sides") from None
    found = explanation(study_of(runs, index), ours, theirs, definition=definition)
    return replace(found, exchange=exchanged)


def _published(index: Mapping[str, Any], side: str) -> Parameters:
    """The parameters of a side, and its behaviour where that was published, too."""
    parts = [index["parameters"][side]]
    parts += [index["behaviour"][side]] if "behaviour" in index else []
    found = [Parameters.from_dict(part) for part in parts]
    return Parameters(found[0].label, [e for part in found for e in part.values()])
