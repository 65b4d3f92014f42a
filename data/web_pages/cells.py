"""The loads behind notebook 11: which pages, over which networks, how often."""

from __future__ import annotations

import qbkit as qb

SEEDS = 15
SIZES = ("medium", "small", "large")
LOSSES: dict[str, dict[str, object]] = {
    "none": {},
    "random 1 %": {"loss_percent": 1.0},
    # The bad state loses all packets and lasts 10 of them on average; 1 % are lost in the long run.
    "bursts 1 %": {"loss_model": "gemodel 0.101 10"},
}
EXTRA_DELAYS_MS = (0, 100)
RATE_MBPS, BASE_RTT_MS, BUFFER_PACKETS = 10.0, 15.0, 50
"""The paper's rate and base round trip, and the queue of the shaper that it used (dummynet's)."""
SERVER, CLIENT = "envoy:cubic", "headless-shell"
LIMIT_S = 120.0


def link(loss: str, extra_delay_ms: float, **more: object) -> qb.Bottleneck:
    """The network of a cell."""
    fields = {
        "rate_mbps": RATE_MBPS,
        "rtt_ms": BASE_RTT_MS + extra_delay_ms,
        "buffer_packets": BUFFER_PACKETS,
        **LOSSES[loss],
        **more,
    }
    return qb.Bottleneck(**fields)


def load(size: str, loss: str, extra_delay_ms: float, protocol: str, seed: int) -> qb.WebLoad:
    """One load of a cell."""
    return qb.WebLoad(
        bottleneck=link(loss, extra_delay_ms),
        server=SERVER,
        client=CLIENT,
        protocol=protocol,
        page=size,
        limit_s=LIMIT_S,
        seed=seed,
    )


def cells() -> list[tuple[str, str, float]]:
    """All cells in the order in which they are run: page, loss, extra delay in ms."""
    return [(size, loss, delay) for delay in EXTRA_DELAYS_MS for size in SIZES for loss in LOSSES]
