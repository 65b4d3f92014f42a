"""Metrics: pure functions on run datasets (and on plain points)."""

from qbkit.metrics.assessment import Assessment, assess
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
from qbkit.metrics.points import OperatingPoints, operating_points
from qbkit.metrics.quicbench import quicbench_points
from qbkit.metrics.summary import flow_summaries, summary

__all__ = [
    "DEFINITIONS",
    "Assessment",
    "Definition",
    "Envelope",
    "OperatingPoints",
    "Translated",
    "Trial",
    "assess",
    "conformance",
    "conformance_t",
    "deviation",
    "envelope",
    "flow_summaries",
    "jain_index",
    "operating_points",
    "overlap",
    "quicbench_points",
    "sample_trials",
    "summary",
    "throughput_ratio",
]
