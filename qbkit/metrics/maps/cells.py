"""The conformance map of a sweep's cube: each implementation in each setting."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.envelopes.conformance import pooled_numbers
from qbkit.metrics.envelopes.envelope import DEFINITIONS, definition_of, envelope
from qbkit.metrics.envelopes.points import MIN_POINTS, operating_points
from qbkit.metrics.envelopes.trials import Trials
from qbkit.metrics.maps.interactions import FIRST, SEED, require_dimensions
from qbkit.metrics.maps.kept import kept_map
from qbkit.metrics.maps.significance import false_discovery, p_over_settings
from qbkit.metrics.verdicts.equivalence import mean_differences
from qbkit.metrics.verdicts.permutation import deal_p_values
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.schema import named

CONFIDENCE = 0.95
POINTS = ("point_delay_ms", "point_throughput_mbps")
MAP = {
    "conformance": named("1", "conformance of one trial with one of the reference"),
    "conformance_low": named("1", "lower end of its 95 % interval"),
    "conformance_high": named("1", "upper end of its 95 % interval"),
    "noise_floor": named("1", "conformance of one trial of the reference with another"),
    "conformance_pooled": named("1", "conformance of the pooled envelopes"),
    "deviation": named("1", "deviation"),
    "conformance_t": named("1", "Conformance-T"),
    "delta_throughput_mbps": named("Mbit/s", "Δ-throughput, envelope above the reference's"),
    "delta_delay_ms": named("ms", "Δ-delay, envelope above the reference's"),
    "mean_throughput_difference_mbps": named("Mbit/s", "mean throughput minus the reference's"),
    "mean_delay_difference_ms": named("ms", "mean queueing delay minus the reference's"),
    "p_value": named("1", "p of the permutation test"),
    "trials": named("1", "trials of the implementation"),
    "reference_trials": named("1", "trials of the reference"),
}
"""Variable of a map → its attributes; `qbkit.metrics.verdicts.assessment` names the sources."""


class _Comparison(NamedTuple):
    """Numbers of a cell, and the p-values of all its relabellings (none below 2 trials)."""

    figures: dict[str, float]
    deals: FloatArray


def conformance_map(cube: xr.Dataset, reference: str, *, definition: str = "imc22") -> xr.Dataset:
    """Conformance and deviation of each implementation in each setting (IMC'22, Figure 2).

    ``cube`` is that of a sweep with the implementation as ``flows.0`` and trials along ``seed``;
    each implementation is compared with the one called ``reference``, setting by setting. The
    result has the variables of `MAP` and ``q_value``, which controls false discoveries over all
    cells, over ``flows.0`` (without the reference) and the other swept fields. Over ``flows.0``
    alone it has ``p_value_over_settings`` and ``q_value_over_settings``
    (`qbkit.metrics.maps.significance`). Cells without runs of both sides are NaN. A map that the
    cube keeps of the same points (`qbkit.metrics.maps.kept`) is not computed again. Raises
    MetricError if the cube has no such dimension or reference, and for ``quicbench``, which samples
    packets.
    """
    _require_points(definition)
    kept = kept_map(cube, reference, definition)
    if kept is not None:
        return kept
    every = cell_trials(cube)
    names = [str(name) for name in every[FIRST].values]
    if reference not in names:
        raise MetricError(f"the reference {reference} is not in the sweep: {', '.join(names)}")
    known = every.isel({FIRST: names.index(reference)}).values
    tests = every.isel({FIRST: [i for i, name in enumerate(names) if name != reference]})
    found = {name: np.full(tests.shape, np.nan) for name in MAP}
    deals: list[list[FloatArray]] = [[] for _ in tests[FIRST]]
    for place in np.ndindex(*tests.shape):
        ours, theirs = tests.values.item(place), known.item(place[1:])
        if ours and theirs:
            cell = _compare(ours, theirs, definition)
            for key, value in cell.figures.items():
                found[key][place] = value
            deals[place[0]] += [cell.deals] if len(cell.deals) else []
    rows = np.array([p_over_settings(each) for each in deals])
    variables = {
        **{key: (tests.dims, found[key], MAP[key]) for key in MAP},
        "q_value": (tests.dims, false_discovery(found["p_value"]), named("1", "q of the cell")),
        "p_value_over_settings": (FIRST, rows, named("1", "p over all settings")),
        "q_value_over_settings": (FIRST, false_discovery(rows), named("1", "q over all settings")),
    }
    return xr.Dataset(variables, tests.coords, {"reference": reference, "definition": definition})


def cell_trials(cube: xr.Dataset) -> xr.DataArray:
    """List of the operating points (n, 2) of each trial, by implementation and setting.

    Dimensions are ``flows.0`` and the swept fields except ``seed``; cells without a run have an
    empty list.
    """
    require_dimensions(cube, FIRST)
    dims = [FIRST, *(d for d in cube["done"].dims if d not in (FIRST, SEED))]
    found = np.full([cube.sizes[d] for d in dims], None, dtype=object)
    delay_ms, mbps = (cube[name].isel(flow=0).transpose(*dims, ...).values for name in POINTS)
    for place in np.ndindex(*found.shape):
        found[place] = _trials(delay_ms[place], mbps[place])
    return xr.DataArray(found, {d: cube[d].values for d in dims}, dims)


def cell_envelopes(cube: xr.Dataset, *, definition: str = "imc22") -> xr.DataArray:
    """`Envelope` of all trials of each implementation in each setting; None without a trial.

    Dimensions are those of `cell_trials`. Raises MetricError for ``quicbench``.
    """
    _require_points(definition)
    trials = cell_trials(cube)
    found = np.full(trials.shape, None, dtype=object)
    for place in np.ndindex(*found.shape):
        mine = trials.values[place]
        found[place] = envelope(mine, definition=definition) if mine else None
    return trials.copy(data=found).assign_attrs(definition=definition)


def hull_table(envelopes: xr.DataArray) -> xr.Dataset:
    """Vertices of the hulls of `cell_envelopes`, to draw or compare them elsewhere.

    ``hull_delay_ms`` and ``hull_throughput_mbps`` are the vertices, counter-clockwise, over the
    dimensions of the envelopes, ``hull`` (one per cluster) and ``vertex``; NaN after the last one.
    """
    hulls = {place: e.hulls for place, e in np.ndenumerate(envelopes.values) if e}
    most = max((len(each) for each in hulls.values()), default=0)
    longest = max((len(hull) for each in hulls.values() for hull in each), default=0)
    vertices = np.full((*envelopes.shape, most, longest, 2), np.nan)
    for place, each in hulls.items():
        for number, hull in enumerate(each):
            vertices[(*place, number, slice(len(hull)))] = hull
    dims = (*envelopes.dims, "hull", "vertex")
    delay = named("ms", "queueing delay of the hulls") | envelopes.attrs
    mbps = named("Mbit/s", "throughput of the hulls") | envelopes.attrs
    variables = {
        "hull_delay_ms": (dims, vertices[..., 0], delay),
        "hull_throughput_mbps": (dims, vertices[..., 1], mbps),
    }
    return xr.Dataset(variables, envelopes.coords)


def _require_points(definition: str) -> None:
    """Raise MetricError for a definition that needs other points than those that a cube holds."""
    if definition_of(definition).sample is not operating_points:
        usable = ", ".join(n for n, d in DEFINITIONS.items() if d.sample is operating_points)
        raise MetricError(
            f"the definition {definition!r} samples the packets of a run, and a sweep keeps only "
            f"points of every 10 RTTs; choose one of {usable}"
        )


def _compare(tests: list[FloatArray], references: list[FloatArray], definition: str) -> _Comparison:
    trials = Trials.of(tests, references, definition_of(definition))
    whole, known = (envelope(side, definition=definition) for side in (tests, references))
    value = trials.conformance()
    low, high = value.interval(CONFIDENCE, 0.0, 1.0)
    delay, throughput = mean_differences(trials)
    enough = min(trials.tests, trials.references) > 1
    deals = deal_p_values(trials)[0] if enough else np.zeros(0)
    figures = {
        "conformance": value.value,
        "conformance_low": low,
        "conformance_high": high,
        "noise_floor": trials.noise_floor().value,
        **pooled_numbers(whole, known),
        "mean_throughput_difference_mbps": throughput.value,
        "mean_delay_difference_ms": delay.value,
        "p_value": float(deals[0]) if enough else np.nan,
        "trials": trials.tests,
        "reference_trials": trials.references,
    }
    return _Comparison(figures, deals)


def _trials(delay_ms: FloatArray, mbps: FloatArray) -> list[FloatArray]:
    """Operating points of each trial of one implementation in one setting.

    The arguments have the points of a trial, or of each trial (a row each).
    """
    trials = [
        np.column_stack([d[np.isfinite(d)], t[np.isfinite(d)]]).astype(float)
        for d, t in zip(np.atleast_2d(delay_ms), np.atleast_2d(mbps), strict=True)
    ]
    return [t for t in trials if len(t) >= MIN_POINTS]
