"""The parameters of a net log's events, and which packets an ACK frame among them acknowledges."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec


class Params(msgspec.Struct):
    """The parameters of all kinds of events that the tables need."""

    packet_number: int | None = None
    size: int | None = None
    encryption_level: str | int = ""
    long_header_type: str = ""
    sent_time_us: int | None = None
    detection_time_us: int | None = None
    transmission_type: str | int = ""
    stream_id: int | None = None
    offset: int = 0
    largest_observed: int | None = None
    smallest_observed: int | None = None
    missing_packets: list[int] = []
    delta_time_largest_observed_us: int = 0
    payload_length: int | None = None
    compressed_headers_length: int | None = None
    host: str = ""
    port: int | None = None
    congestion_control_type: str = ""
    initial_congestion_window: int | None = None


def ack_ranges(params: Params, flying: Collection[int] = ()) -> list[tuple[int, int]]:
    """The ranges that an ACK frame acknowledges, newest first: its span without missing packets.

    Chrome before 99 does not log where the span begins. It begins at or before the first missing
    packet; what is before that and in flight (``flying``) was acknowledged, as a receiver forgets
    only what the sender knows. Whether a lost packet before that arrived after all is unknown.
    """
    low, high = params.smallest_observed, params.largest_observed
    if high is None:
        return []
    missing = sorted(n for n in params.missing_packets if (low or 0) <= n <= high)
    if low is not None:
        return _runs(low, high, missing)
    first = missing[0] if missing else high
    before = sorted(number for number in flying if number < first)
    return [*_runs(first, high, missing), *_groups(before)]


def _runs(low: int, high: int, missing: list[int]) -> list[tuple[int, int]]:
    """The ranges from ``low`` to ``high`` between the missing numbers, highest first."""
    ranges = []
    for number in reversed(missing):
        if number < high:
            ranges.append((number + 1, high))
        high = number - 1
    return [*ranges, (low, high)] if low <= high else ranges


def _groups(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Rising numbers as ranges of consecutive ones, highest first."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        low = ranges.pop()[0] if ranges and ranges[-1][1] == number - 1 else number
        ranges.append((low, number))
    return ranges[::-1]
