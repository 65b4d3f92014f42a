"""An implementation beside the kernel's in the same places, over all settings of a sweep.

The margin is a tenth, as in `qbkit.metrics.verdicts.equivalence`. An implementation *takes more*
(or *less*) if its mean throughput differs from the kernel's by more than that, and the 95 %
interval of the difference excludes zero. It is *like the kernel's* if the whole interval lies
within the margin and its conformance is less than a tenth below the noise floor. If the interval
lies within the margin but the conformance does not, it takes as much in another way. Otherwise the
trials do not settle the question.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from qbkit.metrics.envelopes.points import MIN_POINTS
from qbkit.metrics.maps.cells import POINTS
from qbkit.metrics.maps.interactions import FIRST, SEED
from qbkit.metrics.verdicts.equivalence import MARGIN
from qbkit.metrics.verdicts.words import Kind

Z_95 = 1.96


@dataclass(frozen=True)
class Difference:
    """An implementation beside the kernel's in the same places, mean over all settings."""

    mbps: float
    """Its throughput minus that of the kernel's."""
    reach_mbps: float
    """Half the width of the 95 % interval of that; NaN for single trials."""
    reference_mbps: float
    conformance: float
    noise_floor: float

    @property
    def ln_ratio(self) -> float:
        """ln of its throughput over that of its competitor, on a link that both fill.

        The kernel's two flows share that link alike. Infinite where nothing is left for the other.
        """
        mine, other = self.reference_mbps + self.mbps, self.reference_mbps - self.mbps
        return (
            math.log(mine / other) if min(mine, other) > 0 else math.copysign(math.inf, self.mbps)
        )

    @property
    def kind(self) -> Kind:
        """As of a verdict."""
        margin_mbps = MARGIN * self.reference_mbps
        if math.isnan(self.reach_mbps):
            return "open"
        if abs(self.mbps) > max(margin_mbps, self.reach_mbps):
            return "more" if self.mbps > 0 else "less"
        if not abs(self.mbps) + self.reach_mbps < margin_mbps:
            return "open"
        return "like" if self.conformance > self.noise_floor - MARGIN else "other"

    def __str__(self) -> str:
        size = f"{abs(self.mbps):.1f} Mbit/s"
        if self.kind in ("like", "other"):
            return "takes as much as the kernel's"
        if self.kind == "open":
            side = "more" if self.mbps > 0 else "less"
            known = not math.isnan(self.reach_mbps)
            reach = f"± {self.reach_mbps:.1f}" if known else "with one trial"
            return f"takes {size} {side}, {reach}"
        return f"takes {size} {self.kind} than the kernel's"


def differences(cube: xr.Dataset, found: xr.Dataset) -> dict[str, Difference]:
    """The difference of each implementation that shares a setting with the reference.

    ``found`` is the conformance map of the cube. Throughput is that of the operating points, as in
    the map. Settings count alike. The variances of their means, over the trials of each side, add
    up.
    """
    mbps = _trial_means(cube)
    mean, variance = mbps.mean(SEED), mbps.var(SEED, ddof=1) / mbps.count(SEED)
    reference = {FIRST: found.attrs["reference"]}
    apart = mean - mean.sel(reference, drop=True)
    shared = apart.notnull()
    settings = [dim for dim in apart.dims if dim != FIRST]
    both = xr.where(shared, variance + variance.sel(reference, drop=True), 0.0)
    table = xr.Dataset(
        {
            "mbps": apart.mean(settings),
            "reach_mbps": Z_95 * np.sqrt(both.sum(settings, skipna=False)) / shared.sum(settings),
            "reference_mbps": mean.sel(reference, drop=True).where(shared).mean(settings),
            "conformance": found.conformance.mean(settings),
            "noise_floor": found.noise_floor.mean(settings),
        }
    )
    rows = table.sel({FIRST: found[FIRST]}).to_dataframe()[list(table.data_vars)]
    return {str(row.Index): Difference(*row[1:]) for row in rows.itertuples() if row[1] == row[1]}


def _trial_means(cube: xr.Dataset) -> xr.DataArray:
    """Mean throughput of the operating points of each trial; NaN where it has too few."""
    delay_ms, mbps = (cube[name].isel(flow=0) for name in POINTS)
    known = delay_ms.notnull()
    means = mbps.where(known).mean("point").where(known.sum("point") >= MIN_POINTS)
    return means if SEED in means.dims else means.expand_dims(SEED)
