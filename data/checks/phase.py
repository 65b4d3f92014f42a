"""Does a flow's share of a small queue depend on when its packets arrive within a frame's time?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import xarray as xr
from network import BESIDE, LINK
from runs import SHORTER_S, Row, beside, lost_percent, share

import qbkit as qb
from qbkit.metrics.maps.families import kernel_counterpart
from qbkit.spec import FRAME_BYTES
from qbkit.studies.reproduction import Recipe

FRAME_S = FRAME_BYTES * 8 / (LINK.rate_mbps * 1e6)
"""What the link needs for a full frame: every so often a place in a full queue becomes free."""
JITTERS_MS = (0.0, 0.3, 0.6)
"""None, the default on this link, and twice that."""
EXTRA_RTTS_MS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Up to the time of one full frame."""
STARTED_S = 5
PARTS = 6


def phase(seeds: int) -> Iterator[Recipe]:
    """A row for each flow, jitter and longer path of it; the kernel's path beside it is not longer.

    ``in_step`` is the part of the flow's packets that arrive in the same sixth of a frame's time
    after the packet that left the queue last; 0.17 if they arrive at any time.
    """
    for name, jitter_ms, extra_rtt_ms in product(BESIDE, JITTERS_MS, EXTRA_RTTS_MS):
        flow = f"{name}?extra_rtt_ms={extra_rtt_ms:g}"
        both = beside(flow, kernel_counterpart(name), seeds, LINK, SHORTER_S, jitter_ms)
        keys = {"flow": name, "jitter_ms": jitter_ms, "extra_rtt_ms": extra_rtt_ms}
        yield Recipe([both], measure, keys)


def measure(runs: list[xr.Dataset]) -> Row:
    """Shares, when packets arrive, and losses."""
    shares = [qb.metrics.throughput_ratio(run, 0, 1) for run in runs]
    return {
        **share(runs),
        "share_least": min(shares),
        "share_most": max(shares),
        "in_step": np.mean([in_step(run, 0) for run in runs]),
        "kernel_in_step": np.mean([in_step(run, 1) for run in runs]),
        "lost_percent": lost_percent(runs, 0),
        "kernel_lost_percent": lost_percent(runs, 1),
    }


def in_step(run: xr.Dataset, flow: int) -> float:
    """The largest part of a flow's packets that arrive in one of the parts of a frame's time."""
    departed_s = np.sort(run.packet_departure_s.dropna("packet").values)
    is_counted = (run.packet_flow == flow) & (run.packet_time_s > STARTED_S)
    arrived_s = run.packet_time_s.values[is_counted.values]
    since_s = arrived_s - departed_s[np.searchsorted(departed_s, arrived_s, side="right") - 1]
    parts = np.histogram(since_s, bins=PARTS, range=(0, FRAME_S))[0]
    return float(parts.max() / parts.sum())
