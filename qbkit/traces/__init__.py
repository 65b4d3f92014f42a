"""What was seen: captures and telemetry to one run dataset."""

from qbkit.traces.dataset import build
from qbkit.traces.imported import read_pcaps

__all__ = ["build", "read_pcaps"]
