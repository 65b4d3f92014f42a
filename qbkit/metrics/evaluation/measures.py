"""The measures of a book: a number of a run, of the tested flows, of the others, or of the link."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import xarray as xr

from qbkit.metrics.flows.fairness import jain_index
from qbkit.metrics.flows.lookup import delivered_bytes, delivered_packets
from qbkit.traces.arrays import BoolArray, FloatArray
from qbkit.traces.run.attributes import run_experiment, state_values

Better = Literal["less", "more", "one"]
BREAKER_PERCENT, BREAKER_INTERVALS = 5.0, 3
"""A circuit breaker (RFC 8084) fires after so many seconds with more loss than that."""
STARVING_S = 10.0
MARGIN_PART = 0.05
"""Differences up to this part of the bar count as none."""
RTT_PART = 0.2
"""The margin of a delay is at most this part of the base RTT."""
FAIR_PART = 0.9
"""A latecomer has arrived when it has this part of its fair share."""


@dataclass(frozen=True)
class Part:
    """What is measured of a run: some of its flows, in a span of time."""

    run: xr.Dataset
    flows: Sequence[int]
    from_s: float
    to_s: float

    @property
    def span_s(self) -> float:
        """Length of the span."""
        return self.to_s - self.from_s


@dataclass(frozen=True)
class Measure:
    """A number of a run."""

    name: str
    words: str
    """What it is, in a few words."""
    unit: str
    better: Better
    """One: 1 is best, and more is as bad as less."""
    of: Literal["tested", "others", "all"]
    margin: float
    """Differences up to this count as none, in the unit; so do those up to `MARGIN_PART`."""
    compute: Callable[[Part], float]
    most: float = math.inf
    """What is more than this is no worse."""

    def margin_on(self, rtt_ms: float) -> float:
        """The margin on a path of that base RTT (ms), of which a delay's is a part at most."""
        return min(self.margin, RTT_PART * rtt_ms) if self.unit == "ms" else self.margin


def throughput_mbps(part: Part) -> float:
    """Frame bytes of the flows that left the queue in the span, in Mbit/s."""
    left = (delivered_bytes(part.run, i, part.from_s, part.to_s) for i in part.flows)
    return sum(left) * 8e-6 / part.span_s


def share(part: Part) -> float:
    """Throughput of the flows in the span, as a part of that of all flows."""
    everybody = throughput_mbps(replace(part, flows=range(part.run.sizes["flow"])))
    return throughput_mbps(part) / everybody if everybody else math.nan


def lowest_mbps(part: Part) -> float:
    """Least throughput of any one of the flows in any 10 s of the span, in Mbit/s.

    A shorter span counts as a whole.
    """
    window_s = min(STARVING_S, part.span_s)
    starts_s = np.arange(part.from_s, part.to_s - window_s + 0.5, 1.0)
    each = [_moving_mbps(part, [index], starts_s, window_s).min() for index in part.flows]
    return float(min(each, default=math.inf))


def loss_percent(part: Part) -> float:
    """Packets of the flows that a queue or the path lost, of those sent in the span, in %."""
    sent = _sent_in(part)
    lost = np.isnan(part.run["packet_departure_s"].values[sent])
    return float(lost.mean() * 100) if len(lost) else math.nan


def breaker_firings(part: Part) -> float:
    """How often a circuit breaker would have fired for the flows together."""
    sent = _sent_in(part)
    at_s = part.run["packet_time_s"].values[sent]
    lost = np.isnan(part.run["packet_departure_s"].values[sent])
    bins = np.arange(math.floor(part.from_s), math.ceil(part.to_s) + 1)
    count = np.histogram(at_s, bins)[0]
    gone = np.histogram(at_s[lost], bins)[0]
    over = gone * 100 > BREAKER_PERCENT * np.maximum(count, 1)
    runs = np.convolve(over, np.ones(BREAKER_INTERVALS), "valid") == BREAKER_INTERVALS
    return float(np.count_nonzero(np.diff(np.concatenate([[False], runs]).astype(int)) == 1))


def queue_mean_ms(part: Part) -> float:
    """Mean queueing delay of the flows' packets in the span, in ms."""
    waited_ms = _waited_ms(part)
    return float(waited_ms.mean()) if len(waited_ms) else math.nan


def probe_rtt_s(part: Part) -> float:
    """Median time between two entries into PROBE_RTT in the span, in s, as the stack reports them.

    NaN where it reports no such state; the length of the span where it enters it once at most.
    """
    visits_s = state_visits_s(part, "probe_rtt")
    if not len(visits_s):
        return math.nan
    entered_s = visits_s[:, 0]
    entered_s = entered_s[(entered_s >= part.from_s) & (entered_s < part.to_s)]
    return float(np.median(np.diff(entered_s))) if len(entered_s) > 1 else part.span_s


def drain_rounds(part: Part) -> float:
    """Round trips of the first DRAIN: its length over the mean RTT of its packets.

    NaN where the stack reports no such state.
    """
    visits_s = state_visits_s(part, "drain")
    if not len(visits_s):
        return math.nan
    begin_s, end_s = visits_s[0]
    drained = Part(part.run, part.flows, begin_s, end_s)
    base_ms = float(part.run["base_rtt_ms"].values[list(part.flows)].mean())
    return float((end_s - begin_s) * 1e3 / (base_ms + np.mean(_waited_ms(drained))))


def state_visits_s(part: Part, state: str) -> FloatArray:
    """When the flows entered a state and left it, by their stack, in s; shape (visits, 2).

    A stack reports its state every 10 ms or so. Without a visit, the shape is (0, 2).
    """
    run = part.run
    if "sample_state" not in run or state not in (names := state_values(run)):
        return np.empty((0, 2))
    mine = np.isin(run["sample_flow"].values, list(part.flows)) & (run["sample_state"].values >= 0)
    inside = np.pad(run["sample_state"].values[mine] == names[state], 1).astype(int)
    at_s = np.append(run["sample_time_s"].values[mine], part.to_s)
    return np.stack([at_s[np.diff(inside) == change] for change in (1, -1)], axis=1)


def jain(part: Part) -> float:
    """Jain's index of the flows' throughputs in the span; NaN if none has any."""
    each = [delivered_bytes(part.run, i, part.from_s, part.to_s) for i in part.flows]
    return float(jain_index(each)) if sum(each) else math.nan


def late_share(part: Part) -> float:
    """Throughput of the last flow in the span, as a part of its fair share."""
    each = [delivered_bytes(part.run, i, part.from_s, part.to_s) for i in part.flows]
    return each[-1] / (sum(each) / len(each)) if sum(each) else math.nan


def utilisation(part: Part) -> float:
    """Throughput of all flows in the span, as a part of what the link could carry."""
    rate_mbps = float(np.nanmean(_rate_mbps(part)))
    return throughput_mbps(part) / rate_mbps if rate_mbps else math.nan


def kept(part: Part) -> float:
    """Throughput of the flows in the second half of the span, as a part of that in the first."""
    middle_s = (part.from_s + part.to_s) / 2
    before = throughput_mbps(replace(part, to_s=middle_s))
    return throughput_mbps(replace(part, from_s=middle_s)) / before if before else math.nan


def sent_packets_per_s(part: Part) -> float:
    """Packets that the flows sent in the span, per second."""
    return float(np.count_nonzero(_sent_in(part)) / part.span_s)


def late_percent(part: Part) -> float:
    """Objects of the flows that took more than 250 ms or did not arrive, in %: a freeze."""
    took_ms = _took_ms(part)
    return float((took_ms > 250).mean() * 100) if len(took_ms) else math.nan


def recovery_s(part: Part) -> float:
    """From the start of the span to the first second with 90 % of the link, in s; or the span."""
    edges_s = np.arange(part.from_s, part.to_s - 1.0 + 1e-9, 0.1)
    mbps = _moving_mbps(part, part.flows, edges_s, 1.0)
    reached = np.flatnonzero(mbps >= FAIR_PART * _rate_mbps(part)[-1])
    return float(edges_s[reached[0]] - part.from_s) if len(reached) else part.span_s


def acks_per_packet(part: Part) -> float:
    """ACKs that came back in the span, for each data packet of the flows that arrived in it."""
    run = part.run
    mine = np.isin(run["ack_flow"].values, list(part.flows))
    acks = _count_in(part, run["ack_time_s"].values[mine])
    arrived = sum(_count_in(part, delivered_packets(run, i)[0]) for i in part.flows)
    return acks / arrived if arrived else math.nan


def _count_in(part: Part, at_s: FloatArray) -> int:
    """How many times lie in the span."""
    return int(np.count_nonzero((at_s >= part.from_s) & (at_s < part.to_s)))


def _moving_mbps(
    part: Part, flows: Sequence[int], starts_s: FloatArray, span_s: float
) -> FloatArray:
    """Throughput of flows together in the span after each start, in Mbit/s."""
    each = [delivered_packets(part.run, index)[:2] for index in flows]
    left_s, size_bytes = (np.concatenate(columns) for columns in zip(*each, strict=True))
    order = np.argsort(left_s)
    total = np.concatenate([[0.0], np.cumsum(size_bytes[order])])
    first, last = np.searchsorted(left_s[order], [starts_s, starts_s + span_s])
    return np.asarray((total[last] - total[first]) * 8e-6 / span_s)


def _percentile(values_of: Callable[[Part], FloatArray], percent: float, part: Part) -> float:
    """A percentile of some values of the flows in the span; NaN without values."""
    values = values_of(part)
    return float(np.percentile(values, percent)) if len(values) else math.nan


def _rate_mbps(part: Part) -> FloatArray:
    """Rate of the link in each bin of the span, in Mbit/s."""
    run = part.run
    middle_s = run["time"].values + float(run.attrs["bin_s"]) / 2
    inside = (middle_s >= part.from_s) & (middle_s < part.to_s)
    if not inside.any():  # a span of less than a bin
        inside[np.abs(middle_s - part.from_s).argmin()] = True
    if "capacity_mbps" in run:
        return np.asarray(run["capacity_mbps"].values[inside], dtype=float)
    experiment = run_experiment(run)
    rate_mbps = experiment.bottleneck.rate_mbps if experiment else math.nan
    return np.full(max(int(inside.sum()), 1), rate_mbps)


def _sent_in(part: Part) -> BoolArray:
    """Which packets of the run the flows sent in the span."""
    at_s = part.run["packet_time_s"].values
    mine = np.isin(part.run["packet_flow"].values, list(part.flows))
    return np.asarray(mine & (at_s >= part.from_s) & (at_s < part.to_s))


def _waited_ms(part: Part) -> FloatArray:
    """Queueing delay of each packet of the flows that arrived in the span, in ms."""
    found = []
    for index in part.flows:
        left_s, _, waited_ms = delivered_packets(part.run, index)
        found.append(waited_ms[(left_s >= part.from_s) & (left_s < part.to_s)])
    return np.concatenate(found)


def _took_ms(part: Part) -> FloatArray:
    """Time of each object that was released in the span, in ms; to the run's end if it never came.

    Objects of the last second are left out: they had no time to arrive. Without objects it is
    empty.
    """
    run = part.run
    if "object_release_s" not in run:
        return np.empty(0)
    release_s, arrived_s = run["object_release_s"].values, run["object_arrived_s"].values
    mine = np.isin(run["object_flow"].values, list(part.flows))
    mine &= (release_s >= part.from_s) & (release_s < part.to_s - 1.0)
    ended_s = np.where(np.isfinite(arrived_s), arrived_s, float(run.attrs["duration_s"]))
    return np.asarray((ended_s - release_s)[mine] * 1e3)


queue_p95_ms = partial(_percentile, _waited_ms, 95)
queue_least_ms = partial(_percentile, _waited_ms, 5)
objects_p95_ms = partial(_percentile, _took_ms, 95)
objects_median_ms = partial(_percentile, _took_ms, 50)
OF_DELAY = "percentile of queueing delay"
MEASURES = {
    measure.name: measure
    for measure in (
        Measure("throughput", "throughput", "Mbit/s", "more", "others", 0.0, throughput_mbps),
        Measure("share", "share of the throughput", "", "more", "tested", 0.05, share),
        Measure("left", "share left to the others", "", "more", "others", 0.05, share),
        Measure("lowest", "least throughput in 10 s", "Mbit/s", "more", "others", 0.0, lowest_mbps),
        Measure("loss", "packets lost", "%", "less", "others", 0.5, loss_percent),
        Measure("own_loss", "packets lost", "%", "less", "tested", 0.5, loss_percent),
        Measure("breaker", "firings of a breaker", "", "less", "all", 0.5, breaker_firings, most=1),
        Measure("queue", "mean queueing delay", "ms", "less", "all", 2.0, queue_mean_ms),
        Measure("queue_p95", f"95th {OF_DELAY}", "ms", "less", "all", 5.0, queue_p95_ms),
        Measure("queue_least", f"5th {OF_DELAY}", "ms", "less", "all", 2.0, queue_least_ms),
        Measure("probe_rtt", "time between PROBE_RTTs", "s", "more", "tested", 1.0, probe_rtt_s),
        Measure("drain", "round trips in DRAIN", "", "less", "tested", 0.5, drain_rounds),
        Measure("jain", "Jain's index of its flows", "", "more", "tested", 0.05, jain),
        Measure("late_share", "share of a latecomer", "", "one", "tested", 0.1, late_share),
        Measure("utilisation", "use of the link", "", "more", "all", 0.0, utilisation),
        Measure("kept", "throughput kept from the middle on", "", "more", "tested", 0.1, kept),
        Measure(
            "sending_rate", "packets sent", "packets/s", "less", "tested", 1.0, sent_packets_per_s
        ),
        Measure("recovery", "time to 90 % of the link", "s", "less", "tested", 1.0, recovery_s),
        Measure(
            "objects", "95th percentile of objects", "ms", "less", "others", 10.0, objects_p95_ms
        ),
        Measure("median", "median of objects", "ms", "less", "others", 10.0, objects_median_ms),
        Measure("late", "frames later than 250 ms", "%", "less", "others", 2.0, late_percent),
        Measure("acks", "ACKs for each packet", "", "less", "tested", 0.1, acks_per_packet),
    )
}
"""Name → measure."""
