"""One connection's events as tables, whichever log they come from.

Columns grow in compact arrays; what happened to a packet that was sent (acknowledged, lost, both:
then the loss was spurious) is found while reading, with memory for the packets in flight only.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np
import xarray as xr

SPACES = ("initial", "handshake", "application")
METRICS = {
    "cwnd_bytes": ("B", "congestion window"),
    "ssthresh_bytes": ("B", "slow start threshold"),
    "bytes_in_flight": ("B", "bytes in flight"),
    "srtt_ms": ("ms", "smoothed RTT"),
    "latest_rtt_ms": ("ms", "latest RTT sample"),
    "min_rtt_ms": ("ms", "minimum RTT"),
    "pacing_rate_mbps": ("Mbit/s", "pacing rate"),
}
HIGHEST = (1 << 62) - 1
"""Packet numbers are at most 2^62 - 1 (RFC 9000 §12.3)."""
REMEMBERED_LOSSES = 4096
"""Lost packets of a space for which a late acknowledgement is recognised."""
NO_LIMIT = 1 << 62
"""A slow start threshold above this says that there is none yet."""


class EventTables:
    """Tables of what was sent, received, acknowledged and lost; of metrics; of states."""

    def __init__(self) -> None:
        self._packets = {name: _Packets() for name in ("sent", "received", "acked", "lost")}
        self._spurious = array("b")
        self._triggers: list[str] = []
        self._metric_s = array("d")
        self._metrics = {name: array("d") for name in METRICS}
        self._state_s = array("d")
        self._states: list[str] = []
        self._in_flight: dict[str, dict[int, int]] = {space: {} for space in SPACES}
        self._lost = {space: _Losses() for space in SPACES}

    def __bool__(self) -> bool:
        return bool(
            self._metric_s or self._state_s or any(p.time_s for p in self._packets.values())
        )

    def sent(self, time_s: float, space: str, number: int, size_bytes: int | None) -> None:
        """A packet left; ValueError for an impossible number, here as below."""
        self._packets["sent"].put(time_s, space, number, size_bytes)
        self._in_flight[space][number] = size_bytes or 0

    def received(self, time_s: float, space: str, number: int, size_bytes: int | None) -> None:
        """A packet came."""
        self._packets["received"].put(time_s, space, number, size_bytes)

    def acked(self, time_s: float, space: str, low: int, high: int) -> None:
        """The peer acknowledged ``low`` to ``high``; only what was in flight, or lost, is new."""
        if not 0 <= low <= high <= HIGHEST:
            raise ValueError(f"an acknowledged range from {low} to {high}")
        flying = self._in_flight[space]
        for number in _within(flying, low, high):
            self._packets["acked"].put(time_s, space, number, flying.pop(number))
        for row in self._lost[space].acked(low, high):
            self._spurious[row] = 1

    def lost(self, time_s: float, space: str, number: int, trigger: str) -> None:
        """The sender declared a packet lost."""
        size_bytes = self._in_flight[space].pop(number, None)
        self._packets["lost"].put(time_s, space, number, size_bytes)
        self._lost[space].put(number, len(self._spurious))
        self._spurious.append(0)
        self._triggers.append(trigger)

    def metrics(self, time_s: float, **values: float | None) -> None:
        """Metrics that changed; the others keep their value."""
        self._metric_s.append(time_s)
        for name, column in self._metrics.items():
            value = values.get(name)
            if value is None:
                value = column[-1] if column else math.nan
            elif name == "ssthresh_bytes" and value > NO_LIMIT:
                value = math.inf
            column.append(value)

    def state(self, time_s: float, state: str) -> None:
        """The congestion controller entered a state."""
        self._state_s.append(time_s)
        self._states.append(state)

    def dataset(self) -> xr.Dataset:
        """The tables, one dimension each: ``sent``, ``received``, ``acked``, ``lost``, ``metric``,
        ``state``.

        Of packets ``*_time_s``, ``*_space`` (0 initial, 1 handshake, 2 application), ``*_number``,
        ``*_size_bytes`` (0 where unknown); ``lost_trigger``, ``lost_spurious``; metrics as in the
        run dataset, each row holding the last value told of all.
        """
        ds = xr.Dataset()
        for name, packets in self._packets.items():
            for key, values, unit in packets.columns():
                ds[f"{name}_{key}"] = ((name,), values, {"units": unit})
        ds["lost_trigger"] = (("lost",), np.array(self._triggers, dtype=str))
        spurious = np.frombuffer(self._spurious, dtype=np.int8).astype(bool)
        ds["lost_spurious"] = (("lost",), spurious, {"long_name": "acknowledged after all"})
        ds["metric_time_s"] = (("metric",), _numbers(self._metric_s), {"units": "s"})
        for name, column in self._metrics.items():
            unit, meaning = METRICS[name]
            attrs = {"units": unit, "long_name": meaning}
            ds[name] = (("metric",), _numbers(column), attrs)
        ds["state_time_s"] = (("state",), _numbers(self._state_s), {"units": "s"})
        ds["state_name"] = (("state",), np.array(self._states, dtype=str))
        return ds


class _Packets:
    """Columns of one table of packets."""

    def __init__(self) -> None:
        self.time_s, self.space = array("d"), array("b")
        self.number, self.size_bytes = array("q"), array("q")

    def put(self, time_s: float, space: str, number: int, size_bytes: int | None) -> None:
        if not 0 <= number <= HIGHEST:
            raise ValueError(f"a packet number of {number}")
        if not 0 <= (size_bytes or 0) < 1 << 32:
            raise ValueError(f"a packet of {size_bytes} bytes")
        self.time_s.append(time_s)
        self.space.append(SPACES.index(space))
        self.number.append(number)
        self.size_bytes.append(size_bytes or 0)

    def columns(self) -> list[tuple[str, Any, str]]:
        return [
            ("time_s", _numbers(self.time_s), "s"),
            ("space", np.frombuffer(self.space, dtype=np.int8).copy(), "1"),
            ("number", np.frombuffer(self.number, dtype=np.int64).copy(), "1"),
            ("size_bytes", np.frombuffer(self.size_bytes, dtype=np.int64).copy(), "B"),
        ]


class _Losses:
    """Lost packets of one space that may yet be acknowledged: number → row, by number."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.rows: list[int] = []

    def put(self, number: int, row: int) -> None:
        place = bisect_left(self.numbers, number)
        self.numbers.insert(place, number)
        self.rows.insert(place, row)
        if len(self.numbers) > REMEMBERED_LOSSES:
            del self.numbers[0], self.rows[0]

    def acked(self, low: int, high: int) -> list[int]:
        """Forget those from ``low`` to ``high``; their rows."""
        begin, end = bisect_left(self.numbers, low), bisect_right(self.numbers, high)
        rows = self.rows[begin:end]
        del self.numbers[begin:end], self.rows[begin:end]
        return rows


def _within(known: dict[int, int], low: int, high: int) -> list[int]:
    """Which known numbers lie in a range, at the cost of the smaller of the two."""
    if high - low < len(known):
        return [number for number in range(low, high + 1) if number in known]
    return [number for number in known if low <= number <= high]


def _numbers(column: array[float]) -> Any:
    return np.frombuffer(column, dtype=np.float64).copy()
