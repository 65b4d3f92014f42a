"""The ranges of ACK frames in qlog files, which end in some logs before their second number."""

from __future__ import annotations

import itertools

from qbkit.traces.logs.qlog_records import QlogFrame


class EndsAreOpenError(Exception):
    """The ranges of ACK frames end before their second number, as in noq's logs."""


class AckRanges:
    """Reads ranges. They hold their second number until a frame shows that they cannot."""

    def __init__(self, *, ends_open: bool = False) -> None:
        self.ends_open, self.is_known = ends_open, ends_open

    def of(self, frame: QlogFrame) -> list[tuple[int, int]]:
        """The ranges of an ACK frame; a range of one packet may be a single number.

        Raises EndsAreOpenError where two ranges would be one if both of their ends counted.
        """
        found = [(low, high[-1] if high else low) for low, *high in frame.acked_ranges]
        if self.ends_open:
            return [(low, max(low, high - 1)) for low, high in found]
        if not self.is_known:
            self.is_known = any(low == high for low, high in found)
            if not self.is_known and _touch(found):
                raise EndsAreOpenError
        return found


def _touch(ranges: list[tuple[int, int]]) -> bool:
    """Whether one range begins right after the next one ends, in either order."""
    return any(
        low == end + 1 or high + 1 == start
        for (start, end), (low, high) in itertools.pairwise(ranges)
    )
