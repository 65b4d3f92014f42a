"""qbkit: congestion control of real QUIC and TCP stacks, measured in virtual time.

``import qbkit as qb``; then ``qb.Experiment(flows=["tcp:cubic", "tcp:bbr"]).run()``.

What is heavy to import (xarray, Altair) is imported when it is first asked for, so that the command
line answers at once. Datasets have the accessor ``ds.qb`` all the same (`qbkit.accessor`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from qbkit import accessor
from qbkit.errors import EngineError, QbkitError
from qbkit.spec import Bottleneck, Experiment, Flow

if TYPE_CHECKING:
    from qbkit import metrics, plots
    from qbkit.explaining import (
        Explanation,
        WhatIf,
        explain,
        load_explanation,
        publish_explanation,
        what_if,
    )
    from qbkit.publishing import load_runs, load_sweep, publish_runs, publish_sweep
    from qbkit.runner import run
    from qbkit.stacks.table import implementations, stack_table
    from qbkit.store import load, runs, save
    from qbkit.study import Study, conformance_study, load_study, publish_study
    from qbkit.sweep import Sweep
    from qbkit.sweeping import load_cube, run_sweep
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
    "Explanation": "qbkit.explaining",
    "WhatIf": "qbkit.explaining",
    "explain": "qbkit.explaining",
    "load_explanation": "qbkit.explaining",
    "publish_explanation": "qbkit.explaining",
    "what_if": "qbkit.explaining",
    "run": "qbkit.runner",
    "load": "qbkit.store",
    "runs": "qbkit.store",
    "save": "qbkit.store",
    "Study": "qbkit.study",
    "conformance_study": "qbkit.study",
    "load_study": "qbkit.study",
    "publish_study": "qbkit.study",
    "Sweep": "qbkit.sweep",
    "load_cube": "qbkit.sweeping",
    "run_sweep": "qbkit.sweeping",
    "load_runs": "qbkit.publishing",
    "load_sweep": "qbkit.publishing",
    "publish_runs": "qbkit.publishing",
    "publish_sweep": "qbkit.publishing",
    "flow_events": "qbkit.traces",
    "read_capture": "qbkit.traces",
    "read_netlog": "qbkit.traces",
    "read_pcaps": "qbkit.traces",
    "read_qlog": "qbkit.traces",
    "implementations": "qbkit.stacks.table",
    "stack_table": "qbkit.stacks.table",
}

accessor.register()


def __getattr__(name: str) -> object:
    """Import a public name, or one of the packages ``metrics`` and ``plots``, from its home."""
    if name in ("metrics", "plots"):
        return import_module(f"qbkit.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'qbkit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
