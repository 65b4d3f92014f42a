"""What the published data say, as numbers, tables and sentences that must agree with them."""

from qbkit.atlas.claims.page import ClaimError, readme

__all__ = ["ClaimError", "readme"]
