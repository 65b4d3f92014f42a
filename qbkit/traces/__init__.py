"""What was seen: captures and telemetry to one run dataset."""

from qbkit.traces.dataset import build
from qbkit.traces.imported import read_pcaps
from qbkit.traces.qlog import read_qlog

__all__ = ["build", "read_pcaps", "read_qlog"]
