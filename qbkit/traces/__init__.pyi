from .logs.any_log import read_log as read_log
from .logs.capture import read_capture as read_capture
from .logs.netlog import read_netlog as read_netlog
from .logs.qlog import read_qlog as read_qlog
from .logs.run_flow import flow_events as flow_events
from .run.dataset import build as build
from .run.dissected import packets_around as packets_around
from .run.imported import read_pcaps as read_pcaps
