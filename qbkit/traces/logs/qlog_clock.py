"""The times of a qlog's events, from every format of the drafts to seconds of one clock.

draft-ietf-quic-qlog-main-schema, "Timestamps" (``relative_to_epoch``,
``relative_to_previous_event``), and its versions before 09 (``absolute``, ``relative``, ``delta``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from qbkit.traces.logs.jsonfile import LATEST_MS

FROM_REFERENCE = ("relative_to_epoch", "absolute", "relative")
FROM_PREVIOUS = ("relative_to_previous_event", "delta")
EPOCH_MS = 1e11
"""Times beyond three years are wall-clock times: they count from the first event."""


class Clock:
    """Converts the times of a trace's events. It needs all events in order: steps add up."""

    def __init__(self, common_fields: dict[str, Any], warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._reference = common_fields.get("reference_time")
        self._unknown: set[str] = set()
        self._steps = self._are_steps(common_fields.get("time_format") or FROM_REFERENCE[0])
        self._zero_ms: float | None = None
        self._now_ms = 0.0

    def seconds(self, time_ms: float, time_format: str | None = None) -> float:
        """Seconds since the reference, or since the first event where that is a wall clock.

        ``time_format`` is that of the event, by default that of the trace. Raises ValueError for an
        invalid time.
        """
        if not -LATEST_MS < time_ms < LATEST_MS:
            raise ValueError(f"a time of {time_ms} ms")
        steps = self._steps if time_format is None else self._are_steps(time_format)
        self._now_ms = self._now_ms + time_ms if steps else time_ms
        if self._zero_ms is None:
            self._zero_ms = self._now_ms if abs(self._now_ms) > EPOCH_MS else 0.0
        return (self._now_ms - self._zero_ms) / 1e3

    def reference_time(self) -> str:
        """The date and time of 0 s in RFC 3339; empty if the log does not give it."""
        told = self._reference
        if isinstance(told, dict):
            epoch = told.get("epoch", "unknown")
            told = told.get("wall_clock_time", "") if epoch == "unknown" else epoch
        try:
            if isinstance(told, str):
                start = dt.datetime.fromisoformat(told)
            elif isinstance(told, int | float) and told > 0:  # ms since 1970, drafts before 09
                start = dt.datetime.fromtimestamp(told / 1e3, dt.UTC)
            else:
                return ""
            return (start + dt.timedelta(milliseconds=self._zero_ms or 0.0)).isoformat()
        except (ValueError, OverflowError, OSError):
            return ""

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
