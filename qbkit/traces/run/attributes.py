"""The attributes of a run: its experiment and its warnings."""

from __future__ import annotations

import json
from typing import Any

import xarray as xr

from qbkit.errors import SpecError, TraceError
from qbkit.json_words import in_words
from qbkit.spec import Experiment


def run_experiment(ds: xr.Dataset) -> Experiment | None:
    """The experiment of a run; None for imported captures, which have none."""
    text = str(ds.attrs.get("spec", ""))
    return Experiment.from_json(text) if text else None


def spec_of(ds: xr.Dataset) -> dict[str, Any]:
    """The experiment of a run as JSON has it; empty for imported captures, which have none."""
    found: dict[str, Any] = json.loads(ds.attrs.get("spec") or "{}")
    return found


def run_warnings(ds: xr.Dataset) -> list[str]:
    """The warnings of a run, one sentence each; raises SpecError where the list is damaged."""
    try:
        warnings = json.loads(ds.attrs.get("warnings", "[]"))
    except (ValueError, TypeError, RecursionError) as error:
        raise SpecError(f"the run's warnings are not valid JSON: {in_words(error)}") from None
    return [str(w) for w in warnings] if isinstance(warnings, list) else [str(warnings)]


def require_run(run: Any) -> None:
    """Raise TraceError for anything but the dataset of a run."""
    if not isinstance(run, xr.Dataset) or "label" not in run:
        raise TraceError("this is no run; give a dataset that qb.run returns or qb.load_run opens")
