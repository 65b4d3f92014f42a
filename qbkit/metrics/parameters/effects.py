"""What one parameter alone would do to the throughput, by the law that the test follows.

Every effect is ln(throughput with the test's value / throughput with the reference's), all else as
in the test, at equal loss. NaN: no law says. A loss-based controller is judged by the response
function of its own law, one that goes by a model of the path by none of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from qbkit.metrics.parameters.inference import Parameters

Effect = Callable[[Parameters, Parameters], float]

MOST_LEFT = 0.99
"""β for the response functions, at most: they have a pole at 1."""
USUAL_BETA = 0.7
"""β where the traces show none (RFC 9438 §4.6)."""


def law(test: Parameters, reference: Parameters) -> str:
    """The law that judges: ``linear``, ``cubic``, ``probing``, or empty where it is unknown.

    The test's, unless one of the two goes by a model of the path: then losses say nothing.
    """
    ours, theirs = (
        p["growth"].word or ("probing" if p["probe_up_gain"].known else "")
        for p in (test, reference)
    )
    return "probing" if "probing" in (ours, theirs) else ours


def _response(beta: float, growth: str) -> float:
    """ln of the window at a given loss rate, as far as β decides it; 0 where it does not."""
    beta = min(max(beta, 0.0), MOST_LEFT)
    if growth == "linear":  # AIMD, RFC 9438 §4.3
        return 0.5 * math.log((1 + beta) / (1 - beta))
    if growth == "cubic":  # RFC 9438 §5.1
        return 0.25 * math.log((3 + beta) / (1 - beta))
    return 0.0 if growth == "probing" else math.nan


def _decrease(test: Parameters, reference: Parameters) -> float:
    growth = law(test, reference)
    ours, theirs = (_response(p["decrease_factor"].value, growth) for p in (test, reference))
    return ours - theirs


def _reverted(test: Parameters, reference: Parameters) -> float:
    """A reverted reduction is none: on average it leaves more of the window."""
    growth = law(test, reference)
    beta = test["decrease_factor"].value
    beta = USUAL_BETA if math.isnan(beta) else beta
    parts = (p["cuts_undone_percent"].value / 100 for p in (test, reference))
    ours, theirs = (_response(1 - (1 - beta) * (1 - part), growth) for part in parts)
    return ours - theirs


def _ln_ratio(name: str, weight: float) -> Effect:
    """``weight`` times the ln of the ratio; NaN where a value is not positive."""

    def effect(test: Parameters, reference: Parameters) -> float:
        ours, theirs = test[name].value, reference[name].value
        return weight * math.log(ours / theirs) if ours > 0 and theirs > 0 else math.nan

    return effect


def _under(growth: str, effect: Effect) -> Effect:
    """An effect that holds under one law only."""
    return lambda test, reference: (
        effect(test, reference) if law(test, reference) == growth else math.nan
    )


def _growth(test: Parameters, reference: Parameters) -> float:
    """A line grows less than CUBIC's curve; between them and a model of the path it depends."""
    ours, theirs = test["growth"].word, reference["growth"].word
    sizes = {("linear", "cubic"): -0.2, ("cubic", "linear"): 0.2}
    return sizes.get((ours, theirs), math.nan)


def _word(name: str, worse: str, loss: float) -> Effect:
    """The test loses so much when its word is ``worse``, and wins it when the reference's is."""
    return lambda test, reference: -loss if test[name].word == worse else loss


RESPONSE: dict[str, Effect] = {
    "decrease_factor": _decrease,
    "cuts_undone_percent": _reverted,
    "increase_packets_per_rtt": _under("linear", _ln_ratio("increase_packets_per_rtt", 0.5)),
    "cubic_c": _under("cubic", _ln_ratio("cubic_c", 0.25)),  # RFC 9438 §5.1
    "packet_bytes": _ln_ratio("packet_bytes", 1.0),  # windows count packets
}
"""By the response function of the law."""
THUMB: dict[str, Effect] = {
    "growth": _growth,
    "packets_per_ack": _ln_ratio("packets_per_ack", -0.1),  # bursts, late growth
    "probe_up_gain": _ln_ratio("probe_up_gain", 1.0),
    "probe_down_gain": _ln_ratio("probe_down_gain", 0.1),
    "probe_cycle_rtts": _ln_ratio("probe_cycle_rtts", -0.05),
    "probe_rtt_interval_s": _ln_ratio("probe_rtt_interval_s", 0.05),
    "probe_rtt_duration_ms": _ln_ratio("probe_rtt_duration_ms", -0.05),
    "pacing": _word("pacing", "bursts", 0.1),
    "pacing_gain": _ln_ratio("pacing_gain", 0.02),
    "initial_window_packets": _ln_ratio("initial_window_packets", 0.02),
    "start_growth": _ln_ratio("start_growth", 0.02),
    "slow_start_exit": _word("slow_start_exit", "delay", 0.03),
    "ack_delay_ms": _ln_ratio("ack_delay_ms", -0.005),
}
"""By a rule of thumb: the sign is known, the size is not."""
EFFECTS = RESPONSE | THUMB
"""Of the causes: constants and rules that someone wrote into a controller, or around it."""
SYMPTOMS = (
    "in_flight_bdp",
    "least_window_packets",
    "limited_percent",
    "slow_start_exit_packets",
    "burst_packets",
)
"""What follows from causes and the path: shown beside them, and never named as the reason."""
DERIVED = ("emulated_flows",)
"""Said by others already: here by decrease and increase."""
