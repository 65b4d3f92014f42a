"""Parameters of a congestion controller, inferred from the packets alone."""

from qbkit.metrics.parameters.behaviour import observed
from qbkit.metrics.parameters.connection import Connection, observe, observe_events
from qbkit.metrics.parameters.difference import Difference
from qbkit.metrics.parameters.differences import compare
from qbkit.metrics.parameters.estimates import PARAMETERS, Estimate, Parameters
from qbkit.metrics.parameters.inference import infer
from qbkit.metrics.parameters.precedents import known_precedents
from qbkit.metrics.parameters.voting import voted

__all__ = [
    "PARAMETERS",
    "Connection",
    "Difference",
    "Estimate",
    "Parameters",
    "compare",
    "infer",
    "known_precedents",
    "observe",
    "observe_events",
    "observed",
    "voted",
]
