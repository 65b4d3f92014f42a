"""Effect of one parameter alone on the throughput, by the law that the test follows.

Every effect is ln(throughput with the test's value / throughput with the reference's), with all
other parameters as in the test, at equal loss; NaN if no law determines it. A loss-based controller
is judged by the response function of its law. No response function applies to a controller that
models the path.

Flows that share a drop-tail queue lose at the same times rather than at the same rate: when it
overflows, all reduce their windows (Chiu and Jain 1989 call this synchronous feedback). Between two
losses T apart an AIMD window then grows to T α / (1 - β), and CUBIC's to T³ C / (1 - β), with means
(1 + β) / 2 and (3 + β) / 4 of that. These are the terms under the root of the response functions,
the square root of RFC 9438 §4.3 and the fourth root of §5.1. So the effect at equal loss times is
twice or four times that at equal loss (`at_equal_loss_times`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from qbkit.metrics.parameters.estimates import Parameters
from qbkit.metrics.parameters.laws import PROBING, ROOTS, law
from qbkit.metrics.theory import CUBIC_BETA

Effect = Callable[[Parameters, Parameters], float]

MOST_LEFT = 0.99
"""Largest β for the response functions, which have a pole at 1."""


def _response(beta: float, growth: str) -> float:
    """The part of ln(window) at a given loss rate that depends on β; 0 if none does.

    Of an unknown law, the smaller one of the two known.
    """
    beta = min(max(beta, 0.0), MOST_LEFT)
    if growth == "linear":  # AIMD, RFC 9438 §4.3
        return 0.5 * math.log((1 + beta) / (1 - beta))
    if growth == PROBING:
        return 0.0
    return 0.25 * math.log((3 + beta) / (1 - beta))  # CUBIC, RFC 9438 §5.1


def _decrease(test: Parameters, reference: Parameters) -> float:
    growth = law(test, reference)
    ours, theirs = (_response(p["decrease_factor"].value, growth) for p in (test, reference))
    return ours - theirs


def _reverted(test: Parameters, reference: Parameters) -> float:
    """Effect of reverted reductions: they raise the fraction of the window left on average."""
    growth = law(test, reference)
    beta = test["decrease_factor"].value
    beta = CUBIC_BETA if math.isnan(beta) else beta
    parts = (p["reverted_reductions_percent"].value / 100 for p in (test, reference))
    ours, theirs = (_response(1 - (1 - beta) * (1 - part), growth) for part in parts)
    return ours - theirs


def _ln_ratio(name: str, weight: float) -> Effect:
    """``weight`` times the ln of the ratio; NaN if a value is not positive."""

    def effect(test: Parameters, reference: Parameters) -> float:
        ours, theirs = test[name].value, reference[name].value
        return weight * math.log(ours / theirs) if ours > 0 and theirs > 0 else math.nan

    return effect


def _under(growth: str, effect: Effect) -> Effect:
    """An effect that is known under one law only."""
    return lambda test, reference: (
        effect(test, reference) if law(test, reference) == growth else math.nan
    )


def _growth(test: Parameters, reference: Parameters) -> float:
    """Effect of the growth law: a line grows less than CUBIC's curve; others are unknown."""
    ours, theirs = test["growth"].word, reference["growth"].word
    sizes = {("linear", "cubic"): -0.2, ("cubic", "linear"): 0.2}
    return sizes.get((ours, theirs), math.nan)


def _word(name: str, worse: str, loss: float) -> Effect:
    """Effect -``loss`` if the test's word is ``worse``, and +``loss`` if the reference's is."""
    return lambda test, reference: -loss if test[name].word == worse else loss


def at_equal_loss_times(name: str, effect: float, growth: str) -> float:
    """The effect of a cause if both flows lose at the same times, from that at equal loss.

    ``growth`` is the `law`; NaN if it has no response function.
    """
    if name == "packet_bytes":  # outside the root
        return effect
    return effect * ROOTS.get(growth, math.nan)


RESPONSE: dict[str, Effect] = {
    "decrease_factor": _decrease,
    "reverted_reductions_percent": _reverted,
    "increase_packets_per_rtt": _under("linear", _ln_ratio("increase_packets_per_rtt", 0.5)),
    "cubic_c": _under("cubic", _ln_ratio("cubic_c", 0.25)),  # RFC 9438 §5.1
    "packet_bytes": _ln_ratio("packet_bytes", 1.0),  # windows count packets
}
"""Effects from the response function of the law."""
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
    "slow_start_exit_packets": _ln_ratio("slow_start_exit_packets", 0.02),
    "ack_delay_ms": _ln_ratio("ack_delay_ms", -0.005),
}
"""Effects from a rule of thumb: their sign is known, their size is not."""
EFFECTS = RESPONSE | THUMB
"""Effects of all causes: constants and rules written into a controller, or into its stack."""
SYMPTOMS = (
    "in_flight_bdp",
    "least_window_packets",
    "limited_percent",
    "burst_packets",
)
"""Consequences of causes and the path; they are shown, but never named as the reason."""
DERIVED = ("emulated_flows",)
"""Parameters computed from others: here from decrease and increase."""
