"""Maps over a sweep's cube: conformance of many implementations, and who wins against whom."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.conformance import conformance, conformance_t, deviation
from qbkit.metrics.envelope import Envelope, envelope
from qbkit.metrics.families import family
from qbkit.metrics.points import MIN_POINTS

FIRST, SECOND, SEED = "flows.0", "flows.1", "seed"
"""Dimensions of a cube: the implementation in question, the other one, the trials."""
MAP = {
    "conformance": ("1", "conformance"),
    "deviation": ("1", "deviation"),
    "conformance_t": ("1", "Conformance-T"),
    "delta_throughput_mbps": ("Mbit/s", "Δ-throughput"),
    "delta_delay_ms": ("ms", "Δ-delay"),
}


def conformance_map(cube: xr.Dataset, reference: str, *, definition: str = "imc22") -> xr.Dataset:
    """Conformance and deviation of each implementation in each setting (IMC'22, Figure 2).

    ``cube`` is a sweep's, with the implementation as ``flows.0``; ``reference`` is the one of them
    that the others are compared with, setting by setting. Trials lie along ``seed``. Variables:
    those of `MAP`, over ``flows.0`` and the other swept fields; NaN where a side has no run.
    Raises MetricError when the cube has no such dimension or reference.
    """
    return compare_cells(cell_envelopes(cube, definition), reference)


def cell_envelopes(cube: xr.Dataset, definition: str = "imc22") -> xr.DataArray:
    """The `Envelope` of each implementation in each setting of a cube, None without a trial.

    Dimensions as those of `conformance_map`.
    """
    _require(cube, FIRST)
    dims = [FIRST, *(d for d in cube["done"].dims if d not in (FIRST, SEED))]
    found = np.full([cube.sizes[d] for d in dims], None, dtype=object)
    for place in np.ndindex(*found.shape):
        found[place] = _envelope(cube.isel(dict(zip(dims, place, strict=True))), definition)
    coords = {d: cube[d].values for d in dims}
    return xr.DataArray(found, coords, dims, attrs={"definition": definition})


def compare_cells(envelopes: xr.DataArray, reference: str) -> xr.Dataset:
    """`conformance_map` of envelopes that were made before."""
    names = [str(name) for name in envelopes[FIRST].values]
    if reference not in names:
        raise MetricError(f"the reference {reference} is not in the sweep: {', '.join(names)}")
    known = envelopes.values[names.index(reference)]
    found = {name: np.full(envelopes.shape, np.nan) for name in MAP}
    for place in np.ndindex(*envelopes.shape):
        test, against = envelopes.values.item(place), known.item(place[1:])
        if test and against:
            for key, value in _compare(test, against).items():
                found[key][place] = value
    variables = {
        key: (envelopes.dims, values, {"units": MAP[key][0], "long_name": MAP[key][1]})
        for key, values in found.items()
    }
    attrs = {"reference": reference, **envelopes.attrs}
    return xr.Dataset(variables, envelopes.coords, attrs)


def hull_table(envelopes: xr.DataArray) -> xr.Dataset:
    """The hulls of `cell_envelopes` as numbers, for those who draw or compare them elsewhere.

    ``hull_delay_ms`` and ``hull_throughput_mbps`` are the vertices, counter-clockwise, over the
    dimensions of the envelopes, ``hull`` (one per cluster) and ``vertex``; NaN beyond the last.
    """
    hulls = {place: e.hulls for place, e in np.ndenumerate(envelopes.values) if e}
    most = max((len(each) for each in hulls.values()), default=0)
    longest = max((len(hull) for each in hulls.values() for hull in each), default=0)
    vertices = np.full((*envelopes.shape, most, longest, 2), np.nan)
    for place, each in hulls.items():
        for number, hull in enumerate(each):
            vertices[(*place, number, slice(len(hull)))] = hull
    dims = (*envelopes.dims, "hull", "vertex")
    delay = {"units": "ms", "long_name": "queueing delay of the hulls", **envelopes.attrs}
    mbps = {"units": "Mbit/s", "long_name": "throughput of the hulls", **envelopes.attrs}
    variables = {
        "hull_delay_ms": (dims, vertices[..., 0], delay),
        "hull_throughput_mbps": (dims, vertices[..., 1], mbps),
    }
    return xr.Dataset(variables, envelopes.coords)


def noise_floor_map(cube: xr.Dataset, reference: str, definition: str = "imc22") -> xr.DataArray:
    """Mean conformance of the reference's trials of one seed with those of the others, by setting.

    Two sets of trials of one implementation differ by chance alone, so no test can be expected to
    conform better. Dimensions: the swept fields but ``flows.0`` and ``seed``; NaN with one seed.
    """
    _require(cube, FIRST, SEED)
    mine = cube.sel({FIRST: [reference]})
    floors = []
    for seed in cube[SEED].values:
        one = cell_envelopes(mine.sel({SEED: [seed]}), definition)
        rest = cell_envelopes(
            mine.sel({SEED: [s for s in cube[SEED].values if s != seed]}), definition
        )
        pairs = [
            conformance(a, b) if a and b else np.nan
            for a, b in zip(one.values.ravel(), rest.values.ravel(), strict=True)
        ]
        floors.append(np.reshape(np.array(pairs), one.shape[1:]))
    mean = _mean_of_known(np.array(floors), axis=0)
    dims = [d for d in cube["done"].dims if d not in (FIRST, SEED)]
    attrs = {"units": "1", "long_name": "conformance of the reference with itself"}
    return xr.DataArray(mean, {d: cube[d] for d in dims}, dims, "noise_floor", attrs)


def _compare(test: Envelope, reference: Envelope) -> dict[str, float]:
    moved = conformance_t(test, reference)
    return {
        "conformance": conformance(test, reference),
        "deviation": deviation(test, reference),
        "conformance_t": moved.conformance,
        "delta_throughput_mbps": moved.delta_throughput_mbps,
        "delta_delay_ms": moved.delta_delay_ms,
    }


def _envelope(cell: xr.Dataset, definition: str) -> Envelope | None:
    """Envelope of an implementation's trials in one setting; None without a trial."""
    mine = cell.isel(flow=0)
    delay_ms = np.atleast_2d(mine["point_delay_ms"].values)
    mbps = np.atleast_2d(mine["point_throughput_mbps"].values)
    trials = [
        np.column_stack([d[np.isfinite(d)], t[np.isfinite(d)]]).astype(float)
        for d, t in zip(delay_ms, mbps, strict=True)
    ]
    trials = [t for t in trials if len(t) >= MIN_POINTS]
    return envelope(trials, definition) if trials else None


def throughput_ratios(cube: xr.Dataset) -> xr.DataArray:
    """T_x / (T_x + T_y) of each pair of implementations, mean over seeds (IMC'22, Figure 5).

    Dimensions ``flows.0`` (x), ``flows.1`` (y) and the other swept fields; > 0.5 where x takes more
    than y. A pair that was run in one order only fills the other: 1 - the ratio.
    """
    _require(cube, FIRST, SECOND)
    mbps = cube["throughput_mbps"]
    ratio = mbps.isel(flow=0) / mbps.sum("flow", skipna=False)
    if SEED in ratio.dims:
        ratio = ratio.mean(SEED)
    mirror = 1 - ratio.rename({FIRST: SECOND, SECOND: FIRST})
    ratio = ratio.combine_first(mirror.transpose(*ratio.dims))
    ratio.attrs = {"units": "1", "long_name": "throughput ratio"}
    return ratio.rename("throughput_ratio")


def dominance(ratios: xr.DataArray) -> xr.DataArray:
    """Mean ratio of each implementation against all others, the most dominant first."""
    values = _square(ratios)
    np.fill_diagonal(values, np.nan)
    names = ratios[FIRST].values
    mean = _mean_of_known(values, axis=1)
    order = np.argsort(-mean, kind="stable")
    attrs = {"units": "1", "long_name": "mean throughput ratio against the others"}
    return xr.DataArray(mean[order], [(FIRST, names[order])], name="dominance", attrs=attrs)


def cycles(ratios: xr.DataArray, margin: float = 0.02) -> list[tuple[str, str, str]]:
    """Triples of which each beats the next and the last the first: where order is not transitive.

    x beats y where its ratio is above 0.5 + ``margin``. A tournament is transitive if and only if
    it has no cycle of three (Landau 1953), so these are all that needs looking for.
    """
    beats = _square(ratios) > 0.5 + margin
    names = [str(n) for n in ratios[FIRST].values]
    found = []
    for x in range(len(names)):
        for y in range(x + 1, len(names)):
            for z in range(x + 1, len(names)):
                if z != y and beats[x, y] and beats[y, z] and beats[z, x]:
                    found.append((names[x], names[y], names[z]))
    return found


def expectations(ratios: xr.DataArray) -> xr.DataArray:
    """CUBIC (rows) against BBR (columns): the ratios beside what the kernel's two would share.

    The expected ratio is that of tcp:cubic against tcp:bbr (IETF 118 slides); ``subverted`` is True
    where the winner is another one. Raises MetricError when the kernel's are not in the sweep.
    """
    names = [str(n) for n in ratios[FIRST].values]
    for needed in ("tcp:cubic", "tcp:bbr"):
        if needed not in names:
            raise MetricError(f"{needed}, which tells what to expect, is not in the sweep")
    cubic = [n for n in names if family(n.partition(":")[2]) == "cubic"]
    bbr = [n for n in names if family(n.partition(":")[2]) == "bbr"]
    part = ratios.sel({FIRST: cubic, SECOND: bbr})
    expected = float(ratios.sel({FIRST: "tcp:cubic", SECOND: "tcp:bbr"}))
    subverted = (part > 0.5) != (expected > 0.5)
    return part.assign_coords(subverted=subverted).assign_attrs(expected=expected)


def _mean_of_known(values: npt.NDArray[np.float64], axis: int) -> npt.NDArray[np.float64]:
    """Mean of what is no NaN; NaN where nothing is known."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        return np.asarray(np.nanmean(values, axis=axis))


def _square(ratios: xr.DataArray) -> npt.NDArray[np.float64]:
    if set(ratios.dims) != {FIRST, SECOND}:
        more = ", ".join(str(d) for d in ratios.dims if d not in (FIRST, SECOND))
        raise MetricError(f"choose one value of {more} first; pairs are what is compared")
    return ratios.transpose(FIRST, SECOND).values.astype(float)


def _require(cube: xr.Dataset, *dims: str) -> None:
    for dim in dims:
        if dim not in cube.dims:
            known = ", ".join(str(d) for d in cube.dims)
            raise MetricError(f"the cube has no dimension {dim} to compare along; it has {known}")
