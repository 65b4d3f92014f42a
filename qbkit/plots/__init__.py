"""Charts and HTML: pure functions from datasets and metrics to Altair charts."""

from qbkit.plots.drawing.export import save_chart
from qbkit.plots.drawing.html import experiment_html, run_html
from qbkit.plots.drawing.render import enable
from qbkit.plots.envelopes.envelope import envelope_chart, what_if_chart
from qbkit.plots.envelopes.linked import linked_chart
from qbkit.plots.envelopes.noise import noise_floor_chart
from qbkit.plots.envelopes.reproduction import beside_paper_chart, cumulative_chart
from qbkit.plots.evaluation import section_chart
from qbkit.plots.flows.bytes_acked import bandwidth_chart, bytes_acked_chart
from qbkit.plots.flows.congestion import cwnd_chart
from qbkit.plots.flows.distribution import distribution_chart
from qbkit.plots.flows.frames import frames_chart
from qbkit.plots.flows.gallery import gallery_chart
from qbkit.plots.flows.handshake import handshake_chart
from qbkit.plots.flows.queue_animation import queue_animation_chart
from qbkit.plots.flows.recovery import loss_chart
from qbkit.plots.flows.retransmission import retransmission_chart
from qbkit.plots.flows.root_cause import root_cause_chart
from qbkit.plots.flows.sequence import sequence_chart
from qbkit.plots.flows.side_by_side import side_by_side_chart
from qbkit.plots.flows.timeline import timeline_chart
from qbkit.plots.maps.conformance_map import conformance_map_chart
from qbkit.plots.maps.confusion import confusion_chart
from qbkit.plots.maps.interactions import expectation_chart, interaction_chart
from qbkit.plots.theory import (
    share_by_buffer_chart,
    share_by_flows_chart,
    window_by_loss_chart,
)
from qbkit.plots.web.objects import client_consistency_chart, web_objects_chart
from qbkit.plots.web.pages import main_image_chart, page_differences_chart, page_times_chart
from qbkit.plots.web.streams import film_chart, multiplexing_chart, streams_chart

__all__ = [
    "bandwidth_chart",
    "beside_paper_chart",
    "bytes_acked_chart",
    "client_consistency_chart",
    "conformance_map_chart",
    "confusion_chart",
    "cumulative_chart",
    "cwnd_chart",
    "distribution_chart",
    "enable",
    "envelope_chart",
    "expectation_chart",
    "experiment_html",
    "film_chart",
    "frames_chart",
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
    "section_chart",
    "sequence_chart",
    "share_by_buffer_chart",
    "share_by_flows_chart",
    "side_by_side_chart",
    "streams_chart",
    "timeline_chart",
    "web_objects_chart",
    "what_if_chart",
    "window_by_loss_chart",
]
