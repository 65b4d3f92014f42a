"""Metrics: pure functions on run datasets (and on plain points)."""

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
from qbkit.metrics.fairness import jain_index, throughput_ratio
from qbkit.metrics.families import by_family
from qbkit.metrics.maps import (
    cycles,
    dominance,
    expectations,
    throughput_ratios,
)
from qbkit.metrics.parameters import Parameters, infer
from qbkit.metrics.points import OperatingPoints, operating_points
from qbkit.metrics.quicbench import quicbench_points
from qbkit.metrics.retransmissions import transfer_table
from qbkit.metrics.significance import map_sentence
from qbkit.metrics.summary import flow_summaries, summary

__all__ = [
    "DEFINITIONS",
    "Assessment",
    "Definition",
    "Envelope",
    "OperatingPoints",
    "Parameters",
    "Translated",
    "Trial",
    "assess",
    "by_family",
    "cell_envelopes",
    "conformance",
    "conformance_map",
    "conformance_t",
    "cycles",
    "deviation",
    "dominance",
    "envelope",
    "expectations",
    "flow_summaries",
    "hull_table",
    "infer",
    "jain_index",
    "map_sentence",
    "operating_points",
    "overlap",
    "packet_balance",
    "quicbench_points",
    "sample_trials",
    "summary",
    "throughput_ratio",
    "throughput_ratios",
    "transfer_table",
]
