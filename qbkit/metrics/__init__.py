"""Metrics: pure functions of run datasets and of arrays."""

from qbkit.metrics.envelopes.conformance import (
    Translated,
    conformance,
    conformance_t,
    deviation,
    overlap,
)
from qbkit.metrics.envelopes.envelope import (
    DEFINITIONS,
    Definition,
    Envelope,
    Trial,
    envelope,
    sample_trials,
)
from qbkit.metrics.envelopes.points import OperatingPoints, operating_points
from qbkit.metrics.envelopes.quicbench import quicbench_points
from qbkit.metrics.flows.balance import packet_balance
from qbkit.metrics.flows.fairness import jain_index, link_share, throughput_ratio
from qbkit.metrics.flows.loss_response import LossResponse, loss_response
from qbkit.metrics.flows.retransmissions import transfer_table
from qbkit.metrics.flows.summary import flow_summaries, summary
from qbkit.metrics.flows.trains import PacketTrains, packet_trains
from qbkit.metrics.maps.cells import cell_envelopes, conformance_map, hull_table
from qbkit.metrics.maps.families import by_family
from qbkit.metrics.maps.interactions import (
    dominance,
    expectations,
    interactions,
    intransitive_triples,
    pair_trials,
    throughput_ratios,
)
from qbkit.metrics.maps.shares import settled_throughput_mbps, shares, throughput_between_mbps
from qbkit.metrics.maps.significance import map_sentence
from qbkit.metrics.parameters import Parameters, infer
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
from qbkit.metrics.verdicts.assessment import Assessment, assess
from qbkit.metrics.verdicts.gates import Gate, answer_of, gates
from qbkit.metrics.verdicts.settling import drift_mbps, settles, settling
from qbkit.metrics.verdicts.words import Verdict
from qbkit.metrics.web.limits import limits_sentence, load_limits
from qbkit.metrics.web.loads import (
    acked_table,
    client_consistency,
    median_difference,
    median_loads,
    web_differences,
    web_table,
)
from qbkit.metrics.web.multiplexing import Multiplexing, multiplexing, page_multiplexing
from qbkit.metrics.web.pages import (
    PAGE_TIMES,
    median_page_load,
    page_differences,
    page_table,
    protocol_shares,
)
from qbkit.metrics.web.speed_index import page_speed_index, speed_index
from qbkit.metrics.web.urls import url_differences

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
    "Verdict",
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
