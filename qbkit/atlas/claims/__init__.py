"""What the published data say, as findings that must agree with them."""

from qbkit.atlas.claims.findings import ClaimError, Finding
from qbkit.atlas.claims.template import findings

__all__ = ["ClaimError", "Finding", "findings"]
