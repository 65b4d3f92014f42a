"""What was seen: captures and telemetry to one run dataset."""

from qbkit.traces.logs.capture import read_capture
from qbkit.traces.logs.netlog import read_netlog
from qbkit.traces.logs.qlog import read_qlog
from qbkit.traces.logs.run_flow import flow_events
from qbkit.traces.run.dataset import build
from qbkit.traces.run.imported import read_pcaps

__all__ = ["build", "flow_events", "read_capture", "read_netlog", "read_pcaps", "read_qlog"]
