"""Closed-form models of congestion control in its steady state, to compare with measurements.

Windows are in packets, loss rates are the fraction of packets lost (0.01 is 1 %). Every function
takes numbers or arrays, broadcasts them as NumPy does, and raises MetricError for arguments outside
its model. Each docstring states the limits of the model.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from qbkit.errors import MetricError
from qbkit.metrics.arrays import numbers
from qbkit.traces.arrays import FloatArray

PACKET_BYTES = 1500
RENO_BETA = 0.5
"""RFC 5681: ssthresh is half of the bytes in flight."""
CUBIC_C, CUBIC_BETA = 0.4, 0.7
"""RFC 9438, sections 4.6 and 5: constants of CUBIC; C in packets per s³."""
BBR_PROBE_RTT_EVERY_S, BBR_PROBE_RTT_S = 10.0, 0.2
BBR_PROBE_RTT_PACKETS = 4
"""BBRv1: how often it probes the RTT, for how long, and with how many packets in flight."""
LEAST_LOSS_RATE = 1e-15
"""Smallest loss rate in the search for the one that fills a path."""


def aimd_window_packets(
    loss_rate: npt.ArrayLike, *, alpha: float = 1.0, beta: float = RENO_BETA
) -> FloatArray:
    """Mean window of AIMD: √(α (1 + β) / (2 (1 − β) p)), RFC 9438, section 4.3.

    The window grows by ``alpha`` packets per round trip and is multiplied by ``beta`` at each loss
    (RFC 5681's Reno: 1 and 0.5). The model has evenly spaced losses, one in 1/p packets and at most
    one per round trip, and no timeouts or slow start. Above about 1 % loss, where these occur, real
    windows are smaller.
    """
    p = _loss_rate(loss_rate)
    _require_beta(beta)
    _require_positive("alpha", alpha)
    return np.sqrt(alpha * (1 + beta) / (2 * (1 - beta) * p))


def mathis_window_packets(loss_rate: npt.ArrayLike, *, ack_every_packets: int = 1) -> FloatArray:
    """Mean window of Reno: C / √p with C = √(3 / (2b)).

    Mathis, Semke, Mahdavi and Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance
    Algorithm", CCR 27(3), 1997. Losses are evenly spaced. b is ``ack_every_packets`` for stacks
    whose window grows by one packet per window of ACKs, so that delayed ACKs halve its growth.
    Stacks that count bytes (RFC 3465; the kernel; RFC 9002) have b = 1 whatever their receivers do.
    This is `aimd_window_packets` with α = 1/b and β = 0.5, and has the same limits.
    """
    _require_positive("ack_every_packets", ack_every_packets)
    return aimd_window_packets(loss_rate, alpha=1 / ack_every_packets)


def reno_friendly_alpha(beta: float = CUBIC_BETA) -> float:
    """Additive increase with which AIMD of that ``beta`` has Reno's mean window at equal loss.

    3 (1 − β) / (1 + β), RFC 9438, section 4.3; 9/17 for CUBIC's 0.7.
    """
    _require_beta(beta)
    return 3 * (1 - beta) / (1 + beta)


def cubic_window_packets(
    loss_rate: npt.ArrayLike, rtt_ms: npt.ArrayLike, *, c: float = CUBIC_C, beta: float = CUBIC_BETA
) -> FloatArray:
    """Mean window of CUBIC: the larger one of its concave and its Reno-friendly region.

    The concave region gives ⁴√(C (3 + β) / (4 (1 − β))) · (RTT / p)^(3/4) (RFC 9438, section 5).
    The Reno-friendly region gives `aimd_window_packets` with α of `reno_friendly_alpha` (section
    4.3), which is Reno's mean window. ``rtt_ms`` includes queueing delay. Losses are evenly spaced,
    so CUBIC always loses before it exceeds its last maximum. With random losses it can exceed it
    (convex region), and its mean window is larger.
    """
    p, rtt_s = _loss_rate(loss_rate), _positive("rtt_ms", rtt_ms) / 1e3
    _require_beta(beta)
    _require_positive("c", c)
    _require_fitting(loss_rate=p, rtt_ms=rtt_s)
    concave = (c * (3 + beta) / (4 * (1 - beta))) ** 0.25 * (rtt_s / p) ** 0.75
    friendly = aimd_window_packets(p, alpha=reno_friendly_alpha(beta), beta=beta)
    return np.maximum(concave, friendly)


def window_throughput_mbps(
    window_packets: npt.ArrayLike, rtt_ms: npt.ArrayLike, *, packet_bytes: int = PACKET_BYTES
) -> FloatArray:
    """Throughput of a mean window: one window per round trip."""
    window, rtt_s = _positive("window_packets", window_packets), _positive("rtt_ms", rtt_ms) / 1e3
    _require_positive("packet_bytes", packet_bytes)
    _require_fitting(window_packets=window, rtt_ms=rtt_s)
    return window * packet_bytes * 8 / rtt_s / 1e6


def cubic_share(
    buffer_bdp: npt.ArrayLike,
    *,
    rate_mbps: float,
    rtt_ms: float,
    cubic_flows: npt.ArrayLike = 1,
    reno_flows: npt.ArrayLike = 1,
    packet_bytes: int = PACKET_BYTES,
) -> FloatArray:
    """Share of a link that CUBIC flows get together when they compete with Reno flows, in [0, 1].

    The model applies the response functions of RFC 9438 at one loss rate for all flows: the rate at
    which their mean windows fill path and queue, so that the RTT is the base RTT times
    1 + ``buffer_bdp``. In its Reno-friendly region, CUBIC thus gets an equal share per flow. In
    reality, flows at a drop-tail queue have different loss rates and the queue is not always full,
    so the model gives a trend.
    """
    depth = _positive("buffer_bdp", buffer_bdp)
    cubics, renos = _positive("cubic_flows", cubic_flows), _positive("reno_flows", reno_flows)
    _require_fitting(buffer_bdp=depth, cubic_flows=cubics, reno_flows=renos)
    holds_packets = (1 + depth) * _bdp_packets(rate_mbps, rtt_ms, packet_bytes)
    full_rtt_ms = (1 + depth) * rtt_ms

    def windows(p: FloatArray) -> tuple[FloatArray, FloatArray]:
        return cubics * cubic_window_packets(p, full_rtt_ms), renos * mathis_window_packets(p)

    shape = np.broadcast_shapes(depth.shape, cubics.shape, renos.shape)
    low, high = np.full(shape, math.log(LEAST_LOSS_RATE)), np.zeros(shape)
    for _ in range(60):  # halves 35 e-folds to less than the last bit
        middle = (low + high) / 2
        too_much = sum(windows(np.exp(middle))) > holds_packets
        low, high = np.where(too_much, middle, low), np.where(too_much, high, middle)
    cubic, reno = windows(np.exp(high))
    return cubic / (cubic + reno)


def bbr_share(
    buffer_bdp: npt.ArrayLike,
    *,
    rate_mbps: float,
    rtt_ms: float,
    bbr_flows: npt.ArrayLike = 1,
    packet_bytes: int = PACKET_BYTES,
) -> FloatArray:
    """Share of a link that BBRv1 flows get together against loss-based flows, in [0, 1].

    Ware, Mukerjee, Seshan and Sherry, "Modeling BBR's Interactions with Loss-Based Congestion
    Control", IMC '19, equations 9 to 11. With a queue of X BDP = q packets, a link of c packets per
    second, a base RTT l and N BBR flows, the loss-based flows get p = 1/2 − 1/(2X) − 4N/q of the
    link. If that is negative they get nothing: BBR's in-flight cap of two estimated BDP is then as
    much as path and queue hold together. Every 10 s BBR sends almost nothing for q/c + 0.2 s + l
    while it probes the RTT, so it gets (1 − p) (1 − (q/c + 0.2 + l) / 10).

    The number of loss-based flows does not matter as long as they keep the queue full. The model is
    valid for BBRv1 flows of equal RTT that enter ProbeRTT together, and for queues of at least
    1 BDP (the paper validates it up to 64) that drain faster than BBR probes.
    """
    depth, flows = _positive("buffer_bdp", buffer_bdp), _positive("bbr_flows", bbr_flows)
    _require_fitting(buffer_bdp=depth, bbr_flows=flows)
    bdp_packets = _bdp_packets(rate_mbps, rtt_ms, packet_bytes)
    if (depth < 1).any():
        raise MetricError(
            f"the model of BBR's share needs a buffer of 1 BDP or more, not {depth.min():g}: "
            "in a smaller one the in-flight cap does not limit BBR"
        )
    probe_s = depth * rtt_ms / 1e3 + BBR_PROBE_RTT_S + rtt_ms / 1e3
    if (probe_s >= BBR_PROBE_RTT_EVERY_S).any():
        raise MetricError(
            f"the queue takes {depth.max() * rtt_ms / 1e3:.3g} s to drain, about the time between "
            "BBR's probes of the RTT, for which the model is not valid; make the buffer smaller"
        )
    queue_packets = depth * bdp_packets
    left = 1 / 2 - 1 / (2 * depth) - BBR_PROBE_RTT_PACKETS * flows / queue_packets
    return (1 - np.maximum(left, 0)) * (1 - probe_s / BBR_PROBE_RTT_EVERY_S)


def equal_share(flows: npt.ArrayLike, others: npt.ArrayLike) -> FloatArray:
    """Share of n ``flows`` against m ``others`` if all flows get the same: n / (n + m)."""
    n, m = _positive("flows", flows), _positive("others", others)
    _require_fitting(flows=n, others=m)
    return n / (n + m)


def _bdp_packets(rate_mbps: float, rtt_ms: float, packet_bytes: int) -> float:
    for name, value in (("rate_mbps", rate_mbps), ("rtt_ms", rtt_ms)):
        _require_positive(name, value)
    _require_positive("packet_bytes", packet_bytes)
    return rate_mbps * 1e3 * rtt_ms / 8 / packet_bytes


def _loss_rate(value: npt.ArrayLike) -> FloatArray:
    """The loss rates as an array; MetricError unless they are above 0 and at most 1."""
    p = _positive("loss_rate", value)
    if (p > 1).any():
        raise MetricError(f"loss_rate {p.max():g} is more than 1; give a fraction, not percent")
    return p


def _positive(name: str, value: npt.ArrayLike) -> FloatArray:
    """The numbers as an array; MetricError unless all are finite and above 0."""
    found = numbers(name, value)
    bad = found[~(np.isfinite(found) & (found > 0))]
    if bad.size:
        raise MetricError(f"{name} must be above 0 and finite, not {bad.flat[0]:g}")
    return found


def _require_positive(name: str, value: float) -> None:
    _positive(name, value)


def _require_fitting(**arrays: FloatArray) -> None:
    """MetricError unless NumPy can broadcast the arrays."""
    try:
        np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = " and ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise MetricError(
            f"the shapes of {shapes} do not fit each other; give arrays of one shape, or numbers"
        ) from None


def _require_beta(beta: float) -> None:
    if not 0 < beta < 1:
        raise MetricError(
            f"beta, the fraction of the window that a loss leaves, must be between 0 and 1, "
            f"not {beta:g}"
        )
