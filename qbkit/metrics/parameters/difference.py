"""A parameter that differs between two controllers, and how a person says so."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from qbkit.metrics.parameters.dips import DECREASE
from qbkit.metrics.parameters.effects import SYMPTOMS, THUMB
from qbkit.metrics.parameters.estimates import Estimate
from qbkit.metrics.parameters.laws import GROWTH, OTHER, PROBING
from qbkit.metrics.parameters.relations import OF_MARKS
from qbkit.metrics.parameters.rules import RULES, Rule

CLAUSES = {
    "initial_window_packets": "it starts with {0} packets, not {1}",
    "start_growth": "its window grows by {0} per round of slow start, not {1}",
    "slow_start_exit": "its slow start ends by {0}, not by {1}",
    "slow_start_exit_packets": "its slow start ends at {0} packets, not {1}",
    "pacing": "its slow start is {0}, not {1}",
    "pacing_gain": "it paces slow start at {0} windows per RTT, not {1}",
    "packet_bytes": "its frames have {0} bytes, not {1}",
    "packets_per_ack": "its receiver sends an ACK for every {0} packets, not {1}",
    "ack_delay_ms": "its receiver waits up to {0} ms with an ACK, not {1}",
    "decrease_factor": "a loss leaves {0} of its window, not {1}",
    "reverted_reductions_percent": "it reverts {0} % of its window reductions, not {1}",
    "growth": "the law of its window's growth is {0}, not {1}",
    "increase_packets_per_rtt": "it adds {0} packets per RTT, not {1}",
    "cubic_c": "its C is {0} packets/s³, not {1}",
    "probe_up_gain": "it probes at {0} times the delivery rate, not {1}",
    "probe_down_gain": "it drains at {0} times the delivery rate, not {1}",
    "probe_cycle_rtts": "it probes every {0} RTTs, not {1}",
    "probe_rtt_interval_s": "it probes for the RTT every {0} s, not {1}",
    "probe_rtt_duration_ms": "its ProbeRTT lasts {0} ms, not {1}",
}
"""Cause → what it is in a sentence about the test: {0} is its value, {1} the reference's."""
LAWS = {
    PROBING: "probes for bandwidth and the RTT as BBR does",
    "cubic": "grows along CUBIC's curve",
    "linear": "grows by a line between losses",
}
"""What a window does by each law."""
UNSEEN = "is not seen to"
"""What is said of one that does something else."""
NOT_PACED = {"bursts": "it does not pace"}
"""What it is to send slow start in bursts for a sender that models the path."""
WORDS = {"bursts": "in bursts", "never": "rarely or never"}
"""Words that need another form in a clause."""
NOTHING = re.compile(r", not (by |for )?(0|nan)$")
"""End of a clause where the reference has nothing, or is not seen to."""

CLEAR = 0.02
"""Smallest effect that makes a cause a suspect: 2 % of the throughput."""


@dataclass(frozen=True)
class Difference:
    """One parameter that differs."""

    name: str
    test: Estimate
    reference: Estimate
    effect: float
    """Expected ln of throughput over the reference's, if nothing else differed; NaN if unknown, and
    for a symptom."""
    effect_low: float
    effect_high: float
    """Interval of the effect, from the intervals of both estimates; NaN if either has none."""
    score: float
    """Size of the effect, reduced if it contradicts the observed change; NaN as the effect."""
    explained: bool = False
    """Whether it differs because another one does (`EXPLAINS` of `relations`)."""
    of_model: bool = False
    """Whether a side models the path, and this is no matter of its start alone: the packets of such
    a sender are paced at all times."""
    votes: float = math.nan
    """Part of the precedents' votes that name it; NaN for what was not voted on."""

    @property
    def meaning(self) -> str:
        """Meaning of the parameter, or of the behaviour."""
        return self.test.meaning

    @property
    def role(self) -> str:
        """``cause``: written into the controller; ``symptom``: a consequence."""
        return "symptom" if self.name in SYMPTOMS else "cause"

    @property
    def is_suspect(self) -> bool:
        """Whether it is a cause that can matter, or whose effect is unknown."""
        return self.role == "cause" and not self.score <= CLEAR

    @property
    def is_of_laws(self) -> bool:
        """Whether the laws of both windows differ, and have words."""
        words = (self.test.word, self.reference.word)
        return self.name == GROWTH and all(word in (*LAWS, OTHER) for word in words)

    @property
    def is_of_two_laws(self) -> bool:
        """Whether one side models the path, and the other does not."""
        return self.is_of_laws and PROBING in (self.test.word, self.reference.word)

    @property
    def has_no_precedent(self) -> bool:
        """Whether no two senders of one law, on a queue that drops, can differ so."""
        return self.is_of_two_laws or self.name in OF_MARKS

    @property
    def by_thumb(self) -> bool:
        """Whether the effect comes from a rule of thumb instead of a response function."""
        return self.name in THUMB or self.name in RULES

    @property
    def clause(self) -> str:
        """A cause without intervals, as a verdict says it: "it reverts 82 % of …"."""
        sides = (self.test, self.reference)
        shown = [WORDS.get(e.word, e.word) or _rounded(e.value, e.unit) for e in sides]
        rule = RULES.get(self.name)
        if not (self.test.known or (rule and rule.missing)):
            return (
                f"only the reference shows {self.meaning} ({shown[1]}{unit_after(self.reference)})"
            )
        if self.name == "pacing" and self.of_model and self.test.word in NOT_PACED:
            return NOT_PACED[self.test.word]
        if self.is_of_laws:
            return self._clause_of_laws
        if self.test.name != self.reference.name:  # a mark beside a loss
            ours, theirs = ("loss" if e.name == DECREASE else "CE mark" for e in sides)
            return (
                f"a {ours} leaves {shown[0]} of its window, where a {theirs} leaves {shown[1]} of "
                "the reference's"
            )
        clause = self._clause_of(rule) if rule else CLAUSES[self.name]
        return NOTHING.sub("", clause.format(*shown))

    @property
    def _clause_of_laws(self) -> str:
        ours, theirs = self.test.word, self.reference.word
        if ours == OTHER:
            return f"it {UNSEEN} probe for bandwidth and the RTT, as the reference does"
        if theirs == OTHER:
            return f"it {LAWS[ours]}, which the reference {UNSEEN} do"
        return f"it {LAWS[ours]}, where the reference {LAWS[theirs]}"

    def _clause_of(self, rule: Rule) -> str:
        ours, theirs = self.test.value, self.reference.value  # a comparison with NaN is false
        if not self.test.known:
            return rule.missing
        special = rule.if_more if ours > theirs else rule.if_less if ours < theirs else ""
        return special or rule.clause

    def __str__(self) -> str:
        ours, theirs = (f"{side}{unit_after(side)}" for side in (self.test, self.reference))
        return f"{self.meaning}: {ours} instead of {theirs}"


def unit_after(estimate: Estimate) -> str:
    """The unit of a number, after a space; empty for words, ratios, and what is not seen."""
    return f" {estimate.unit}" if estimate.known and estimate.unit not in ("", "1") else ""


def _rounded(value: float, unit: str) -> str:
    """Two digits, or all before the point; of milliseconds none beyond a hundredth."""
    if unit == "ms":
        value = round(value, 2)
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"
