"""What the published data say of trials of 120 s, beside those of 60 s in the same settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import xarray as xr

from qbkit.atlas.claims.family import BUFFER, RTT, Family
from qbkit.metrics.maps.interactions import FIRST


@dataclass(frozen=True)
class Longer:
    """A family in trials of 120 s (``long``), and in trials of 60 s in these settings and more."""

    long: Family
    short: Family

    @cached_property
    def conformances(self) -> xr.DataArray:
        """Conformance by length of the trials, the shorter first, implementation and buffer."""
        return self._by_length(lambda family: family.map.conformance)

    @cached_property
    def shares(self) -> xr.DataArray:
        """Share of the link by the same, mean over seeds."""
        return self._by_length(lambda family: family.shares.mean("seed"))

    def floors(self, buffer_bdp: float) -> list[float]:
        """The noise floor in a buffer by length."""
        floors = self._by_length(lambda family: family.map.noise_floor)
        return [float(floor) for floor in floors.isel({FIRST: 0}).sel({BUFFER: buffer_bdp})]

    @property
    def unsettled_cells(self) -> list[int]:
        """In how many of these cells an implementation, the reference too, does not settle."""
        cells = self._by_length(lambda family: family.unsettled)
        return [int(count) for count in cells.sum([FIRST, BUFFER])]

    @property
    def certain_cells(self) -> list[int]:
        """In how many of them an implementation differs from the kernel's with p below 0.01."""
        cells = self._by_length(lambda family: family.map.p_value < 0.01)
        return [int(count) for count in cells.sum([FIRST, BUFFER])]

    @property
    def apart(self) -> float:
        """Mean absolute difference of the conformances of both lengths."""
        return float(abs(self.conformances.diff("length")).mean())

    @property
    def shares_apart(self) -> float:
        """The same of the shares, without the reference."""
        shares = self.shares.sel({FIRST: self.long.names})
        return float(abs(shares.diff("length")).mean())

    def _by_length(self, of: Callable[[Family], xr.DataArray]) -> xr.DataArray:
        """Both lengths, in the settings and with the implementations of the longer trials."""
        long = of(self.long)
        same = of(self.short).sel({each: long[each] for each in (FIRST, BUFFER, RTT)})
        return xr.concat([same, long], "length").squeeze(RTT, drop=True)
