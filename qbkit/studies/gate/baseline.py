"""The baseline of a gate: one file with its runs, for the question whether a later build differs.

Runs are deterministic, so equal bytes answer it. Where bytes differ, the two builds are two samples
of a chaotic system, and are compared as a test and its reference are.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from qbkit import measurement
from qbkit.errors import StoreError
from qbkit.files import write_whole, writing
from qbkit.metrics import Assessment, Parameters
from qbkit.metrics.verdicts.words import CONFORMS, DIFFERS, UNDECIDED, study_verdict
from qbkit.spec import Experiment
from qbkit.store.digests import digests, moved
from qbkit.store.published import ENVELOPE_SERIES, load_runs, published_index
from qbkit.studies.compare import compare, flat
from qbkit.studies.conformance import Study, publish_study, runs_by_name, study_of
from qbkit.studies.explain import explanation
from qbkit.studies.gate.checks import Answer, Check

AGAIN = "write a new one: each gate leaves baseline.zip in its folder"
DAMAGE = (StoreError, OSError, KeyError, TypeError, ValueError, AttributeError)
"""What readers raise for the files in an archive that is no baseline."""
FROM_OUTCOME: dict[str, Answer] = {DIFFERS: "fails", UNDECIDED: "undecided"}
NOT_COMPARED = ("flows.0.stack", "flows.0.label")
"""Fields of a baseline's experiments that may differ: what the build is called."""


@dataclass(frozen=True)
class Baseline:
    """The runs of an earlier build, its parameters, and the digests of all variables by run."""

    path: Path
    study: Study
    parameters: Parameters
    digests: Mapping[str, Mapping[str, str]]


def write_baseline(path: Path, study: Study, parameters: Parameters) -> None:
    """Write the runs of a gate to one file; StoreError for a folder that cannot be written."""
    facts = {"parameters": parameters.to_dict(), "digests": _digests(study)}
    with tempfile.TemporaryDirectory() as text:
        folder, packed = Path(text) / "runs", Path(text) / path.name
        publish_study(study, folder, facts=facts, series=ENVELOPE_SERIES)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
            for file in sorted(folder.iterdir()):
                archive.write(file, file.name)
        with writing(path):
            write_whole(path, packed.read_bytes())


def read_baseline(path: Path) -> Baseline:
    """What `write_baseline` wrote; StoreError for another file, or another measurement version."""
    if not path.exists():
        raise StoreError(f"there is no baseline {path}; {AGAIN}", refused=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                archive.extractall(folder)
            index = published_index(folder)
            provenances = [facts["provenance"] for facts in index["files"].values()]
            versions = {measurement.version_of(facts) for facts in provenances}
            known = {str(name): dict(each) for name, each in index["digests"].items()}
            parameters = Parameters.from_dict(index["parameters"])
            study = study_of(load_runs(folder), index)
        except (zipfile.BadZipFile, *DAMAGE):
            raise StoreError(f"{path} is damaged or no baseline; {AGAIN}", refused=True) from None
    if versions != {measurement.VERSION}:
        raise StoreError(
            f"{path} is of measurement version {min(versions)}, and this qbkit measures by version "
            f"{measurement.VERSION}; {AGAIN}",
            refused=True,
        )
    return Baseline(path, study, parameters, known)


def require_alike(baseline: Baseline, wanted: Sequence[Experiment]) -> None:
    """Raise StoreError unless the baseline's runs are these experiments, but for the build."""
    there = [json.loads(run.attrs["spec"]) for run in runs_by_name(baseline.study).values()]
    if len(there) != len(wanted):
        raise StoreError(
            f"{baseline.path} has {len(there)} runs, and this gate {len(wanted)}: other seeds; "
            f"give the same options, or {AGAIN}",
            refused=True,
        )
    for then, now in zip(there, wanted, strict=True):
        old, new = (dict(flat("", spec)) for spec in (then, json.loads(now.to_json())))
        for key in dict.fromkeys([*old, *new]):
            if key not in NOT_COMPARED and old.get(key) != new.get(key):
                raise StoreError(
                    f"{baseline.path} has {key} = {old.get(key, 'none')}, and this gate "
                    f"{new.get(key, 'none')}; give the same options, or {AGAIN}",
                    refused=True,
                )


def baseline_check(baseline: Baseline, study: Study, parameters: Parameters) -> Check:
    """Did the build change? Equal bytes say no; else statistics, and the parameters that moved."""
    changed = [
        name for name, found in _digests(study).items() if moved(baseline.digests[name], found)
    ]
    ours = [name for name in changed if name.startswith("test")]
    if not ours:
        return Check("baseline", "meets", f"the same bytes in all {len(study.tests)} runs")
    sides = Study("this build", "the baseline", study.tests, baseline.study.tests)
    explained = explanation(sides, parameters, baseline.parameters)
    outcome = explained.assessment.outcome
    answer = FROM_OUTCOME.get(outcome, "meets")
    said = _in_words(explained.assessment)
    parts = [f"the bytes of {len(ours)} of {len(study.tests)} runs differ; by statistics: {said}"]
    parts += [f"what moved most: {explained.differences[0]}"] if explained.differences else []
    parts += _other_causes(baseline, study, changed)
    rows = [
        (d.meaning, d.role, str(d.reference), str(d.test), d.test.unit)
        for d in explained.differences
    ]
    table = pd.DataFrame(rows, columns=["parameter", "role", "baseline", "this build", "unit"])
    return Check("baseline", answer, "; ".join(parts), table, sides.plot.envelope())


def _in_words(assessment: Assessment) -> str:
    """The outcome; where it is undecided, how many seeds can decide."""
    if assessment.outcome == UNDECIDED:
        return study_verdict(assessment).lines[0].removesuffix(".")
    return "like the baseline" if assessment.outcome == CONFORMS else assessment.outcome


def _other_causes(baseline: Baseline, study: Study, changed: Sequence[str]) -> list[str]:
    """What else than the build may have changed the bytes."""
    names = ("baseline", "now")
    origin = compare(baseline.study, study, names).made_differently()
    fields = [f for f in origin["field"] if not f.startswith(("version of ", "flows.0."))]
    parts = [f"made differently, too: {', '.join(fields)}"] if fields else []
    if any(name.startswith("reference") for name in changed):
        parts.append("the reference's bytes differ, too: not only the build changed")
    return parts


def _digests(study: Study) -> dict[str, dict[str, str]]:
    return {name: digests(run) for name, run in runs_by_name(study).items()}
