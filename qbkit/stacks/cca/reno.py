"""NewReno, RFC 9002 section 7 and appendix B, of N emulated flows."""

from __future__ import annotations

from .window import WindowController


class Reno(WindowController):
    """N packets more a round trip, and half of one flow's window less a loss."""

    one_flow_beta = 0.5

    def _grown(self, acked_bytes: int, now: float) -> float:
        return self._window + self.flows * self._packet_bytes * acked_bytes / self._window
