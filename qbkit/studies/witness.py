"""A second witness of a cause: the congestion window that a stack reports itself.

Causes are found in packets alone, which no stack can get wrong. Where a stack also reports its
window, that is asked once more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from qbkit.metrics.parameters import Difference
from qbkit.metrics.parameters.connection import Connection
from qbkit.metrics.parameters.interruptions import outages_s, pauses_s
from qbkit.metrics.parameters.model import bdp_packets
from qbkit.metrics.parameters.probe_path import ProbePath, stale_span
from qbkit.metrics.parameters.reductions import BACK, BACK_RTTS, window_reductions_of
from qbkit.metrics.parameters.start import start_of
from qbkit.traces.arrays import FloatArray

AGREES = 0.2
"""By how much (ln) a reported value may differ from the packets'."""
FRAME_BYTES = 42
"""Ethernet, IPv4 and UDP: what a frame has beyond the datagram that a window counts."""


class Reported:
    """The window of flow 0 as its stack reports it, and the packets of the same run."""

    def __init__(self, run: xr.Dataset, c: Connection) -> None:
        """Of a run with the samples of `qbkit.traces.run.telemetry`; empty without them."""
        self.run, self.c = run, c
        mine = run["sample_flow"].values == 0 if "sample_flow" in run else np.zeros(0, bool)
        known = mine.any() and "sample_cwnd_bytes" in run
        self.time_s = run["sample_time_s"].values[mine] if known else np.empty(0)
        cwnd_bytes = run["sample_cwnd_bytes"].values[mine] if known else np.empty(0)
        self.packets: FloatArray = cwnd_bytes / (c.packet_bytes - FRAME_BYTES)

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
    found = window_reductions_of(r.c, start_of(r.c).settled_s)
    kept = [r.kept(each.begin_s, each.begin_s, each.end_s) for each in found if not each.reverted]
    return _median(kept)


def _reverted(r: Reported) -> float:
    back = []
    for each in window_reductions_of(r.c, start_of(r.c).settled_s):
        until_s = each.end_s + BACK_RTTS * r.c.min_rtt_s
        before = r.between(each.begin_s - r.c.min_rtt_s, each.begin_s)
        back.append(bool(r.between(each.end_s, until_s).max() >= BACK * before.max()))
    return 100.0 * float(np.mean(back)) if back else math.nan


def _cap(r: Reported) -> float:
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


def _median(parts: Sequence[float]) -> float:
    return float(np.median(parts)) if parts else math.nan


VALUES: dict[str, Callable[[Reported], float]] = {
    "initial_window_packets": _start,
    "decrease_factor": _decrease,
    "reverted_reductions_percent": _reverted,
    "window_cap_packets": _cap,
    "window_gain": _stale,
    "kept_after_pause": _after_pause,
    "kept_after_outage": _after_outage,
}
"""Cause → its value by the reported window."""


def witness(cause: Difference, run: xr.Dataset, c: Connection) -> str:
    """What the test's own report of its window says of a cause; "" where it says nothing.

    ``run`` is one of the test alone, and ``c`` its packets.
    """
    reported = Reported(run, c)
    if cause.name not in VALUES or not len(reported.packets):
        return ""
    value = VALUES[cause.name](reported)
    if not math.isfinite(value):
        return ""
    unit = f" {cause.test.unit}" if cause.test.unit not in ("", "1") else ""
    apart = abs(math.log(max(value, 1e-3) / max(cause.test.value, 1e-3)))
    if apart <= AGREES:
        return f"The window that it reports agrees: {value:.3g}{unit}."
    return f"The window that it reports says {value:.3g}{unit}, not {cause.test.value:.3g}."
