"""The state of a sender, for logs and captures that do not contain it.

RTT samples and their smoothing, losses and bytes in flight follow from the packets sent and the
acknowledgements received (RFC 9002 §5 and §6.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from qbkit.traces.logs.columns import REMEMBERED_IN_FLIGHT, SPACES, numbers_within
from qbkit.traces.logs.events import EventTables

PACKET_THRESHOLD = 3
TIME_THRESHOLD = 9 / 8
GRANULARITY_S = 0.001

Flying = dict[int, tuple[float, int, bool]]
"""Packet number → time sent, size, whether it is ack-eliciting."""


class Rtt:
    """RTT samples in s, smoothed as in RFC 9002 §5.3."""

    def __init__(self) -> None:
        self.latest_s = self.smoothed_s = self.minimum_s = 0.0

    def sample(self, rtt_s: float, delay_s: float = 0.0) -> None:
        """Add a sample; ``delay_s`` is the ACK delay that the receiver reports."""
        first = not self.smoothed_s
        self.latest_s = rtt_s
        self.minimum_s = rtt_s if first else min(self.minimum_s, rtt_s)
        adjusted_s = rtt_s - delay_s if rtt_s >= self.minimum_s + delay_s else rtt_s
        self.smoothed_s = rtt_s if first else self.smoothed_s * 7 / 8 + adjusted_s / 8

    def metrics(self) -> dict[str, float]:
        """The RTTs as metrics of the tables."""
        return {
            "latest_rtt_ms": self.latest_s * 1e3,
            "srtt_ms": self.smoothed_s * 1e3,
            "min_rtt_ms": self.minimum_s * 1e3,
        }


class Sender:
    """Writes its findings into the tables, with a row of metrics per acknowledgement."""

    def __init__(self, tables: EventTables, *, finds_losses: bool, shift_s: float = 0.0) -> None:
        """``shift_s`` is added to RTT samples: the mean truncation of a coarse clock."""
        self.tables, self.finds_losses, self.shift_s = tables, finds_losses, shift_s
        self.rtt = Rtt()
        self.flying: dict[str, Flying] = {space: {} for space in SPACES}
        self.bytes_in_flight = 0

    def sent(
        self,
        time_s: float,
        space: str,
        number: int,
        size_bytes: int,
        *,
        eliciting: bool = True,
        data: tuple[int, int] = (-1, -1),
    ) -> None:
        """Add a sent packet, with ``data`` (stream, offset)."""
        stream, offset = data
        self.tables.sent(time_s, space, number, size_bytes, stream=stream, offset_bytes=offset)
        self._forget(space, number)
        self.flying[space][number] = (time_s, size_bytes, eliciting)
        self.bytes_in_flight += size_bytes if eliciting else 0
        if len(self.flying[space]) > REMEMBERED_IN_FLIGHT:
            for old in list(islice(self.flying[space], REMEMBERED_IN_FLIGHT // 2)):
                self._forget(space, old)

    def acked(
        self, time_s: float, space: str, ranges: Sequence[tuple[int, int]], delay_s: float = 0.0
    ) -> None:
        """Take a received ACK frame, with its ranges in any order."""
        flying, largest = self.flying[space], max((high for _, high in ranges), default=-1)
        asked = False
        sample_s = flying[largest][0] if largest in flying else None
        for low, high in ranges:
            for number in numbers_within(flying, low, high):
                asked |= flying[number][2]
                self._forget(space, number)
            self.tables.acked(time_s, space, low, high)
        if sample_s is not None and asked:
            self.rtt.sample(max(time_s - sample_s + self.shift_s, 0.0), delay_s)
        if self.finds_losses and largest >= 0:
            self._find_losses(time_s, space, largest)
        rtt = self.rtt.metrics() if self.rtt.smoothed_s else {}
        self.tables.metrics(time_s, bytes_in_flight=self.bytes_in_flight, **rtt)

    def lost(self, time_s: float, space: str, number: int, trigger: str) -> None:
        """Add a lost packet."""
        self._forget(space, number)
        self.tables.lost(time_s, space, number, trigger)

    def discard(self, space: str) -> None:
        """The keys of a space are no longer there: nothing of it is in flight (RFC 9002 §6.4)."""
        for number in list(self.flying[space]):
            self._forget(space, number)

    def space_of(self, number: int) -> str | None:
        """The last space with this number in flight; None where there is none."""
        return next((space for space in reversed(SPACES) if number in self.flying[space]), None)

    def _find_losses(self, time_s: float, space: str, largest: int) -> None:
        wait_s = TIME_THRESHOLD * max(self.rtt.smoothed_s, self.rtt.latest_s, GRANULARITY_S)
        found = []
        for number, (sent_s, _, eliciting) in self.flying[space].items():
            if number >= largest:
                break
            if number <= largest - PACKET_THRESHOLD:
                found.append((number, eliciting, "reordering_threshold"))
            elif sent_s < time_s - wait_s:
                found.append((number, eliciting, "time_threshold"))
        for number, eliciting, trigger in found:
            if eliciting:
                self.lost(time_s, space, number, trigger)
            else:
                self._forget(space, number)

    def _forget(self, space: str, number: int) -> None:
        _, size_bytes, eliciting = self.flying[space].pop(number, (0, 0, False))
        self.bytes_in_flight -= size_bytes if eliciting else 0
