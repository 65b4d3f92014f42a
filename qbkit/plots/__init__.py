"""Charts and HTML: pure functions from datasets and metrics to Altair charts."""

from qbkit.plots.conformance_map import conformance_map_chart
from qbkit.plots.congestion import cwnd_chart
from qbkit.plots.envelope import envelope_chart
from qbkit.plots.export import save_chart
from qbkit.plots.gallery import gallery_chart
from qbkit.plots.handshake import handshake_chart
from qbkit.plots.html import experiment_html, run_html
from qbkit.plots.interactions import expectation_chart, interaction_chart
from qbkit.plots.linked import linked_chart
from qbkit.plots.noise import noise_floor_chart
from qbkit.plots.progress import bandwidth_chart, bytes_acked_chart
from qbkit.plots.queue_animation import queue_animation_chart
from qbkit.plots.recovery import loss_chart
from qbkit.plots.render import enable
from qbkit.plots.reproduction import beside_paper_chart, cumulative_chart
from qbkit.plots.retransmission import retransmission_chart
from qbkit.plots.root_cause import root_cause_chart
from qbkit.plots.theory import (
    share_by_buffer_chart,
    share_by_flows_chart,
    window_by_loss_chart,
)
from qbkit.plots.timeline import timeline_chart
from qbkit.plots.web_objects import client_consistency_chart, web_objects_chart
from qbkit.plots.web_pages import main_image_chart, page_differences_chart, page_times_chart
from qbkit.plots.web_streams import film_chart, multiplexing_chart, streams_chart
from qbkit.plots.what_if import what_if_chart

__all__ = [
    "bandwidth_chart",
    "beside_paper_chart",
    "bytes_acked_chart",
    "client_consistency_chart",
    "conformance_map_chart",
    "cumulative_chart",
    "cwnd_chart",
    "enable",
    "envelope_chart",
    "expectation_chart",
    "experiment_html",
    "film_chart",
    "gallery_chart",
    "handshake_chart",
    "interaction_chart",
    "linked_chart",
    "loss_chart",
    "main_image_chart",
    "multiplexing_chart",
    "noise_floor_chart",
    "page_differences_chart",
    "page_times_chart",
    "queue_animation_chart",
    "retransmission_chart",
    "root_cause_chart",
    "run_html",
    "save_chart",
    "share_by_buffer_chart",
    "share_by_flows_chart",
    "streams_chart",
    "timeline_chart",
    "web_objects_chart",
    "what_if_chart",
    "window_by_loss_chart",
]
