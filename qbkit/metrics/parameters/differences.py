"""Which parameter sets two controllers apart most: differences, ranked by what they would do.

Every difference is weighed in one currency, the change of throughput that it alone would bring at
equal loss: e^effect times what the reference gets. For decrease and increase, C and packet size it
follows from the response functions (RFC 9438 §5.1; AIMD as in its §4.3); for the others it is a
rule of thumb, named as such beside each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from qbkit.metrics.parameters.inference import PARAMETERS, Estimate, Parameters

LEAST_PART = 0.05
"""Numbers that differ by less than this are taken as equal, whatever their intervals."""
AGAINST = 0.3
"""Weight of a difference that would move the throughput the other way than it moved."""
CLEAR_PART = 0.03
"""Part of the fair share from which on a Δ-throughput has a sign."""


@dataclass(frozen=True)
class Difference:
    """One parameter that differs."""

    name: str
    test: Estimate
    reference: Estimate
    effect: float
    """Expected ln of throughput over the reference's, if nothing else differed."""
    score: float
    """Size of the effect, less where it goes against what was seen."""

    @property
    def meaning(self) -> str:
        """What the parameter is."""
        return PARAMETERS[self.name][1]

    def __str__(self) -> str:
        unit = f" {self.test.unit}" if self.test.unit not in ("", "1") else ""
        return f"{self.meaning}: {self.test}{unit} instead of {self.reference}{unit}"


def compare(
    test: Parameters, reference: Parameters, delta_throughput_part: float = math.nan
) -> list[Difference]:
    """The differences of two senders, the likeliest cause first.

    ``delta_throughput_part`` is Conformance-T's Δ-throughput over the fair share of the link (NaN:
    unknown); differences that would bring the opposite step back.
    """
    found = []
    for name in PARAMETERS:
        ours, theirs = test[name], reference[name]
        if name in DERIVED or not _differ(ours, theirs):
            continue
        effect = EFFECTS[name](test, reference)
        against = abs(delta_throughput_part) > CLEAR_PART and effect * delta_throughput_part < 0
        score = abs(effect) * (AGAINST if against else 1.0)
        found.append(Difference(name, ours, theirs, effect, score))
    return sorted(found, key=lambda d: -d.score)


def _differ(test: Estimate, reference: Estimate) -> bool:
    """Whether two estimates can be told apart."""
    if test.word or reference.word:
        return bool(test.word and reference.word and test.word != reference.word)
    if not (test.known and reference.known):
        return False
    apart = abs(test.value - reference.value)
    if apart <= LEAST_PART * max(abs(test.value), abs(reference.value)):
        return False
    if math.isnan(test.low) or math.isnan(reference.low):
        return True
    return test.low > reference.high or test.high < reference.low


DERIVED = ("emulated_flows",)
"""Said by others already: here by decrease and increase."""

Effect = Callable[[Parameters, Parameters], float]


def _ln_ratio(name: str, weight: float) -> Effect:
    """``weight`` times the ln of the ratio."""

    def effect(test: Parameters, reference: Parameters) -> float:
        ours, theirs = (max(p[name].value, 1e-9) for p in (test, reference))
        return weight * math.log(ours / theirs)

    return effect


def _word(name: str, worse: str, loss: float) -> Effect:
    """The test loses so much when its word is ``worse``, and wins it when the reference's is."""

    def effect(test: Parameters, reference: Parameters) -> float:
        return -loss if test[name].word == worse else loss

    return effect


def _models_path(test: Parameters, reference: Parameters) -> bool:
    """Whether one of them, as BBR, goes by a model of the path: then a loss hardly matters."""
    return test["probe_up_gain"].known or reference["probe_up_gain"].known


def _decrease(test: Parameters, reference: Parameters) -> float:
    """By the response function of the test's law of growth."""
    if _models_path(test, reference):
        return 0.0
    ours, theirs = test["decrease_factor"].value, reference["decrease_factor"].value
    return _response(ours, test) - _response(theirs, test)


def _undone(test: Parameters, reference: Parameters) -> float:
    """A cut that is taken back is none: on average it leaves more of the window."""
    if _models_path(test, reference):
        return 0.0
    beta = test["decrease_factor"].value
    beta = 0.7 if math.isnan(beta) else beta
    parts = (p["cuts_undone_percent"].value / 100 for p in (test, reference))
    ours, theirs = (_response(min(1 - (1 - beta) * (1 - part), 0.99), test) for part in parts)
    return ours - theirs


def _response(beta: float, parameters: Parameters) -> float:
    """ln of the window at a given loss rate, as far as β decides it."""
    beta = min(beta, 0.99)
    if parameters["growth"].word == "linear":
        return 0.5 * math.log((1 + beta) / (1 - beta))
    return 0.25 * math.log((3 + beta) / (1 - beta))


def _limited(test: Parameters, reference: Parameters) -> float:
    ours, theirs = (max(1 - p["limited_percent"].value / 100, 0.01) for p in (test, reference))
    return math.log(ours / theirs)


def _in_flight(test: Parameters, reference: Parameters) -> float:
    """What a model of the path keeps in flight is its claim on the queue; a loss-based window says
    nothing here that its increase and decrease do not."""
    if not _models_path(test, reference):
        return 0.0
    return math.log(test["in_flight_bdp"].value / reference["in_flight_bdp"].value)


EFFECTS: dict[str, Effect] = {
    "decrease_factor": _decrease,
    "cuts_undone_percent": _undone,
    "increase_packets_per_rtt": _ln_ratio("increase_packets_per_rtt", 0.5),  # AIMD
    "cubic_c": _ln_ratio("cubic_c", 0.25),  # RFC 9438 §5.1
    "packet_bytes": _ln_ratio("packet_bytes", 1.0),  # windows count packets
    "limited_percent": _limited,
    "in_flight_bdp": _in_flight,
    "probe_up_gain": _ln_ratio("probe_up_gain", 1.0),
    # From here on rules of thumb: the sign is known, the size is not.
    "packets_per_ack": _ln_ratio("packets_per_ack", -0.1),  # bursts, late growth
    "growth": _word("growth", "linear", 0.2),
    "pacing": _word("pacing", "bursts", 0.1),
    "pacing_gain": _ln_ratio("pacing_gain", 0.02),
    "probe_down_gain": _ln_ratio("probe_down_gain", 0.1),
    "probe_cycle_rtts": _ln_ratio("probe_cycle_rtts", -0.05),
    "probe_rtt_interval_s": _ln_ratio("probe_rtt_interval_s", 0.05),
    "probe_rtt_duration_ms": _ln_ratio("probe_rtt_duration_ms", -0.05),
    "least_window_packets": _ln_ratio("least_window_packets", 0.01),
    "burst_packets": _ln_ratio("burst_packets", -0.03),
    "initial_window_packets": _ln_ratio("initial_window_packets", 0.02),
    "start_growth": _ln_ratio("start_growth", 0.02),
    "slow_start_exit": _word("slow_start_exit", "delay", 0.03),
    "slow_start_exit_packets": _ln_ratio("slow_start_exit_packets", 0.01),
    "ack_delay_ms": _ln_ratio("ack_delay_ms", -0.005),
}
