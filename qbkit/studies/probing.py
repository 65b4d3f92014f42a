"""A path that shows how a lone sender models it: slow for a while, fast again, one burst lost.

Beside a competitor, and on a link that never changes, causes look alike. On this path the window
of a model that is out of date, the memory of its bandwidth filter, the end of a drain and the
response to a loss are separate events. The buffer is deep, so that nothing else is lost.
"""

from __future__ import annotations

from typing import Any

from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.spec.flow import as_flow
from qbkit.spec.over_time import Capacity, Outages
from qbkit.studies.conformance import experiments

BUFFER_BDP = 6.0
FALL_S, RISE_S, BURST_S, END_S = 15.0, 40.0, 46.0, 60.0
LOW_PART = 0.4
BURST_RTTS = 0.2
ALONE_S, ALONE_SEEDS = 60.0, 4
SEEDS = 4
"""All of so many runs are to differ from all of the reference's: of two senders that are the same,
one value in 35 does, where with two it was one in three."""


def probe_path(link: Bottleneck) -> Bottleneck:
    """The path for a link: its rate and its RTT, and nothing else of it."""
    rate_mbps, low_mbps = link.rate_mbps, LOW_PART * link.rate_mbps
    return Bottleneck(
        rate_mbps=rate_mbps,
        rtt_ms=link.rtt_ms,
        buffer_bdp=BUFFER_BDP,
        capacity=Capacity(steps=((0.0, rate_mbps), (FALL_S, low_mbps), (RISE_S, rate_mbps))),
        outages=Outages(times=((BURST_S, BURST_RTTS * link.rtt_ms / 1e3),), drops=True),
    )


def probing(flow: str | Flow, link: Bottleneck, *, seeds: int = SEEDS) -> list[Experiment]:
    """A flow alone on the path for a link, with data to send at all times."""
    return experiments([_bulk(flow)], probe_path(link), duration_s=END_S, seeds=seeds)


def alone(flow: str | Flow, link: Bottleneck, *, duration_s: float, seeds: int) -> list[Experiment]:
    """A flow alone on a link, with data to send at all times and no outages.

    Longer than `ALONE_S`, or with more seeds than `ALONE_SEEDS`, no study needs it.
    """
    steady = link.model_copy(update={"outages": None})
    return experiments([_bulk(flow)], steady, **_at_most(duration_s, seeds))


def interrupted(
    flow: str | Flow, link: Bottleneck, *, duration_s: float, seeds: int
) -> list[Experiment]:
    """The same with its application and the outages of the link; none without either."""
    if as_flow(flow).app is None and link.outages is None:
        return []
    return experiments([flow], link, **_at_most(duration_s, seeds))


def _at_most(duration_s: float, seeds: int) -> dict[str, Any]:
    return {"duration_s": min(duration_s, ALONE_S), "seeds": min(seeds, ALONE_SEEDS)}


def _bulk(flow: str | Flow) -> Flow:
    return as_flow(flow).model_copy(update={"app": None})
