"""Verdicts in words, for a person: at most three short lines and a kind.

A verdict names what differs and by how much. The numbers, intervals and p-values behind it are in
`Assessment.reasons`, `Assessment.frame` and the maps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

from qbkit.metrics.verdicts import permutation
from qbkit.spec.flow import controller_of

if TYPE_CHECKING:
    from qbkit.metrics.verdicts.assessment import Assessment

Outcome = Literal["conforms", "differs", "no difference detected", "undecided"]
CONFORMS: Outcome = "conforms"
DIFFERS: Outcome = "differs"
NO_DIFFERENCE: Outcome = "no difference detected"
UNDECIDED: Outcome = "undecided"
Kind = Literal["like", "more", "less", "other", "open"]
"""Like the reference; takes more; takes less; differs otherwise; not settled."""
CONTROLLERS = {
    "cubic": "CUBIC",
    "reno": "Reno",
    "newreno": "NewReno",
    "bbr": "BBR",
    "bbr1": "BBRv1",
    "bbr2": "BBRv2",
    "bbr3": "BBRv3",
    "vegas": "Vegas",
    "copa": "Copa",
    "prague": "Prague",
}
"""Controllers whose usual spelling is not their name in the program."""

SAME_RUNS = "Both sides are the same runs, so only the noise floor counts"
SAME_TRIALS = "the trials of both sides are equal, so only the noise floor counts"
NOT_YET = "No cause is named before a difference is shown; the details have what differs."


@dataclass(frozen=True)
class Verdict:
    """What a person reads first."""

    kind: Kind
    lines: tuple[str, ...]
    """One to three sentences."""
    word: str = ""
    """The words of the first line that state the outcome, such as "differs"."""

    def __str__(self) -> str:
        return "\n".join(self.lines)

    @property
    def html(self) -> str:
        """The lines as HTML, with `word` in bold."""
        first, *others = (escape(line) for line in self.lines)
        word = escape(self.word)
        shown = first.replace(word, f"<strong>{word}</strong>", 1) if word else first
        return "<br>".join([shown, *others])


def spoken(name: str) -> str:
    """``quiche:cubic`` as one says it: "quiche's CUBIC"; a name of another form as it is."""
    flow, _, options = name.partition("?")
    stack, colon, controller = flow.partition(":")
    if not (stack and colon and controller):
        return name
    owner = "the kernel" if stack == "tcp" else stack
    settings = f" with {' and '.join(options.split('&'))}" if options else ""
    return f"{owner}'s {CONTROLLERS.get(controller, controller)}{settings}"


def spoken_beside(name: str, other: str) -> str:
    """``name`` as one says it after ``other``: "the kernel's" if both run the same controller."""
    mine, theirs = (controller_of(text) for text in (name, other))
    if "?" in name or not mine or mine != theirs:
        return spoken(name)
    return spoken(name).partition("'s ")[0] + "'s"


def study_verdict(
    a: Assessment, cause: str = "", *, fault: str = "", remedied: str = ""
) -> Verdict:
    """The verdict of an assessment.

    ``cause`` is a sentence on why the test differs, if it does. ``fault`` is one on a known fault,
    and ``remedied`` ends the line on the conformance: what it becomes without the fault. A fault
    is no reason where no difference is found.
    """
    test, reference = a.names
    if a.outcome in (CONFORMS, NO_DIFFERENCE):
        fault = remedied = ""
    ours, theirs = _capital(spoken(test)), spoken_beside(reference, test)
    numbers = (
        f"Conformance {a.conformance:.2f} (two trials of {theirs}: {a.noise_floor:.2f}){remedied}."
    )
    if a.same_runs:
        floor = f"Two trials of {theirs}: {a.noise_floor:.2f}, the noise floor."
        known = () if math.isnan(a.noise_floor) else (floor,)
        if are_two_senders(a.names):
            same = f"{ours} and {theirs} do the same here: their trials of a seed are equal."
            return Verdict("open", (same, *known), "the same")
        return Verdict("open", (f"{SAME_RUNS}.", *known), "the same runs")
    why = [fault] if fault else []
    if a.outcome == UNDECIDED:
        why = why or [NOT_YET] * bool(cause)
        return Verdict("open", (_cannot_decide(a, theirs), *why), "cannot decide")
    if a.outcome == CONFORMS:
        within = f"throughput, delay and conformance lie within {100 * a.margin:.0f} %"
        first = f"{ours} is like {theirs}: {within}."
        return Verdict("like", (first, numbers), f"like {theirs}")
    if a.outcome == NO_DIFFERENCE:
        first = f"{ours} and {theirs}: no difference detected."
        power = f"{trials_text(a)} detect {a.detectable_throughput_mbps:.1f} Mbit/s or more."
        return Verdict("open", (first, numbers, power), a.outcome)
    kind, how = _how_it_differs(a)
    why = why or [cause] * bool(cause)
    return Verdict(kind, (f"{ours} differs from {theirs}: {how}.", numbers, *why), "differs")


def are_two_senders(names: tuple[str, str]) -> bool:
    """Whether the names are of two senders, such as two releases, which may behave the same."""
    return names[0] != names[1] and all(controller_of(name) for name in names)


def same_runs(of_both: int, seeds: int, reference_seeds: int) -> bool:
    """Whether all trials of one side are trials of the other, too."""
    return 0 < min(seeds, reference_seeds) <= of_both


def _capital(words: str) -> str:
    """With a capital letter, unless a name begins the words."""
    return f"The {words[4:]}" if words.startswith("the ") else words


def trials_text(a: Assessment) -> str:
    """ "5 seeds", or "3 and 5 seeds" if the sides have different numbers."""
    if a.seeds == a.reference_seeds:
        return f"{a.seeds} seed{'s' * (a.seeds != 1)}"
    return f"{a.seeds} and {a.reference_seeds} seeds"


def _cannot_decide(a: Assessment, theirs: str) -> str:
    """ "3 seeds cannot decide; 5 can": too few for a test, or too few to see a large difference."""
    seeds = f"{trials_text(a)} cannot decide"
    if a.noise_floor <= a.margin:
        return f"{seeds}: two trials of {theirs} do not resemble each other; run longer."
    if a.seeds_needed is None:
        return f"{seeds}: the trials vary too much; run longer."
    each = "" if a.seeds == a.reference_seeds else " of each"
    too_few = permutation.smallest_p(a.seeds, a.reference_seeds) > 1 - a.confidence
    about = "" if too_few else "about "  # how many show a difference depends on its size
    return f"{seeds}; {about}{a.seeds_needed}{each} can."


def _how_it_differs(a: Assessment) -> tuple[Kind, str]:
    """By throughput if that is shown to differ, else by delay, else by the shape."""
    mbps, delay_ms = a.mean_throughput_difference_mbps, a.mean_delay_difference_ms
    if _excludes_0(a.mean_throughput_difference_ci):
        word: Kind = "more" if mbps > 0 else "less"
        return word, f"it takes {abs(mbps):.1f} Mbit/s {word}"
    if _excludes_0(a.mean_delay_difference_ci):
        return "other", (
            f"its packets wait {abs(delay_ms):.1f} ms {'longer' if delay_ms > 0 else 'less'}"
        )
    return "other", "its throughput and delay vary in another way"


def _excludes_0(interval: tuple[float, float]) -> bool:
    return interval[0] > 0 or interval[1] < 0
