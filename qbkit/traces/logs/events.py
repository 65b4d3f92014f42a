"""The events of one connection as tables, for every kind of log.

Columns grow in compact arrays. While reading, they determine the fate of each sent packet
(acknowledged, lost, or both: a spurious loss), with memory for the packets in flight only.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import xarray as xr

from qbkit.traces.logs.columns import (
    HIGHEST,
    SPACES,
    Handshake,
    HttpColumns,
    Losses,
    Offsets,
    PacketColumns,
    UnackedPackets,
    Words,
    floats,
)
from qbkit.traces.run.schema import variable
from qbkit.traces.run.telemetry import COLUMNS

METRICS = {
    name: COLUMNS[name]
    for name in (
        *("cwnd_bytes", "ssthresh_bytes", "bytes_in_flight"),
        *("srtt_ms", "latest_rtt_ms", "min_rtt_ms", "pacing_rate_mbps"),
    )
}
FURTHER_METRICS = {
    "delivery_rate_mbps": COLUMNS["delivery_rate_mbps"],
    "receive_window_bytes": ("B", "window that the receiver offers"),
}
"""Variables of the dataset only where they are reported."""


class EventTables:
    """Tables of packets sent, received, acknowledged and lost; of metrics, states, handshake
    packets and HTTP frames."""

    def __init__(self) -> None:
        self._packets = {name: PacketColumns() for name in ("sent", "received", "acked", "lost")}
        self._offsets = Offsets()
        self._spurious = array("b")
        self._triggers = Words()
        self._metric_s = array("d")
        self._metrics = {name: array("d") for name in METRICS}
        self._state_s, self._states = array("d"), Words()
        self._in_flight = {space: UnackedPackets() for space in SPACES}
        self._lost = {space: Losses() for space in SPACES}
        self.handshake = Handshake()
        self.http = HttpColumns()

    def __bool__(self) -> bool:
        times = (self._metric_s, self._state_s, self.http.time_s)
        return any(times) or any(p.time_s for p in self._packets.values())

    def __len__(self) -> int:
        """How many packets were sent and received."""
        return len(self._packets["sent"].time_s) + len(self._packets["received"].time_s)

    def numbers_sent(self, space: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The numbers of the packets that were sent in a space."""
        return self._packets["sent"].of_space(space)

    def delivered(self) -> int:
        """How many packets were received and acknowledged."""
        return len(self._packets["received"].time_s) + len(self._packets["acked"].time_s)

    def forgotten(self) -> int:
        """How many packets were in flight for so long that their ACK is no longer expected."""
        return sum(flying.forgotten for flying in self._in_flight.values())

    def sent(
        self,
        time_s: float,
        space: str,
        number: int,
        size_bytes: int | None,
        *,
        stream: int = -1,
        offset_bytes: int = -1,
    ) -> None:
        """Add a sent packet, perhaps with data of a stream.

        Raises ValueError for an impossible number, as the other methods do.
        """
        self._packets["sent"].put(time_s, space, number, size_bytes)
        self._offsets.put(stream, offset_bytes)
        self._in_flight[space].put(number, size_bytes or 0)

    def received(self, time_s: float, space: str, number: int, size_bytes: int | None) -> None:
        """Add a received packet."""
        self._packets["received"].put(time_s, space, number, size_bytes)

    def acked(self, time_s: float, space: str, low: int, high: int) -> None:
        """The peer acknowledged ``low`` to ``high``; only packets in flight, or lost, are new."""
        if not 0 <= low <= high <= HIGHEST:
            raise ValueError(f"an acknowledged range from {low} to {high}")
        flying = self._in_flight[space]
        for number in flying.within(low, high):
            self._packets["acked"].put(time_s, space, number, flying.sizes.pop(number))
        self.spurious(space, low, high)

    def lost(self, time_s: float, space: str, number: int, trigger: str) -> None:
        """The sender declared a packet lost."""
        size_bytes = self._in_flight[space].sizes.pop(number, None)
        self._packets["lost"].put(time_s, space, number, size_bytes)
        self._lost[space].put(number, len(self._spurious))
        self._spurious.append(0)
        self._triggers.put(trigger)

    def lost_up_to(self, time_s: float, space: str, highest: int, count: int) -> None:
        """The sender declared ``count`` packets lost, ``highest`` the last of them.

        Both thresholds of RFC 9002, 6.1, take all packets in flight up to a number; so these are
        the last ones in flight.
        """
        if count > 0:
            for number in sorted(self._in_flight[space].within(0, highest))[-count:]:
                self.lost(time_s, space, number, "")

    def lost_first(self, time_s: float, space: str, count: int) -> None:
        """The sender declared ``count`` packets lost, which are the first ones in flight."""
        for number in list(islice(self._in_flight[space].sizes, max(count, 0))):
            self.lost(time_s, space, number, "")

    def spurious(self, space: str, low: int, high: int) -> None:
        """The lost packets from ``low`` to ``high`` arrived after all."""
        for row in self._lost[space].acked(low, high):
            self._spurious[row] = 1

    def metrics(self, time_s: float, **values: float | None) -> None:
        """Add a row of metrics; those not given keep their value."""
        self._metric_s.append(time_s)
        for name, column in self._metrics.items():
            value = values.pop(name, None)
            if value is None:
                value = column[-1] if column else math.nan
            column.append(value)
        for name, value in values.items():
            self._metrics[name] = array("d", [math.nan]) * len(self._metric_s)
            self._metrics[name][-1] = math.nan if value is None else value

    def state(self, time_s: float, state: str) -> None:
        """The congestion controller entered a state."""
        self._state_s.append(time_s)
        self._states.put(state)

    def dataset(
        self,
        *,
        source: str,
        vantage_point: str = "",
        title: str = "",
        warnings: Sequence[str] = (),
    ) -> xr.Dataset:
        """The tables, one dimension each: ``sent``, ``received``, ``acked``, ``lost``, ``metric``,
        ``state``, ``handshake``, ``http``. No rows can be added after this.

        Packets have ``*_time_s``, ``*_space`` (0 initial, 1 handshake, 2 application),
        ``*_number`` and ``*_size_bytes`` (0 where unknown). ``sent_stream`` is the first stream of
        which a packet carries data, and ``sent_offset_bytes`` the offset of these data if most
        packets carry that stream (-1 for none or unknown). There are ``lost_trigger`` and
        ``lost_spurious``. Metrics are those of the run dataset; each row holds the last reported
        value of every metric. ``handshake_*``: handshake packets and the first ten application
        packets of each direction, with their frames. ``http_*``: HTTP frames by stream.
        """
        ds = xr.Dataset()
        for name, packets in self._packets.items():
            _put(ds, name, packets.columns())
        offsets = self._offsets.of_main_stream()
        ds["sent_offset_bytes"] = (("sent",), offsets, {"units": "B"})
        ds["sent_stream"] = (("sent",), np.frombuffer(self._offsets.stream, dtype=np.int64))
        ds["lost_trigger"] = (("lost",), self._triggers.values())
        spurious = np.frombuffer(self._spurious, dtype=np.int8).astype(bool)
        ds["lost_spurious"] = (("lost",), spurious, {"long_name": "acknowledged after all"})
        ds["metric_time_s"] = (("metric",), floats(self._metric_s), {"units": "s"})
        for name, column in self._metrics.items():
            unit, meaning = METRICS.get(name) or FURTHER_METRICS[name]
            ds[name] = variable("metric", floats(column), unit, meaning)
        ds["state_time_s"] = (("state",), floats(self._state_s), {"units": "s"})
        ds["state_name"] = (("state",), self._states.values())
        _put(ds, "handshake", self.handshake.columns())
        _put(ds, "http", self.http.columns())
        ds.attrs = {
            "source": source,
            "vantage_point": vantage_point,
            "title": title,
            "warnings": json.dumps(list(warnings)),
        }
        return ds


def ack_text(ranges: Sequence[tuple[int, int]]) -> str:
    """An ACK frame as short text: "ACK 5-9 0-3"."""
    words = [f"{low}-{high}" if high > low else str(low) for low, high in ranges[:4]]
    return " ".join(["ACK", *words, *(["…"] if len(ranges) > 4 else [])])


def _put(ds: xr.Dataset, dim: str, columns: Sequence[tuple[str, Any, str | None]]) -> None:
    for key, values, unit in columns:
        ds[f"{dim}_{key}"] = ((dim,), values, {"units": unit} if unit else {})
