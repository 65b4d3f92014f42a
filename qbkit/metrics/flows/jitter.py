"""The delay that jitter adds where packets keep their order.

netem delays each packet of a sender by a uniform time and never lets one overtake another
(`qbkit.testbed.links.delay_netem`): a packet leaves with the latest of all before it. So the mean
delay exceeds the mean of the jitter, by the more the closer packets follow each other. The captures
do not show it, because it arises before the queue. So it is an estimate, for packets in a steady
stream: those of a burst all wait for the latest, and the estimate is too small.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import xarray as xr

from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.attributes import run_experiment

LEAST_STEP = 1e-4
"""Spacing over the jitter's whole width from which on the integral is computed; below it, the limit
for small spacings differs by less than a thousandth of the width."""
GRID = 400
LOG_GAMMA = np.vectorize(math.lgamma)


def ordered_jitter_ms(sent_s: FloatArray, half_width_ms: float) -> FloatArray:
    """Expected delay (ms) that jitter of ± ``half_width_ms`` adds to packets sent at these times.

    ``sent_s`` (n,) is in order. Each packet is taken to be one of a steady stream, as dense as the
    packets within the jitter's width on both sides of it. Their times may already be jittered.
    """
    if not half_width_ms or not len(sent_s):
        return np.zeros(len(sent_s))
    width_s = 2 * half_width_ms / 1e3
    until = np.searchsorted(sent_s, sent_s + width_s, "right")
    # A packet is too early for all from where its own width ends: no second search is needed.
    near = until - np.cumsum(np.bincount(until, minlength=len(sent_s) + 1))[:-1]
    steps, excess = _excess()
    # Of as many packets as are in two widths, and there are few such numbers.
    step = 2 / np.arange(1, near.max() + 1)
    limit = 0.5 - np.sqrt(np.pi * step / 2)
    part = np.where(step < LEAST_STEP, limit, np.interp(np.log(step), np.log(steps), excess))
    found: FloatArray = (part * width_s * 1e3)[near - 1]
    return found


def flow_jitter_ms(ds: xr.Dataset, index: int) -> float:
    """Mean delay (ms) that an experiment's jitter adds to a flow's packets; 0 for captures."""
    experiment = run_experiment(ds)
    if experiment is None or experiment.jitter_reorders:
        return 0.0
    sent_s = ds["packet_time_s"].values[ds["packet_flow"].values == index]
    added_ms = ordered_jitter_ms(sent_s, experiment.sender_jitter_ms)
    return float(added_ms.mean()) if len(added_ms) else 0.0


@functools.cache
def _excess() -> tuple[FloatArray, FloatArray]:
    """Spacings, and what they add to the mean, both over the jitter's width.

    Packet 0 leaves at the latest of U_k - k s over all k packets before it, with U uniform in
    [0, 1] and the spacing s. That is at most x with the probability of all factors x + k s that are
    below 1.
    """
    steps = np.geomspace(LEAST_STEP, 1.0, 60)[:, None]
    x = (np.arange(GRID) + 0.5) / GRID
    count = np.ceil((1 - x) / steps)
    # The product of (x + k s) over k < count is s^count Γ(x/s + count) / Γ(x/s).
    log = count * np.log(steps) + LOG_GAMMA(x / steps + count) - LOG_GAMMA(x / steps)
    return steps[:, 0], 0.5 - np.exp(log).mean(axis=1)
