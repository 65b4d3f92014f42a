"""Published runs that stand in for those that cannot run here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qbkit.errors import EngineError, QbkitError, StackNotReady
from qbkit.progress import notice
from qbkit.spec import Experiment

if TYPE_CHECKING:
    import xarray as xr

CANNOT_RUN = (EngineError, StackNotReady)
"""What says that an experiment cannot run on this machine, whatever its numbers."""


def stand_ins(
    failures: Mapping[str, QbkitError], folder: str | Path | None
) -> dict[str, xr.Dataset]:
    """The published run in a folder of each experiment that cannot run here; a line says so.

    ``failures`` holds the error of each experiment by its hash, as the result does. An experiment
    has a stand-in only where its very spec was published. Raises StoreError where the folder holds
    no published runs.
    """
    wanted = {name: error for name, error in failures.items() if isinstance(error, CANNOT_RUN)}
    if folder is None or not wanted:
        return {}
    from qbkit.store.datasets import load_run
    from qbkit.store.index import published_files

    places = {_spec_hash(facts): path for path, facts in published_files(folder, "runs")}
    found = {name: load_run(places[name]) for name in wanted if name in places}
    if found:
        runs = "a published run" if len(found) == 1 else f"{len(found)} published runs"
        reasons = "; ".join(dict.fromkeys(str(wanted[name]) for name in found))
        notice(f"From {folder}: {runs}, because this machine cannot run the same: {reasons}")
    return found


def _spec_hash(facts: Mapping[str, Any]) -> str:
    """The hash of the experiment of a published run; empty for imported captures."""
    spec = facts["provenance"]["spec"]
    return Experiment.from_json(json.dumps(spec)).hash if spec else ""
