"""qbkit: congestion control of real QUIC and TCP stacks, measured in virtual time.

``import qbkit as qb``; then ``qb.Experiment(flows=["tcp:cubic", "tcp:bbr"]).run()``.

What is heavy to import (xarray, Altair) is imported when it is first asked for, so that the command
line answers at once. Datasets have the accessor ``ds.qb`` all the same (`qbkit.accessor`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from qbkit import accessor
from qbkit.errors import EngineError, QbkitError
from qbkit.spec import Bottleneck, Experiment, Flow, above

if TYPE_CHECKING:
    import xarray as xr

    from qbkit import cca, metrics, plots
    from qbkit.execution.runner import run
    from qbkit.execution.sweeps import load_cube, publish_sweep, run_sweep
    from qbkit.spec.sweep import Sweep
    from qbkit.stacks.table import implementations, stack_table
    from qbkit.store import load, runs, save
    from qbkit.store.published import load_runs, load_sweep, publish_runs
    from qbkit.studies.conformance import Study, conformance_study, load_study, publish_study
    from qbkit.studies.explain import (
        Explanation,
        WhatIf,
        explain,
        load_explanation,
        publish_explanation,
        what_if,
    )
    from qbkit.traces import flow_events, read_capture, read_netlog, read_pcaps, read_qlog

__all__ = [
    "Bottleneck",
    "EngineError",
    "Experiment",
    "Explanation",
    "Flow",
    "QbkitError",
    "Study",
    "Sweep",
    "WhatIf",
    "cca",
    "conformance_study",
    "explain",
    "flow_events",
    "implementations",
    "load",
    "load_cube",
    "load_explanation",
    "load_runs",
    "load_study",
    "load_sweep",
    "metrics",
    "plots",
    "publish_explanation",
    "publish_runs",
    "publish_study",
    "publish_sweep",
    "read_capture",
    "read_netlog",
    "read_pcaps",
    "read_qlog",
    "run",
    "run_sweep",
    "runs",
    "save",
    "stack_table",
    "what_if",
]

_HOMES = {
    "Explanation": "qbkit.studies.explain",
    "WhatIf": "qbkit.studies.explain",
    "explain": "qbkit.studies.explain",
    "load_explanation": "qbkit.studies.explain",
    "publish_explanation": "qbkit.studies.explain",
    "what_if": "qbkit.studies.explain",
    "run": "qbkit.execution.runner",
    "load": "qbkit.store",
    "runs": "qbkit.store",
    "save": "qbkit.store",
    "Study": "qbkit.studies.conformance",
    "conformance_study": "qbkit.studies.conformance",
    "load_study": "qbkit.studies.conformance",
    "publish_study": "qbkit.studies.conformance",
    "Sweep": "qbkit.spec.sweep",
    "load_cube": "qbkit.execution.sweeps",
    "run_sweep": "qbkit.execution.sweeps",
    "load_runs": "qbkit.store.published",
    "load_sweep": "qbkit.store.published",
    "publish_runs": "qbkit.store.published",
    "publish_sweep": "qbkit.execution.sweeps",
    "flow_events": "qbkit.traces",
    "read_capture": "qbkit.traces",
    "read_netlog": "qbkit.traces",
    "read_pcaps": "qbkit.traces",
    "read_qlog": "qbkit.traces",
    "implementations": "qbkit.stacks.table",
    "stack_table": "qbkit.stacks.table",
}

accessor.register()


def _run(*words: Any, **named: Any) -> xr.Dataset:
    from qbkit.execution.runner import run

    return run(*words, **named)


def _html(experiment: Experiment) -> str:
    from qbkit.plots.html import experiment_html

    return experiment_html(experiment)


above.run, above.html = _run, _html


def __getattr__(name: str) -> object:
    """Import a public name, or one of the packages, from its home."""
    if name in ("cca", "metrics", "plots"):
        return import_module(f"qbkit.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'qbkit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
