"""The times of a qlog's events, from every format of the drafts to seconds of one clock.

draft-ietf-quic-qlog-main-schema, "Timestamps" (``relative_to_epoch``,
``relative_to_previous_event``), its versions before 09 (``absolute``, ``relative``, ``delta``), and
draft-marx-qlog-main-schema-00 and -01, "Configuration" (``time_units``, ``time_offset``).
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from qbkit.traces.logs.jsonfile import LATEST_MS

FROM_REFERENCE = ("relative_to_epoch", "absolute", "relative")
FROM_PREVIOUS = ("relative_to_previous_event", "delta")
UNITS_MS = {"ms": 1.0, "us": 1e-3}
DATES_MS = (946_684_800_000.0, 4_102_444_800_000.0)
"""The years 2000 to 2099: which unit a reference time has."""
EPOCH_MS = 1e11
"""Times beyond three years are wall-clock times: they count from the first event."""


class Clock:
    """Converts the times of a trace's events. It needs all events in order: steps add up."""

    def __init__(
        self,
        common_fields: dict[str, Any],
        configuration: dict[str, Any],
        warn: Callable[[str], None],
    ) -> None:
        self._warn = warn
        self.unit_ms = self._unit_ms(configuration.get("time_units") or "ms")
        self._offset_ms = (_number(configuration.get("time_offset")) or 0.0) * self.unit_ms
        self._reference = common_fields.get("reference_time")
        self._unknown: set[str] = set()
        self._steps = self._are_steps(common_fields.get("time_format") or FROM_REFERENCE[0])
        self._zero_ms: float | None = None
        self._now_ms = 0.0

    def seconds(self, time: float, time_format: str | None = None) -> float:
        """Seconds since the reference, or since the first event where that is a wall clock.

        ``time`` is in the unit of the trace. ``time_format`` is that of the event, by default that
        of the trace. Raises ValueError for an invalid time.
        """
        time_ms = time * self.unit_ms
        if not -LATEST_MS < time_ms < LATEST_MS:
            raise ValueError(f"a time of {time_ms:g} ms")
        steps = self._steps if time_format is None else self._are_steps(time_format)
        self._now_ms = self._now_ms + time_ms if steps else time_ms
        if self._zero_ms is None:
            self._zero_ms = self._now_ms if abs(self._now_ms) > EPOCH_MS else 0.0
        return (self._now_ms - self._zero_ms + self._offset_ms) / 1e3

    def reference_time(self) -> str:
        """The date and time of 0 s in RFC 3339; empty if the log does not give it."""
        told = self._reference
        if isinstance(told, dict):
            epoch = told.get("epoch", "unknown")
            told = told.get("wall_clock_time", "") if epoch == "unknown" else epoch
        since_1970 = _number(told)  # drafts before 09
        try:
            if since_1970 is not None:
                in_ms = [since_1970 * unit for unit in (self.unit_ms, 1e3, 1.0, 1e-3)]
                start_ms = next(ms for ms in in_ms if DATES_MS[0] <= ms < DATES_MS[1])
                start = dt.datetime.fromtimestamp(start_ms / 1e3, dt.UTC)
            elif isinstance(told, str):
                start = dt.datetime.fromisoformat(told)
            else:
                return ""
            return (start + dt.timedelta(milliseconds=self._zero_ms or 0.0)).isoformat()
        except (ValueError, OverflowError, OSError, StopIteration):
            return ""

    def _unit_ms(self, name: Any) -> float:
        """The unit of the trace's times, in ms; warns of an unknown one."""
        unit_ms = UNITS_MS.get(str(name))
        if unit_ms is None:
            unknown, known = repr(str(name)[:100]), " and ".join(UNITS_MS)
            self._warn(f"has times of the unknown unit {unknown}, read as ms; known are {known}")
        return unit_ms or 1.0

    def _are_steps(self, time_format: Any) -> bool:
        """Whether times of a format count from the previous event; warns once of an unknown one."""
        name = str(time_format)[:100]
        if name not in (*FROM_REFERENCE, *FROM_PREVIOUS, *self._unknown) and len(self._unknown) < 3:
            self._unknown.add(name)
            known = ", ".join((*FROM_REFERENCE, *FROM_PREVIOUS))
            self._warn(
                f"has times of the unknown format {name!r}, read as relative_to_epoch; "
                f"known are {known}"
            )
        return name in FROM_PREVIOUS


def _number(value: Any) -> float | None:
    """A number, or a text of one; None for anything else, and for what no time can be."""
    try:
        found = float(value) if isinstance(value, str | int | float | Decimal) else math.nan
    except (ValueError, OverflowError):
        return None
    return found if abs(found) < LATEST_MS else None
