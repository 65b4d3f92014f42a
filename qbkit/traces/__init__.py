"""What was seen: captures and telemetry to one run dataset."""

from qbkit.traces.capture import read_capture
from qbkit.traces.dataset import build
from qbkit.traces.imported import read_pcaps
from qbkit.traces.netlog import read_netlog
from qbkit.traces.qlog import read_qlog
from qbkit.traces.run_flow import flow_events

__all__ = ["build", "flow_events", "read_capture", "read_netlog", "read_pcaps", "read_qlog"]
