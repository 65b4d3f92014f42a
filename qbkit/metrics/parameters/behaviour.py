"""Behaviour of a lone sender, pooled over its runs: see `qbkit.metrics.parameters.rules`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from qbkit.metrics.parameters import model
from qbkit.metrics.parameters.between_losses import between_losses
from qbkit.metrics.parameters.connection import Connection, observe
from qbkit.metrics.parameters.estimates import Estimate, Parameters
from qbkit.metrics.parameters.inference import infer, samples_of
from qbkit.metrics.parameters.interruptions import after_interruptions
from qbkit.metrics.parameters.laws import CAP, SIGNAL
from qbkit.metrics.parameters.marks import kept_after_marks, signal_of
from qbkit.metrics.parameters.probe_path import ProbePath, response
from qbkit.metrics.parameters.reductions import rounds_of_loss, window_reductions_of
from qbkit.metrics.parameters.rules import RULES
from qbkit.metrics.parameters.start import shows_pacing, start_of
from qbkit.traces.run.attributes import changes

SEEN = ("often",)
"""Words for what half of the runs show, though others do not."""


def observed(
    alone: Sequence[xr.Dataset],
    probing: Sequence[xr.Dataset] = (),
    interrupted: Sequence[xr.Dataset] = (),
) -> Parameters:
    """Parameters and behaviour of flow 0: alone on its link, on a `ProbePath`, and interrupted.

    What it does on its link counts, before what it does elsewhere. Without a run on its link, the
    first seconds of a `ProbePath` are one. Raises MetricError as `infer` does.
    """
    paths = [(run, ProbePath.of(run)) for run in probing]
    links = [model.within(observe(run), 0.0, path.fall_s) for run, path in paths if path]
    seen = [observe(run) for run in alone] or links
    found = infer([*alone] or links)
    short = [] if alone else ["probe_rtt_interval_s"]  # the first seconds hold one at most
    if not any(shows_pacing(c, start_of(c)) for c in seen):
        short.append("pacing")
    known = [e for e in found.values() if e.name not in RULES]
    kept = [Estimate(e.name, math.nan) if e.name in short else e for e in known]
    after = of_samples([after_interruptions(observe(run), run) for run in interrupted])
    each = zip(behaviour_of(alone), behaviour_of(probing), after, strict=True)
    shown = [next((e for e in elsewhere if e.known), elsewhere[0]) for elsewhere in each]
    return Parameters(found.label, [*kept, *shown])


def behaviour_of(runs: Sequence[xr.Dataset]) -> list[Estimate]:
    """Every behaviour of flow 0, alone in each run; unknown where no run shows it."""
    return of_samples([_samples_of(observe(run), run) for run in runs])


def _samples_of(c: Connection, run: xr.Dataset) -> dict[str, float | str]:
    """The behaviour in one run. What marks leave of a window is seen, and no cap where they hold
    it."""
    path = ProbePath.of(run)
    if path is None and changes(run):
        # Neither what is in flight nor a rate has a measure where the path's own change.
        found: dict[str, float | str] = {"rounds_of_loss": rounds_of_loss(c, start_of(c).settled_s)}
    else:
        found = dict(samples_of_path(c, path))
    kept = kept_after_marks(c, run)
    signal = signal_of(c, run)
    if signal == "marks":
        found.pop(CAP, None)
    if signal and path is None:
        found[SIGNAL] = signal
    return {**found, "kept_after_mark": float(np.median(kept))} if len(kept) else found


def of_samples(found: Sequence[Mapping[str, float | str]]) -> list[Estimate]:
    """The estimate of each behaviour, from the samples of several connections."""
    pooled = {name: [each.get(name, math.nan) for each in found] for name in RULES}
    return [_estimate(name, samples) for name, samples in pooled.items()]


def samples_of_path(c: Connection, path: ProbePath | None) -> Mapping[str, float | str]:
    """Of one run: startup on the deep buffer of a probe path only, where it can show."""
    if path is None:
        settled_s = start_of(c).settled_s
        reductions = window_reductions_of(c, settled_s)
        limited = samples_of(c)["limited_percent"]
        return {
            **model.steady(c, settled_s),
            **model.probe_rtts(c, [(settled_s, float(c.grid_s[-1]))]),
            **between_losses(c, reductions, float(limited)),
            "rounds_of_loss": rounds_of_loss(c, settled_s),
        }
    first = model.within(c, 0.0, path.fall_s)
    settled_s = start_of(first).settled_s
    _, *others = path.spans
    found = model.steady(first, settled_s)
    after_burst = model.steady(model.within(c, *path.spans[-1]), 0.0)
    if found and after_burst:  # a bound that a loss has set may hold from then on
        found["cruise_part"] = min(side["cruise_part"] for side in (found, after_burst))
    return {
        **found,
        **model.startup(first),
        **model.probe_rtts(c, [(settled_s, path.fall_s), *others]),
        **response(c, path),
    }


def _estimate(name: str, samples: Sequence[float | str]) -> Estimate:
    """The median of the runs and their range; of words, the most common one."""
    runs = tuple(samples)
    words = Counter(value for value in samples if isinstance(value, str))
    if words:
        seen = [(word, words[word]) for word in SEEN if 2 * words[word] >= words.total()]
        word, count = [*seen, *words.most_common(1)][0]
        return Estimate(name, math.nan, samples=count, word=word, runs=runs)
    values = np.array([*samples], dtype=float)
    values = values[np.isfinite(values)]
    if not len(values):
        return Estimate(name, math.nan)
    low, high = (float(values.min()), float(values.max())) if len(values) > 1 else (math.nan,) * 2
    return Estimate(name, float(np.median(values)), low, high, len(values), runs=runs)
