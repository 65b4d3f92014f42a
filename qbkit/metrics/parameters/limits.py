"""When neither the link nor a loss limits a window."""

from __future__ import annotations

import numpy as np

from qbkit.metrics.parameters.connection import GRID_PARTS, Connection, SharedLink, any_between
from qbkit.traces.arrays import BoolArray

IDLE = 0.9
"""A link does not limit the window if less than this fraction of its rate is used."""
IDLE_RTTS = 4
STILL_RTTS = 10
"""Time over which a loss-based controller would change its window."""
LONG = 2.0
"""An idle link has no queue: an RTT of more than this times the least is the way back's."""
STILL_PACKETS, STILL_PART = 2.0, 0.01
"""A window is constant if it changed by less than either; AIMD would have added ten packets."""


def limited(c: Connection, link: SharedLink) -> BoolArray:
    """Where on its grid (g,) the link is idle, the window constant, and no loss explains it.

    The window has been constant and without a loss for `STILL_RTTS`. The link is idle if all flows
    together leave part of its rate unused: a flow that leaves room for a rival does not limit
    itself. A packet that arrives late can be taken for a loss.
    """
    from scipy import ndimage  # slow to load

    time_s = c.grid_s
    rtts = STILL_RTTS * np.where(c.rtt_s > LONG * c.min_rtt_s, c.rtt_s / c.min_rtt_s, 1.0)
    before = np.arange(len(time_s)) - np.ceil(rtts * GRID_PARTS).astype(int)
    window = ndimage.median_filter(c.in_flight_packets, GRID_PARTS + 1, mode="nearest")
    moved = np.where(before < 0, np.inf, np.abs(window - window[np.maximum(before, 0)]))
    still = moved <= np.maximum(STILL_PACKETS, STILL_PART * window)
    idle = link.used_part(time_s - IDLE_RTTS * c.min_rtt_s, time_s) < IDLE
    since_s = time_s - rtts * c.min_rtt_s
    late = any_between(c.overtaken_s, since_s, time_s)
    lossy = c.loss_detected_between(since_s, time_s) | late
    found: BoolArray = still & idle & ~lossy
    return found
