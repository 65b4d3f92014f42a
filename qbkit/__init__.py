"""qbkit: congestion control of real QUIC and TCP stacks, measured in virtual time.

``import qbkit as qb``; then ``qb.Experiment(flows=["tcp:cubic", "tcp:bbr"]).run()``.
"""

from qbkit import accessor, metrics
from qbkit.errors import EngineError, QbkitError
from qbkit.runner import run
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.store import load, runs, save
from qbkit.study import Study, conformance_study, load_study, publish_study
from qbkit.traces import read_pcaps

__all__ = [
    "Bottleneck",
    "EngineError",
    "Experiment",
    "Flow",
    "QbkitError",
    "Study",
    "accessor",
    "conformance_study",
    "load",
    "load_study",
    "metrics",
    "plots",
    "publish_study",
    "read_pcaps",
    "run",
    "runs",
    "save",
]


def __getattr__(name: str) -> object:
    """``qb.plots``, imported when it is asked for: Altair costs more than all the rest."""
    if name == "plots":
        import qbkit.plots

        return qbkit.plots
    raise AttributeError(f"module 'qbkit' has no attribute {name!r}")
