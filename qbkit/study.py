"""Does this implementation behave like the reference? The experiment of IMC'22 §2.1, seed by seed.

A test flow competes with a control flow of the reference; a reference flow competes with the same
control flow. Each seed gives one trial of both; the Performance Envelopes of all trials are
compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from qbkit import store
from qbkit.batch import datasets, run_all
from qbkit.errors import SpecError, StoreError
from qbkit.metrics import Assessment, assess
from qbkit.spec import Bottleneck, Experiment, Flow

DEFAULT_SEEDS = 5


@dataclass(frozen=True)
class Study:
    """The runs of a test and of its reference, flow 0 being the one that is judged."""

    test: str
    reference: str
    tests: list[xr.Dataset]
    references: list[xr.Dataset]

    def assess(self, definition: str = "imc22") -> Assessment:
        """Conformance, deviation and verdict; see `qbkit.metrics.assess`."""
        return assess(self.tests, self.references, definition)


def experiments(
    test: str,
    reference: str,
    bottleneck: Bottleneck,
    *,
    duration_s: float = 120.0,
    seeds: Sequence[int],
) -> list[Experiment]:
    """One experiment a seed: ``test`` (flow 0) against the control flow ``reference`` (flow 1)."""
    flows = (Flow.parse(test), Flow.parse(reference))
    return [
        Experiment(bottleneck=bottleneck, flows=flows, duration_s=duration_s, seed=seed)
        for seed in seeds
    ]


def conformance_study(
    test: str,
    reference: str = "tcp:cubic",
    *,
    bottleneck: Bottleneck | None = None,
    duration_s: float = 120.0,
    seeds: int = DEFAULT_SEEDS,
    engine: str | None = None,
    progress: bool = False,
) -> Study:
    """Run test and reference (``stack:controller``) with seeds 1 to ``seeds``.

    The control flow of both is the reference, as in the paper. Runs that exist are loaded.
    Raises what `qbkit.runner.run` raises.
    """
    if seeds < 1:
        raise SpecError(f"seeds = {seeds}: at least 1 is needed, 5 or more tell noise from signal")
    link = bottleneck or Bottleneck()
    numbers = range(1, seeds + 1)
    wanted = [
        *experiments(test, reference, link, duration_s=duration_s, seeds=numbers),
        *experiments(reference, reference, link, duration_s=duration_s, seeds=numbers),
    ]
    loaded = datasets(run_all(wanted, engine=engine, progress=progress))
    return Study(test, reference, loaded[:seeds], loaded[seeds:])


def publish_study(study: Study, folder: str | Path) -> Path:
    """Write a study without its packet tables (the binned series stay) for others to open.

    ``study.json`` in the folder holds names, provenance (spec, versions, seed, date of each run)
    and SHA-256 checksums of the files. Returns its path.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    files = {}
    for side, runs in (("test", study.tests), ("reference", study.references)):
        for run in runs:
            path = target / f"{side}-seed-{run.attrs['seed']}.nc"
            store.save(_without_packets(run), path)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            files[path.name] = {"sha256": digest, "provenance": _provenance(run)}
    index = target / "study.json"
    document = {"test": study.test, "reference": study.reference, "files": files}
    index.write_text(json.dumps(document, indent=1) + "\n")
    return index


def load_study(folder: str | Path) -> Study:
    """Open what `publish_study` wrote; StoreError where it is missing or was changed."""
    index = Path(folder) / "study.json"
    try:
        document = json.loads(index.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise StoreError(f"there is no published study in {folder}: {error}") from None
    sides: dict[str, list[xr.Dataset]] = {"test": [], "reference": []}
    for name, facts in document["files"].items():
        path = index.with_name(name)
        if hashlib.sha256(path.read_bytes()).hexdigest() != facts["sha256"]:
            raise StoreError(f"{path} is not the file that was published; fetch it again")
        sides[name.split("-")[0]].append(store.load(path))
    return Study(document["test"], document["reference"], sides["test"], sides["reference"])


def _without_packets(run: xr.Dataset) -> xr.Dataset:
    tables = {"packet", "ack", "sample"}
    return run.drop_vars([name for name, v in run.variables.items() if tables & set(v.dims)])


def _provenance(run: xr.Dataset) -> dict[str, object]:
    names = [
        "hash",
        "engine",
        "kernel_version",
        "stack_versions",
        "qbkit_version",
        "seed",
        "created",
        "cpu_s",
    ]
    spec = json.loads(run.attrs["spec"])
    return {"spec": spec, **{name: run.attrs.get(name) for name in names}}
