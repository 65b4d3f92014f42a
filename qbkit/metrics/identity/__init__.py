"""Which controller is this? What packets show of it, compared with what is known of each."""

from qbkit.metrics.identity.features import FEATURES, Feature, features_of
from qbkit.metrics.identity.signatures import NEEDS, UNKNOWN, Identity, Needs, Signatures, shipped

__all__ = [
    "FEATURES",
    "NEEDS",
    "UNKNOWN",
    "Feature",
    "Identity",
    "Needs",
    "Signatures",
    "features_of",
    "shipped",
]
