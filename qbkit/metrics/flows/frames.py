"""Frames of a real-time flow: which came too late, and when the picture froze."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from qbkit.metrics.flows.lookup import active_span_s
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.attributes import run_experiment

LATE_MS = (100, 250)
"""Latencies beyond which frames count as late."""
FREEZE_TIMES, FREEZE_MORE_S = 3.0, 0.150
AVERAGED, LEAST_AVERAGED = 30, 5
"""How many earlier gaps are averaged at most, and (as in libwebrtc) at least."""
SAME_INTERVAL_S = 1e-3


@dataclass(frozen=True)
class Frames:
    """The frames of a flow, in order: times in seconds, NaN for one that was never shown."""

    release_s: FloatArray
    shown_s: FloatArray
    end_s: float
    """When the flow stopped."""

    def latency_ms(self) -> FloatArray:
        """From release to arrival; NaN for a frame that was never shown."""
        return (self.shown_s - self.release_s) * 1e3

    def late_percent(self, limit_ms: float) -> float:
        """Frames that were not shown within a time, of those released so long before the end."""
        judged = self.latency_ms()[self.release_s < self.end_s - limit_ms / 1e3]
        return float((~(judged <= limit_ms)).mean() * 100) if len(judged) else math.nan


def flow_frames(ds: xr.Dataset, index: int) -> Frames | None:
    """The frames of a flow; None where its application releases none at a constant rate.

    That is every flow of ``media``, and one with ``app=rate``. What ``app=onoff`` releases is no
    frame, however regular.
    """
    if "object_flow" not in ds or _is_on_and_off(ds, index):
        return None
    mine = ds["object_flow"].values == index
    release_s = ds["object_release_s"].values[mine]
    if len(release_s) <= LEAST_AVERAGED or np.ptp(np.diff(release_s)) > SAME_INTERVAL_S:
        return None
    return Frames(release_s, ds["object_arrived_s"].values[mine], active_span_s(ds, index)[1])


def _is_on_and_off(ds: xr.Dataset, index: int) -> bool:
    """Whether the application of a flow sends as much as it can, and then nothing."""
    if (experiment := run_experiment(ds)) is None:
        return False
    apps = dict(zip(experiment.labels, (flow.app for flow in experiment.flows), strict=True))
    app = apps.get(str(ds["label"].values[index]))
    return app is not None and app.kind == "onoff"


def freezes(frames: Frames) -> FloatArray:
    """Begin and end in s of each freeze, as rows of two columns.

    A freeze is a gap between two shown frames of at least max(3 δ, δ + 150 ms), where δ is the
    mean of the last 30 gaps (``freezeCount`` and ``totalFreezesDuration`` of W3C webrtc-stats). The
    first five gaps are none, as in libwebrtc. Unlike there, the gap at the end counts, too: from
    the last frame shown to the end of the flow.
    """
    shown_s = np.sort(frames.shown_s[np.isfinite(frames.shown_s)])
    edges_s = np.append(shown_s, max([frames.end_s, *shown_s[-1:]]))
    gap_s = np.diff(edges_s)
    found = [
        (edges_s[i], edges_s[i + 1])
        for i in range(LEAST_AVERAGED, len(gap_s))
        if gap_s[i] >= _least_freeze_s(gap_s[max(0, i - AVERAGED) : i].mean())
    ]
    return np.array(found).reshape(-1, 2)


def _least_freeze_s(mean_s: float) -> float:
    return max(FREEZE_TIMES * mean_s, mean_s + FREEZE_MORE_S)


def frame_columns(ds: xr.Dataset) -> dict[str, list[float]]:
    """Columns of a summary: late frames in %, and freezes; NaN for a flow without frames."""
    found = [flow_frames(ds, i) for i in range(ds.sizes["flow"])]
    frozen = [freezes(f) if f else None for f in found]
    columns = {
        f"late_{limit_ms}ms_percent": [f.late_percent(limit_ms) if f else math.nan for f in found]
        for limit_ms in LATE_MS
    }
    columns["freezes"] = [float(len(f)) if f is not None else math.nan for f in frozen]
    columns["frozen_s"] = [float(np.diff(f).sum()) if f is not None else math.nan for f in frozen]
    return columns
