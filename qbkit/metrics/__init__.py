"""Metrics: pure functions of run datasets and of arrays."""

from qbkit.metrics.assessment import Assessment, assess
from qbkit.metrics.balance import packet_balance
from qbkit.metrics.cells import cell_envelopes, conformance_map, hull_table
from qbkit.metrics.conformance import (
    Translated,
    conformance,
    conformance_t,
    deviation,
    overlap,
)
from qbkit.metrics.envelope import (
    DEFINITIONS,
    Definition,
    Envelope,
    Trial,
    envelope,
    sample_trials,
)
from qbkit.metrics.fairness import jain_index, link_share, throughput_ratio
from qbkit.metrics.families import by_family
from qbkit.metrics.gates import Gate, answer_of, gates
from qbkit.metrics.loss_response import LossResponse, loss_response
from qbkit.metrics.maps import (
    dominance,
    expectations,
    interactions,
    intransitive_triples,
    pair_trials,
    throughput_ratios,
)
from qbkit.metrics.multiplexing import Multiplexing, multiplexing, page_multiplexing
from qbkit.metrics.parameters import Parameters, infer
from qbkit.metrics.points import OperatingPoints, operating_points
from qbkit.metrics.quicbench import quicbench_points
from qbkit.metrics.retransmissions import transfer_table
from qbkit.metrics.settling import drift_mbps, settles, settling
from qbkit.metrics.shares import settled_throughput_mbps, shares, throughput_between_mbps
from qbkit.metrics.significance import map_sentence
from qbkit.metrics.speed_index import page_speed_index, speed_index
from qbkit.metrics.summary import flow_summaries, summary
from qbkit.metrics.theory import (
    aimd_window_packets,
    bbr_share,
    cubic_share,
    cubic_window_packets,
    equal_share,
    mathis_window_packets,
    reno_friendly_alpha,
    window_throughput_mbps,
)
from qbkit.metrics.trains import PacketTrains, packet_trains
from qbkit.metrics.urls import url_differences
from qbkit.metrics.web import (
    acked_table,
    client_consistency,
    median_difference,
    median_loads,
    web_differences,
    web_table,
)
from qbkit.metrics.web_limits import limits_sentence, load_limits
from qbkit.metrics.web_pages import (
    PAGE_TIMES,
    median_page_load,
    page_differences,
    page_table,
    protocol_shares,
)

__all__ = [
    "DEFINITIONS",
    "PAGE_TIMES",
    "Assessment",
    "Definition",
    "Envelope",
    "Gate",
    "LossResponse",
    "Multiplexing",
    "OperatingPoints",
    "PacketTrains",
    "Parameters",
    "Translated",
    "Trial",
    "acked_table",
    "aimd_window_packets",
    "answer_of",
    "assess",
    "bbr_share",
    "by_family",
    "cell_envelopes",
    "client_consistency",
    "conformance",
    "conformance_map",
    "conformance_t",
    "cubic_share",
    "cubic_window_packets",
    "deviation",
    "dominance",
    "drift_mbps",
    "envelope",
    "equal_share",
    "expectations",
    "flow_summaries",
    "gates",
    "hull_table",
    "infer",
    "interactions",
    "intransitive_triples",
    "jain_index",
    "limits_sentence",
    "link_share",
    "load_limits",
    "loss_response",
    "map_sentence",
    "mathis_window_packets",
    "median_difference",
    "median_loads",
    "median_page_load",
    "multiplexing",
    "operating_points",
    "overlap",
    "packet_balance",
    "packet_trains",
    "page_differences",
    "page_multiplexing",
    "page_speed_index",
    "page_table",
    "pair_trials",
    "protocol_shares",
    "quicbench_points",
    "reno_friendly_alpha",
    "sample_trials",
    "settled_throughput_mbps",
    "settles",
    "settling",
    "shares",
    "speed_index",
    "summary",
    "throughput_between_mbps",
    "throughput_ratio",
    "throughput_ratios",
    "transfer_table",
    "url_differences",
    "web_differences",
    "web_table",
    "window_throughput_mbps",
]
