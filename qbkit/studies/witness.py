"""A second witness of a cause: what a stack reports itself, its window, pacing rate or state.

Causes are found in packets alone, which no stack can get wrong. What a stack also reports is asked
once more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import xarray as xr

from qbkit.metrics.parameters import Difference
from qbkit.metrics.parameters.connection import Connection
from qbkit.metrics.parameters.difference import unit_after
from qbkit.metrics.parameters.interruptions import outages_s, pauses_s
from qbkit.metrics.parameters.laws import CAP
from qbkit.metrics.parameters.model import EXTREME, PEAK_RTTS, bdp_packets
from qbkit.metrics.parameters.probe_path import ProbePath, stale_span
from qbkit.metrics.parameters.reductions import BACK, BACK_RTTS, window_reductions_of
from qbkit.metrics.parameters.start import start_of
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.attributes import state_values

AGREES = 0.2
"""By how much (ln) a reported value may differ from the packets'."""
GROWS_PACKETS = 2.0
"""By how much a window may grow while a loss is repaired."""
FRAME_BYTES = 42
"""Ethernet, IPv4 and UDP: what a frame has beyond the datagram that a window counts."""


class Reported:
    """What the stack of flow 0 reports, and the packets of the same run."""

    def __init__(self, run: xr.Dataset, c: Connection) -> None:
        """Of a run with the samples of `qbkit.traces.run.telemetry`; empty without them."""
        self.run, self.c = run, c
        known = "sample_flow" in run
        self._mine = run["sample_flow"].values == 0 if known else np.zeros(0, bool)
        self.time_s = self.column("time_s")

    def column(self, name: str) -> FloatArray:
        """The samples of flow 0; empty where its stack reports none."""
        if f"sample_{name}" not in self.run:
            return np.empty(0)
        values: FloatArray = self.run[f"sample_{name}"].values[self._mine]
        return values if np.isfinite(values).any() else np.empty(0)

    @cached_property
    def packets(self) -> FloatArray:
        """Its window."""
        return self.column(COLUMNS[WINDOW]) / (self.c.packet_bytes - FRAME_BYTES)

    @cached_property
    def spans_s(self) -> list[tuple[float, float]]:
        """From and until when the path is as it was at first, after the start of the flow."""
        path = ProbePath.of(self.run)
        (_, end_s), *others = path.spans if path else [(0.0, float(self.c.sent_s[-1]))]
        return [(float(self.c.sent_s[0]) + PEAK_RTTS * self.c.min_rtt_s, end_s), *others]

    def pacing(self, part: float) -> float:
        """The pacing rate (Mbit/s) below which it is for a part of the time; NaN if unknown."""
        low, high = np.searchsorted(self.time_s, self.spans_s[0])
        rates_mbps = self.column(COLUMNS[PACING])[low:high]
        known = rates_mbps[np.isfinite(rates_mbps)]
        return float(np.quantile(known, part)) if len(known) else math.nan

    def between(self, begin_s: float, end_s: float) -> FloatArray:
        """The windows (packets) reported from one time to another, and the one before them."""
        low, high = np.searchsorted(self.time_s, [begin_s, end_s])
        return self.packets[max(low - 1, 0) : max(high, 1)]

    def kept(self, before_s: float, begin_s: float, end_s: float) -> float:
        """The least window of a span over the largest just before a time."""
        before = self.between(before_s - self.c.min_rtt_s, before_s)
        after = self.between(begin_s, end_s)
        return float(after.min() / before.max()) if len(before) and len(after) else math.nan


def _start(r: Reported) -> float:
    first_bytes = float(r.c.load.size_bytes[0]) - FRAME_BYTES
    return float(r.packets[0]) * (r.c.packet_bytes - FRAME_BYTES) / max(first_bytes, 1.0)


def _decrease(r: Reported) -> float:
    """What a loss leaves: the least, or what is there when it is repaired, if that is more than
    growth. TCP's window may be smaller until then (RFC 6937)."""
    kept, rtt_s = [], r.c.min_rtt_s
    for each in window_reductions_of(r.c, start_of(r.c).settled_s):
        before = r.between(each.begin_s - rtt_s, each.begin_s)
        until = r.between(each.begin_s, each.end_s)
        after = r.between(each.end_s, each.end_s + rtt_s / 2)
        if all(map(len, (before, until, after))) and not each.reverted:
            least, later = float(until.min()), float(np.median(after))
            kept.append((later if later > least + GROWS_PACKETS else least) / before.max())
    return _median(kept)


def _reverted(r: Reported) -> float:
    back = []
    for each in window_reductions_of(r.c, start_of(r.c).settled_s):
        until_s = each.end_s + BACK_RTTS * r.c.min_rtt_s
        before = r.between(each.begin_s - r.c.min_rtt_s, each.begin_s)
        back.append(bool(r.between(each.end_s, until_s).max() >= BACK * before.max()))
    return 100.0 * float(np.mean(back)) if back else math.nan


def _cap(r: Reported) -> float:
    """Of `CAP`: flow control, a slow reader or the application can hold what is in flight, too."""
    return float(np.median(r.packets))


def _stale(r: Reported) -> float:
    path = ProbePath.of(r.run)
    if path is None:
        return math.nan
    windows = r.between(*stale_span(path))
    return float(windows.max()) / bdp_packets(r.c)


def _after_pause(r: Reported) -> float:
    ends = pauses_s(r.c)
    kept = [r.kept(low_s, high_s, high_s + r.c.min_rtt_s) for low_s, high_s in ends]
    return _median(kept)


def _after_outage(r: Reported) -> float:
    kept = [r.kept(low_s, low_s, low_s + 2 * length_s) for low_s, length_s in outages_s(r.run)]
    return _median(kept)


def _phase(part: float) -> Callable[[Reported], float]:
    """The pacing rate of a phase over the link's: only the fastest and the slowest are known."""

    def rate(r: Reported) -> float:
        return r.pacing(part) / r.c.link.rate_mbps if r.c.link else math.nan

    return rate


def _gain(part: float) -> Callable[[Reported], float]:
    """The pacing rate of a phase over that of most of the time, while it cruises."""

    def gain(r: Reported) -> float:
        return r.pacing(part) / max(r.pacing(0.5), 1e-3)

    return gain


def _probe_rtt_every_s(r: Reported) -> float:
    inside = r.column(COLUMNS[STATE]) == state_values(r.run).get("probe_rtt", math.nan)
    begins_s = r.time_s[inside & ~np.append(False, inside[:-1])]
    visits = sum(((begins_s > low_s) & (begins_s < high_s)).sum() for low_s, high_s in r.spans_s)
    return sum(high_s - low_s for low_s, high_s in r.spans_s) / visits if visits else math.nan


def _median(parts: Sequence[float]) -> float:
    return float(np.median(parts)) if parts else math.nan


WINDOW, PACING, STATE = "window", "pacing rate", "state"
COLUMNS = {WINDOW: "cwnd_bytes", PACING: "pacing_rate_mbps", STATE: "state"}
"""What is reported → the column of the samples that has it."""
VALUES: dict[str, tuple[str, Callable[[Reported], float]]] = {
    "initial_window_packets": (WINDOW, _start),
    "decrease_factor": (WINDOW, _decrease),
    "reverted_reductions_percent": (WINDOW, _reverted),
    CAP: (WINDOW, _cap),
    "window_gain": (WINDOW, _stale),
    "kept_after_pause": (WINDOW, _after_pause),
    "kept_after_outage": (WINDOW, _after_outage),
    "drain_rate": (PACING, _phase(EXTREME[0])),
    "probe_rate": (PACING, _phase(EXTREME[1])),
    "probe_down_gain": (PACING, _gain(EXTREME[0])),
    "probe_up_gain": (PACING, _gain(EXTREME[1])),
    "probe_rtt_every_s": (STATE, _probe_rtt_every_s),
}
"""Cause → what is reported, and the cause's value by it."""


def witness(cause: Difference, run: xr.Dataset, c: Connection) -> str:
    """What the test's own report says of a cause; "" where it says nothing.

    ``run`` is one of the test alone, and ``c`` its packets.
    """
    if cause.name not in VALUES or not cause.test.known:
        return ""
    reported = Reported(run, c)
    what, value_of = VALUES[cause.name]
    value = value_of(reported) if len(reported.column(COLUMNS[what])) else math.nan
    if not math.isfinite(value):
        return ""
    unit = unit_after(cause.test)
    apart, from_reference = (
        abs(math.log(max(value, 1e-3) / max(side.value, 1e-3)))
        for side in (cause.test, cause.reference)
    )
    if apart <= AGREES and not from_reference < apart:  # the other may be unknown
        return f"The {what} that it reports agrees: {value:.3g}{unit}."
    if cause.name == CAP and value > cause.test.value:
        return f"The window that it reports is {value:.3g}{unit}, so something else is the limit."
    return f"The {what} that it reports says {value:.3g}{unit}, not {cause.test.value:.3g}."
