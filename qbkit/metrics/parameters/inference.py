"""Inference of the parameters of a congestion controller and its stack, with uncertainties."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.parameters.connection import Connection, observe
from qbkit.metrics.parameters.estimates import PARAMETERS, Estimate, Parameters
from qbkit.metrics.parameters.growth import growths_of
from qbkit.metrics.parameters.hidden import shown
from qbkit.metrics.parameters.limits import limited
from qbkit.metrics.parameters.marks import kept_after_marks
from qbkit.metrics.parameters.phases import Phases, phases_of
from qbkit.metrics.parameters.ranges import range_of
from qbkit.metrics.parameters.reductions import REDUCES, window_reductions_of
from qbkit.metrics.parameters.start import burst_packets, pacing_gains, start_of
from qbkit.metrics.theory import CUBIC_BETA
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.attributes import require_whole

RESAMPLES = 500
CONFIDENCE = 0.95
MOST_LEFT = 0.99
"""Largest β for the number of emulated flows, which is infinite at 1."""
FEWEST_CURVES, ALIKE = 5, 0.2
"""Curves that are none by accident: so many, and half of their C within this part of the median."""
LEAST_CYCLE_RTTS = 3.9
"""Shortest cycle of probes: up, down and two round trips of cruising. Bursts that a jitter, a rival
or held ACKs make of a window come back each three round trips or so."""
LEAST_INCREASE = 0.05
"""Packets per round trip above which a line rises: BBR's constant window is a line as well."""


def infer(
    traces: xr.Dataset | Connection | Sequence[xr.Dataset | Connection], flow: str | int = 0
) -> Parameters:
    """Infer the parameters of one sender from one or more of its traces.

    ``traces`` are run datasets, of which ``flow`` is observed, or observed connections; the samples
    of several (seeds) are pooled. Inference uses only times and sizes of packets and ACKs, nothing
    that a stack reports. Where packets were marked CE, what marks leave of the window comes last
    (``kept_after_mark``); where they reduce it, its cycles are not taken for probing, nor are those
    of a path whose rate or delay changes, or that holds packets. Of a flow with an ``app`` the laws
    of the window are not seen. Most parameters show best if the flow is alone on its link, without
    a rival's losses. Raises MetricError without a trace, and if a flow cannot be observed;
    TraceError for a run whose time or packets were cut.
    """
    several = [traces] if isinstance(traces, xr.Dataset | Connection) else list(traces)
    if not several:
        raise MetricError("parameters are inferred from traces; give at least one")
    for run in (t for t in several if isinstance(t, xr.Dataset)):
        require_whole(run)
    seen = [t if isinstance(t, Connection) else observe(t, flow) for t in several]
    kept = [
        kept_after_marks(c, trace, flow) if isinstance(trace, xr.Dataset) else np.empty(0)
        for trace, c in zip(several, seen, strict=True)
    ]
    found = [
        shown(samples_of(c), trace, flow, after_mark)
        for c, trace, after_mark in zip(seen, several, kept, strict=True)
    ]
    estimates = [
        _common(name, [str(each.get(name, "")) for each in found])
        if not unit
        else median_of(name, [np.array(each.get(name, ()), float, ndmin=1) for each in found])
        for name, (unit, _) in PARAMETERS.items()
    ]
    after_marks = [median_of("kept_after_mark", kept)] if any(map(len, kept)) else []
    return Parameters(seen[0].label, [*with_flows(estimates), *after_marks])


def samples_of(c: Connection) -> dict[str, FloatArray | float | str]:
    """Samples of each parameter that one connection shows."""
    start = start_of(c)
    reductions = window_reductions_of(c, start.settled_s)
    growths = growths_of(c, reductions, c.grid_s[-1])
    phases = _of_probes(phases_of(c, start.settled_s))
    gains = pacing_gains(c, start)
    lines = np.array([g.packets_per_rtt for g in growths])
    curves = np.array([g.cubic_c for g in growths])
    factors = np.array([r.factor for r in reductions if not r.reverted])
    found: dict[str, FloatArray | float | str] = {
        "initial_window_packets": start.window_packets[0],
        "start_growth": start.growth,
        "slow_start_exit": "loss" if start.by_loss else "delay",
        "slow_start_exit_packets": start.window_packets[-1],
        "pacing": "paced" if len(gains) else "bursts",
        "pacing_gain": gains,
        "packet_bytes": c.packet_bytes,
        "burst_packets": burst_packets(c),
        **_acks(c, start.end_s),
        "decrease_factor": factors,
        "reverted_reductions_percent": np.array([100.0 * r.reverted for r in reductions]).mean()
        if reductions
        else np.nan,
        "increase_packets_per_rtt": lines,
        "cubic_c": curves,
        "probe_up_gain": phases.up_gain,
        "probe_down_gain": phases.down_gain,
        "probe_cycle_rtts": phases.cycle_rtts,
        "probe_rtt_interval_s": np.diff(phases.probe_rtt_begin_s),
        "probe_rtt_duration_ms": 1e3 * phases.probe_rtt_duration_s,
        **_steady(c, start.settled_s),
    }
    law = _law(lines, curves, factors, phases)
    return {**found, "growth": law} if law else found


def _of_probes(phases: Phases) -> Phases:
    """The phases without cycles that are too short to be those of probing."""
    if not len(phases.cycle_rtts) or np.median(phases.cycle_rtts) >= LEAST_CYCLE_RTTS:
        return phases
    none = np.empty(0)
    return replace(phases, up_gain=none, down_gain=none, cycle_rtts=none)


def _law(lines: FloatArray, curves: FloatArray, factors: FloatArray, phases: Phases) -> str:
    """The law that a window follows; "" if unknown.

    Rising lines and curves are laws of a loss-based controller, whose window a loss reduces. A
    controller that probes in cycles models the path; a curve can fit such a window by accident, a
    line cannot, nor many curves of the same C.
    """
    lines, curves = lines[np.isfinite(lines)], curves[np.isfinite(curves)]
    reduces = len(factors) > 0 and float(np.median(factors)) <= REDUCES
    straight = len(lines) > 0 and len(lines) >= len(curves)
    if reduces and straight and np.median(lines) > LEAST_INCREASE:
        return "linear"
    if reduces and _are_alike(curves):
        return "cubic"
    if len(phases.up_gain):
        return "probing"
    return "cubic" if reduces and len(curves) > len(lines) else ""


def _are_alike(curves: FloatArray) -> bool:
    """Whether many curves have the same C."""
    if len(curves) < FEWEST_CURVES:
        return False
    low, middle, high = np.quantile(curves, [0.25, 0.5, 0.75])
    return bool(high - low <= ALIKE * middle)


def _acks(c: Connection, after_s: float) -> dict[str, FloatArray | float | str]:
    """Packets per ACK in each second after slow start, and the longest wait for an ACK.

    Of a way back that drops or queues ACKs, the wait is not the receiver's.
    """
    edges_s = np.arange(after_s, c.grid_s[-1], 1.0)
    packets = np.histogram(c.load.delivered_s + c.min_rtt_s / 2, edges_s)[0]
    acks = np.histogram(c.ack_s if c.receiver_ack_s is None else c.receiver_ack_s, edges_s)[0]
    busy = (acks > 0) & (packets > 10)
    waits_s = (c.acked_or_lost_s - c.delivered_s)[~c.lost] - c.min_rtt_s / 2
    longest_s = float(waits_s.max()) if c.receiver_ack_s is None else np.nan
    return {
        "packets_per_ack": packets[busy] / acks[busy],
        "ack_delay_ms": 1e3 * longest_s,
    }


def _steady(c: Connection, after_s: float) -> dict[str, FloatArray | float | str]:
    """Packets in flight after slow start, each figure over spans of a few RTTs."""
    later = c.grid_s > after_s
    window, time_s = c.in_flight_packets[later], c.grid_s[later]
    if len(window) < 40:
        return {}
    until, before = (c.load.delivered_bytes(t) for t in (time_s, time_s - 4 * c.min_rtt_s))
    bdp = float(np.quantile(until - before, 0.95)) / 4 / c.packet_bytes
    whole = window[: len(window) // 40 * 40].reshape(-1, 40)
    rolled = np.lib.stride_tricks.sliding_window_view(window, 4)
    return {
        "in_flight_bdp": np.median(whole, axis=1) / max(bdp, 1.0),
        "least_window_packets": float(np.median(rolled, axis=1).min()),
        "limited_percent": 100.0 * float(limited(c, c.link)[later].mean()) if c.link else np.nan,
    }


def median_of(name: str, of_traces: Sequence[FloatArray]) -> Estimate:
    """The median of all traces' samples and its interval; unknown where that is impossible."""
    kept = [samples[np.isfinite(samples)] for samples in of_traces]
    samples = np.concatenate([np.empty(0), *kept])
    possible = range_of(name)
    value = float(np.median(samples)) if len(samples) else math.nan
    if value not in possible:
        return Estimate(name, math.nan)
    runs = tuple(possible.clip(float(np.median(of))) if len(of) else math.nan for of in kept)
    if len(samples) < 3:
        return Estimate(name, value, samples=len(samples), runs=runs)
    rng = np.random.default_rng(0)
    drawn = np.median(rng.choice(samples, (RESAMPLES, len(samples))), axis=1)
    ends = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    low, high = (possible.clip(float(end)) for end in ends)
    return Estimate(name, value, low, high, len(samples), runs=runs)


def _common(name: str, words: Sequence[str]) -> Estimate:
    counts = Counter(word for word in words if word)
    if not counts:
        return Estimate(name, math.nan)
    word, count = counts.most_common(1)[0]
    runs = tuple(word or math.nan for word in words)
    return Estimate(name, math.nan, samples=count, word=word, runs=runs)


def with_flows(estimates: list[Estimate]) -> list[Estimate]:
    """The estimates with N, the number of standard flows that together get what this one gets.

    One loss reduces one of N CUBIC flows, so β_N = (N - 1 + 0.7)/N (IMC'22 §3.3). With linear
    growth, AIMD with α and β gets √(α (1 + β)/(3 (1 - β))) times what Reno gets (RFC 9438 §4.3). N
    is unknown for other laws, and if α or 1 - β is not positive; its interval may reach 0.
    """
    by_name = {e.name: e for e in estimates}
    beta, line = by_name["decrease_factor"], by_name["increase_packets_per_rtt"]
    law = by_name["growth"].word
    rises = law == "linear" and line.value > 0
    if not (rises or law == "cubic") or not 0 <= beta.value < 1:
        return estimates

    def flows(b: float, a: float) -> float:
        b = min(b, MOST_LEFT)
        if law == "cubic":
            return (1 - CUBIC_BETA) / (1 - b)
        return math.sqrt(max(a, 0.0) * (1 + b) / (3 * (1 - b)))

    ends = flows(beta.value, line.value), flows(beta.low, line.low), flows(beta.high, line.high)
    found = Estimate("emulated_flows", *ends, beta.samples)
    return [found if e.name == "emulated_flows" else e for e in estimates]
