"""Interactions in the cube of a sweep: which implementation wins against which."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.maps.families import family
from qbkit.metrics.maps.shares import Span, shares, sweep_of
from qbkit.spec.flow import controller_of
from qbkit.spec.sweep import unlike_sides
from qbkit.traces.run.schema import named

FIRST, SECOND, SEED = "flows.0", "flows.1", "seed"
"""Dimensions of a cube: the implementation under test, the other one, the trials."""
TRIAL = "trial"
"""Dimension of the trials of a pair, of all seeds and both orders."""


def pair_trials(cube: xr.Dataset, between_s: Span | None = None) -> xr.DataArray:
    """T_x / (T_x + T_y) of each trial of each pair of implementations.

    These are `shares` of the first two flows: of the part ``between_s`` (begin and end in seconds),
    or else of the whole trial, as in IMC'22, unless the sweep has a ``settle_s``. Dimensions are
    ``flows.0`` (x), ``flows.1`` (y), ``trial`` and the other swept fields. A run of y against x is
    a trial of x against y too, as 1 - its ratio, so a pair that was run in both orders has the
    trials of both. That holds if nothing else sets the two flows apart, such as a later start of
    the second one; otherwise a pair has the trials of its own order alone. NaN where there is no
    run. Both ``flows`` have all implementations, in one order.
    """
    require_dimensions(cube, FIRST, SECOND)
    seen = squared(shares(cube.isel(flow=slice(2)), between_s).isel(flow=0))
    if SEED not in seen.dims:
        seen = seen.expand_dims(SEED)
    swapped = 1 - seen.rename({FIRST: SECOND, SECOND: FIRST}).transpose(*seen.dims)
    sweep = sweep_of(cube)
    if unlike_sides(sweep.get("base", {}), sweep.get("sweep", {})):
        swapped = swapped.where(False)
    # Both flows of x against x are x: the other order would be the same trial once more.
    swapped = swapped.where(swapped[FIRST] != swapped[SECOND])
    ratio = xr.concat([seen, swapped], "order").stack({TRIAL: ["order", SEED]}, create_index=False)
    ratio = ratio.drop_vars(SEED, errors="ignore").dropna(TRIAL, how="all")
    return ratio.assign_attrs(units="1", long_name="throughput ratio").rename("throughput_ratio")


def squared(values: xr.DataArray) -> xr.DataArray:
    """The array with the implementations of both sides on both, in one order; NaN in new cells."""
    names = list(dict.fromkeys([*values[FIRST].values.tolist(), *values[SECOND].values.tolist()]))
    return values.reindex({FIRST: names, SECOND: names})


def throughput_ratios(cube: xr.Dataset, between_s: Span | None = None) -> xr.DataArray:
    """T_x / (T_x + T_y) of each pair of implementations, mean over trials (IMC'22, Figure 5).

    Dimensions are ``flows.0`` (x), ``flows.1`` (y) and the other swept fields; above 0.5, x takes
    more than y. For parts of trials and orders see `pair_trials`.
    """
    return pair_trials(cube, between_s).mean(TRIAL, keep_attrs=True)


def interactions(cube: xr.Dataset) -> xr.Dataset:
    """Throughput ratio of each pair with its interval, and how often the first one wins.

    Variables over ``flows.0`` (x), ``flows.1`` (y) and the other swept fields: ``throughput_ratio``
    is the mean over trials; ``throughput_ratio_low`` and ``_high`` are its 95 % interval by
    Student's t, within 0 and 1, NaN for a single trial; ``win_share`` is the share of trials in
    which x takes more (a draw is half a win), an estimate of P(x wins); ``trials`` is their number.
    """
    from scipy import special  # slow to load

    each = pair_trials(cube)
    ratio, trials = each.mean(TRIAL), each.count(TRIAL)
    several = trials.where(trials > 1)
    error = each.std(TRIAL, ddof=1) / np.sqrt(several)
    reach = error * xr.apply_ufunc(special.stdtrit, several - 1, 0.975)
    wins = ((each > 0.5) + 0.5 * (each == 0.5)).where(each.notnull()).mean(TRIAL)
    found = {
        "throughput_ratio": ratio.assign_attrs(each.attrs),
        "throughput_ratio_low": (ratio - reach).clip(0, 1),
        "throughput_ratio_high": (ratio + reach).clip(0, 1),
        "win_share": wins,
        "trials": trials,
    }
    return xr.Dataset(found)


def dominance(ratios: xr.DataArray) -> xr.DataArray:
    """Mean ratio of each implementation against all others, the most dominant first."""
    values = _square(ratios)
    np.fill_diagonal(values, np.nan)
    names = ratios[FIRST].values
    mean = mean_of_known(values, axis=1)
    order = np.argsort(-mean, kind="stable")
    attrs = named("1", "mean throughput ratio against the others")
    return xr.DataArray(mean[order], [(FIRST, names[order])], name="dominance", attrs=attrs)


def intransitive_triples(ratios: xr.DataArray, margin: float = 0.02) -> list[tuple[str, str, str]]:
    """Triples in which each beats the next, and the last beats the first.

    x beats y if its ratio is above 0.5 + ``margin``. With the lower ends of the intervals as
    ``ratios`` and no margin, x beats y where the interval excludes a draw. A tournament is
    transitive if and only if it has no cycle of three (Landau 1953), so longer cycles need no
    search.
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
    """Ratios of CUBIC (rows) against BBR (columns), with the expected ratio as an attribute.

    The expected ratio is that of tcp:cubic against tcp:bbr (IETF 118 slides). The coordinate
    ``reversed`` is True for pairs with the opposite winner. Raises MetricError if the sweep lacks
    either of the kernel's two.
    """
    names = [str(n) for n in ratios[FIRST].values]
    for needed in ("tcp:cubic", "tcp:bbr"):
        if needed not in names:
            raise MetricError(f"{needed}, which defines the expected ratio, is not in the sweep")
    cubic = [n for n in names if family(controller_of(n)) == "cubic"]
    bbr = [n for n in names if family(controller_of(n)) == "bbr"]
    part = ratios.sel({FIRST: cubic, SECOND: bbr})
    expected = float(ratios.sel({FIRST: "tcp:cubic", SECOND: "tcp:bbr"}))
    is_reversed = (part > 0.5) != (expected > 0.5)
    return part.assign_coords(reversed=is_reversed).assign_attrs(expected=expected)


def mean_of_known(values: npt.NDArray[np.float64], axis: int) -> npt.NDArray[np.float64]:
    """Mean of the values that are not NaN; NaN without any."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        return np.asarray(np.nanmean(values, axis=axis))


def _square(ratios: xr.DataArray) -> npt.NDArray[np.float64]:
    if set(ratios.dims) != {FIRST, SECOND}:
        more = ", ".join(str(d) for d in ratios.dims if d not in (FIRST, SECOND))
        raise MetricError(f"choose one value of {more} first; only pairs can be compared")
    names = ratios[FIRST].values.tolist()
    if sorted(names) != sorted(ratios[SECOND].values.tolist()):
        raise MetricError(
            f"{FIRST} and {SECOND} have different implementations; choose the same for both"
        )
    return ratios.sel({SECOND: names}).transpose(FIRST, SECOND).values.astype(float)


def require_dimensions(cube: xr.Dataset, *dims: str) -> None:
    """Raise MetricError for the first dimension that the cube lacks, with those that it has."""
    if not isinstance(cube, xr.Dataset):
        raise MetricError("this is no sweep; give a dataset that qb.load_sweep opens")
    for dim in dims:
        if dim not in cube.dims:
            known = ", ".join(str(d) for d in cube.dims)
            raise MetricError(f"the cube has no dimension {dim} to compare along; it has {known}")
