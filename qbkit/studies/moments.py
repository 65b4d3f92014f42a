"""When a cause shows in a run of a lone flow: the moment, and the seconds around it."""

from __future__ import annotations

from typing import NamedTuple

import xarray as xr

from qbkit.metrics.parameters.connection import Connection
from qbkit.metrics.parameters.interruptions import outages_s, pauses_s
from qbkit.metrics.parameters.marks import heard_s
from qbkit.metrics.parameters.probe_path import SETTLED_S, ProbePath
from qbkit.metrics.parameters.reductions import window_reductions_of
from qbkit.metrics.parameters.relations import AT_START, OF_MARKS
from qbkit.metrics.parameters.rules import RULES, START, STEADY
from qbkit.metrics.parameters.start import start_of

SHOWN_AT_START = (*AT_START, "pacing", "slow_start_exit")
START_S = 4.0
AROUND_LOSS_S = (-2.0, 10.0)
"""Seconds before and after a window reduction: CUBIC is back within them at 20 Mbit/s, 50 ms."""


BEFORE_AFTER_S = (-2.0, 4.0)
"""The same for the end of a pause or an outage."""
LOSS = "a loss after slow start"


class Moment(NamedTuple):
    """A time (s), what happens then, and the seconds that show it."""

    at_s: float
    words: str
    span_s: tuple[float, float]


def moment_of(cause: str, run: xr.Dataset, test: Connection) -> Moment:
    """When a cause of the test shows in its run.

    On a path that probes (`ProbePath`), as the rule of the cause says. Elsewhere at the start, or
    at the test's first window reduction after slow start; without one, in the middle of the run.
    """
    if path := ProbePath.of(run):
        words = RULES[cause].moment if cause in RULES else STEADY
        at_s, span_s = path.around(words)
        return Moment(at_s, words, span_s)
    if interrupted := _interruption(cause, run, test):
        at_s, words = interrupted
        return Moment(at_s, words, (max(at_s + BEFORE_AFTER_S[0], 0.0), at_s + BEFORE_AFTER_S[1]))
    if cause in SHOWN_AT_START:
        return Moment(0.0, START, (0.0, START_S))
    settled_s = start_of(test).settled_s
    reductions = window_reductions_of(test, settled_s + SETTLED_S)
    reductions = reductions or window_reductions_of(test, settled_s)
    end_s = float(test.grid_s[-1])
    if not reductions:
        return Moment(end_s / 2, STEADY, (end_s / 3, 2 * end_s / 3))
    at_s = reductions[0].begin_s
    before_s, after_s = AROUND_LOSS_S
    return Moment(at_s, LOSS, (max(at_s + before_s, 0.0), at_s + after_s))


def _interruption(cause: str, run: xr.Dataset, test: Connection) -> tuple[float, str] | None:
    """When the first pause, outage or mark ends after which a cause shows; None for others."""
    if cause in ("kept_after_pause", "rate_after_pause"):
        ends_s = [end_s for _, end_s in pauses_s(test)]
    elif cause == "kept_after_outage":
        ends_s = [begin_s + length_s for begin_s, length_s in outages_s(run)]
    elif cause in OF_MARKS:
        settled_s = start_of(test).settled_s
        ends_s = [at_s for at_s in heard_s(test, run) if at_s > settled_s]
    else:
        return None
    return (ends_s[0], RULES[cause].moment) if ends_s else None
