"""The numbers on which the outcome of an assessment rests, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from qbkit.metrics.envelopes.trials import Trials
from qbkit.metrics.verdicts import permutation
from qbkit.metrics.verdicts.words import CONFORMS, DIFFERS, SAME_TRIALS, same_runs


def reasons(outcome: str, trials: Trials, numbers: Mapping[str, Any], level: float) -> str:
    """The numbers on which an outcome rests, in a sentence."""
    a, n, m = numbers, trials.tests, trials.references
    own, floor = (interval_text(a[name]) for name in ("conformance_ci", "noise_floor_ci"))
    seen = (
        f"conformance {a['conformance']:.2f}{own}, noise floor {a['noise_floor']:.2f}{floor}, "
        f"mean throughput difference {a['mean_throughput_difference_mbps']:+.2f} Mbit/s, "
        f"mean delay difference {a['mean_delay_difference_ms']:+.2f} ms"
    )
    if same_runs(a["trials_of_both"], n, m):
        return f"{seen}; {SAME_TRIALS}"
    if permutation.smallest_p(n, m) > level:
        return f"{seen}; {n} and {m} trials are too few for a test"
    within = f"within {100 * a['margin']:.0f} % of the reference's"
    if outcome == CONFORMS:
        also = f"; a difference this small is detected (p = {a['p_value']:.2g})"
        small = also if a["p_value"] <= level else ""
        return f"{seen}, which is {within} (p = {a['p_equivalence']:.2g}){small}"
    if outcome == DIFFERS:
        return f"{seen} (p = {a['p_value']:.2g})"
    shifts = a["detectable_throughput_mbps"], a["detectable_delay_ms"]
    delay_ms, mbps = trials.means[n:].mean(axis=0)
    return (
        f"{seen} (p = {a['p_value']:.2g}); {n} and {m} trials detect {shifts[0]:.2g} Mbit/s "
        f"({100 * shifts[0] / mbps:.0f} %) or {shifts[1]:.2g} ms ({100 * shifts[1] / delay_ms:.0f} "
        f"%) four times in five, and do not show that the test is {within}"
    )


def sentence(words: str) -> str:
    """The words with a capital letter and a full stop."""
    return f"{words[:1].upper()}{words[1:]}."


def interval_text(limits: tuple[float, float], decimals: int = 2) -> str:
    """`` [low, high]`` with so many decimals; empty for NaN."""
    low, high = (f"{limit:.{decimals}f}" for limit in limits)
    return "" if math.isnan(limits[0]) else f" [{low}, {high}]"
