"""By which law each of two senders sets its window."""

from __future__ import annotations

import math

from qbkit.metrics.parameters.between_runs import is_seldom, shown
from qbkit.metrics.parameters.dips import DECREASE, INCREASE
from qbkit.metrics.parameters.estimates import PARAMETERS, Estimate, Parameters
from qbkit.metrics.parameters.rules import RULES
from qbkit.metrics.theory import CUBIC_BETA, RENO_BETA

GROWTH, CAP, SIGNAL = "growth", "window_cap_packets", "congestion_signal"
ROOTS = {"linear": 2, "cubic": 4}
"""Law of a window that losses reduce → degree of the root in its response function."""
USUAL_BETAS, NEAR_BETA = {"linear": RENO_BETA, "cubic": CUBIC_BETA}, 0.1
"""Law → the β of its RFC, and how far a measured one may be from it."""
PROBING = "probing"
"""The law of a controller that models the path, as BBR does."""
OTHER = "unknown"
"""That of one that is not seen to, beside one that does."""
OF_FAMILIES = {"bbr": PROBING, "cubic": "cubic", "reno": "linear"}
"""Family of a controller's name (`qbkit.metrics.maps.families`) → its law."""
Laws = tuple[str, str]
"""Those of a test and of its reference; "" where one is unknown."""
BBRS: Laws = (PROBING, PROBING)
PROBE_RTT_EVERY_S = (2.0, 20.0)
"""From ProbeRTT to ProbeRTT it takes 2.5, 5 or 10 s, and more where a flow must be idle for one."""

REGULAR = 3.0
"""The longest over the shortest time of one sender's runs; of BBRs it is about 2 at most."""


def law(test: Parameters, reference: Parameters) -> str:
    """The law that determines effects: ``linear``, ``cubic``, ``probing``, or "" if unknown.

    It is the test's law, or ``probing`` if either of the two models the path: losses then do not
    determine the throughput. A window that something else than the path holds is no model of it,
    unless it probes for the RTT or the other side models the path: updates of flow control come in
    cycles as well.
    """
    ours, theirs = (
        p[GROWTH].word or (PROBING if p["probe_up_gain"].known else "") for p in (test, reference)
    )
    for own, other, side in ((ours, theirs, test), (theirs, ours, reference)):
        if own == PROBING and other != PROBING and _is_held(side) and not _probes_for_rtt(side):
            return other
    return PROBING if PROBING in (ours, theirs) else ours


def by_two_laws(
    test: Parameters, reference: Parameters, by_name: Laws = ("", "")
) -> tuple[Parameters, Parameters] | None:
    """Both sides with their laws, if one models the path and the other does not; else None.

    ``by_name`` are the laws that the controllers' names stand for. What packets show counts before
    a name: a model of the path, or that both follow one law of losses.
    """
    sides = (test, reference)
    words = {side[GROWTH].word for side in sides}
    if len(words) == 1 and words < {*ROOTS} and not any(map(_probes_for_rtt, sides)):
        return None
    ours, theirs = (_law_of(*one) for one in zip(sides, by_name, strict=True))
    if "" in (ours, theirs) or (ours == PROBING) is (theirs == PROBING):
        return None
    return _named(test, ours), _named(reference, theirs)


def curve_and_line(
    test: Parameters, reference: Parameters, by_name: Laws = ("", "")
) -> tuple[Parameters, Parameters] | None:
    """Both sides with their laws, if one is CUBIC's and the other Reno's; else None.

    A name counts where packets do not show the law. Of one name, or of none, other parameters
    make a window look like the other law's.
    """
    if by_name[0] == by_name[1]:
        return None
    sides = (test, reference)
    ours, theirs = (side[GROWTH].word or name for side, name in zip(sides, by_name, strict=True))
    if {ours, theirs} != {*ROOTS}:
        return None
    return _named(test, ours), _named(reference, theirs)


def by_names(
    test: Parameters, reference: Parameters, by_name: Laws
) -> tuple[Parameters, Parameters]:
    """Both sides, with the law that a loss-based name stands for where packets show cycles alone.

    Without a ProbeRTT they are no model of the path: the short sawtooth of a small window looks
    like probes. Of two of one name, the law that one shows is that of both, or else the name's.
    """
    ours, theirs = (
        _named(side, name) if name in ROOTS and _only_cycles(side) else side
        for side, name in zip((test, reference), by_name, strict=True)
    )
    (name, other), words = by_name, {ours[GROWTH].word, theirs[GROWTH].word} - {""}
    if name == other and name in ROOTS and len(words) < 2 and words <= {*ROOTS}:
        shared = next(iter(words), name)
        ours, theirs = (
            _named(side, shared) if _shows_none(side) else side for side in (ours, theirs)
        )
    return ours, theirs


def of_laws(*sides: Parameters) -> set[str]:
    """What differs because the laws of two windows do: everything, if one models the path; of
    CUBIC and Reno the slope, and β where it is that of each law."""
    words = [side[GROWTH].word for side in sides]
    if PROBING in words:
        return {*PARAMETERS, *RULES} - {GROWTH}
    usual = all(
        abs(side[DECREASE].value - USUAL_BETAS[word]) < NEAR_BETA
        for side, word in zip(sides, words, strict=True)
    )
    return {INCREASE, DECREASE} if usual else {INCREASE}


def _law_of(side: Parameters, by_name: str) -> str:
    """The law of one of two sides; "" if it may be a model of the path, or something else."""
    word = side[GROWTH].word
    if _models_path(side):
        return PROBING
    if by_name or word == PROBING or _probes_for_rtt(side):
        return by_name
    return word if word in ROOTS else OTHER


def _named(side: Parameters, governing: str) -> Parameters:
    """A side with the name of its law, which its window may hide."""
    growth = Estimate(GROWTH, math.nan, word=governing)
    return Parameters(side.label, [growth if e.name == GROWTH else e for e in side.values()])


def _only_cycles(side: Parameters) -> bool:
    return side[GROWTH].word == PROBING and not _probes_for_rtt(side)


def _shows_none(side: Parameters) -> bool:
    return not (side[GROWTH].known or side["probe_up_gain"].known)


def _models_path(side: Parameters) -> bool:
    """Whether it is constant or probes in cycles, and empties its queue for a ProbeRTT."""
    word = side[GROWTH].word
    return (word == PROBING or (not word and _is_held(side))) and _probes_for_rtt(side)


def _is_held(side: Parameters) -> bool:
    return CAP in side and side[CAP].known and not is_seldom(side[CAP])


def _probes_for_rtt(side: Parameters) -> bool:
    """Whether it empties its queue every few seconds, as BBR does and flow control does not."""
    shortest_s, longest_s = PROBE_RTT_EVERY_S
    every_s = side["probe_rtt_interval_s"]
    seen_s = [float(run_s) for run_s in shown(every_s)]
    if seen_s and max(seen_s) > REGULAR * min(seen_s):
        return False
    often = "probe_rtt" in side and side["probe_rtt"].word == "often"
    return often or shortest_s <= every_s.value <= longest_s
