"""What the published data say of families at 100 Mbit/s, beside the same buffers at 20 Mbit/s."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.atlas.claims.family import BUFFER, RTT, Family, at
from qbkit.metrics.maps.interactions import FIRST

Places = tuple[float, float, float]
"""A number at 100 Mbit/s, at 20 Mbit/s and 10 ms, and at 20 Mbit/s and 50 ms."""


@dataclass(frozen=True)
class Faster:
    """A family at 100 Mbit/s and one RTT (``fast``), and at 20 Mbit/s.

    With 10 ms the fast link holds as many packets as the slow one with 50 ms.
    """

    fast: Family
    slow: Family
    folder: Path
    """Of the published data."""

    @property
    def names(self) -> list[str]:
        """The implementations, without the reference."""
        return self.fast.names

    @cached_property
    def conformances(self) -> xr.DataArray:
        """Conformance by implementation and place, mean over the buffers of the fast link."""
        return _by_place(self.fast.map.conformance, self.slow.map.conformance)

    @cached_property
    def shares(self) -> xr.DataArray:
        """Share of the link by implementation and place, mean over seeds and buffers."""
        return _by_place(*(family.shares.mean("seed") for family in (self.fast, self.slow)))

    def conformance(self, name: str) -> Places:
        """The conformance of an implementation."""
        return _places(self.conformances, name)

    def share(self, name: str) -> Places:
        """The share of an implementation."""
        return _places(self.shares, name)

    def takers(self, least: float) -> list[str]:
        """The implementations whose share at 100 Mbit/s is at least that, by name."""
        return sorted(name for name in self.names if self.share(name)[0] >= least)

    def share_with(self, name: str, buffer_bdp: float) -> float:
        """The share of an implementation at 100 Mbit/s with one buffer, mean over seeds."""
        return self.fast.share(name, buffer_bdp=buffer_bdp)

    def trials(self, name: str, buffer_bdp: float) -> int:
        """How many trials of an implementation at 100 Mbit/s with one buffer have a result."""
        return int(self.fast.shares.sel({FIRST: name, BUFFER: buffer_bdp}).count())

    def takers_with(self, least: float, buffer_bdp: float) -> list[str]:
        """The implementations whose share with one buffer is at least that, by name."""
        return sorted(name for name in self.names if self.share_with(name, buffer_bdp) >= least)

    def moved(self, buffer_bdp: float, other_bdp: float, least: float) -> list[str]:
        """The implementations whose shares with two buffers differ by at least that, by name."""
        here, there = buffer_bdp, other_bdp
        apart = {n: abs(self.share_with(n, here) - self.share_with(n, there)) for n in self.names}
        return sorted(name for name, difference in apart.items() if difference >= least)

    def between_mbps(self, name: str, buffer_bdp: float, begin_s: float, end_s: float) -> float:
        """Throughput at 100 Mbit/s in a part of the trials with one buffer, mean over seeds."""
        mbps = qb.metrics.throughput_between_mbps(self.fast.cube, begin_s, end_s).isel(flow=0)
        return float(mbps.sel({FIRST: name, BUFFER: buffer_bdp}).mean())

    def train_packets(self, name: str) -> float:
        """Length of the train of the median packet at 100 Mbit/s, alone on the link."""
        return float(self._trains_packets[name])

    @cached_property
    def _trains_packets(self) -> pd.Series:
        table = pd.read_csv(self.folder / "checks/trains_faster.csv", index_col="flow")
        return table.train_packets_p50

    def apart(self, place: int) -> float:
        """Mean absolute difference of the shares from those at a place of 20 Mbit/s (1 or 2)."""
        shares = self.shares.sel({FIRST: self.names})
        return float(abs(shares.isel(place=0) - shares.isel(place=place)).mean())

    def apart_from(self, other: Faster) -> float:
        """The same between the shares at 100 Mbit/s here and in other buffers."""
        here, there = (each.shares.isel(place=0).sel({FIRST: self.names}) for each in (self, other))
        return float(abs(here - there).mean())

    def spread(
        self, name: str, between_s: tuple[float, float] | None = None, **where: float
    ) -> tuple[float, float]:
        """The least and the largest share of an implementation at 100 Mbit/s in a trial.

        Of the part ``between_s`` of each trial, or else of whole trials; with the buffer
        ``buffer_bdp``, or else with any.
        """
        shares = self._shares_in(between_s) if between_s else self.fast.shares
        mine = at(shares, **where).sel({FIRST: name})
        return float(mine.min()), float(mine.max())

    def in_flight_mib(self, name: str, *, least_bdp: float) -> list[float]:
        """Mean throughput times mean RTT of each trial at 100 Mbit/s, from one buffer on."""
        trials = self.fast.cube.isel(flow=0).sel({FIRST: name, BUFFER: slice(least_bdp, None)})
        bits = trials.throughput_mbps * 1e6 * trials.rtt_mean_ms * 1e-3
        return [float(each) for each in (bits / 8 / 2**20).values.flat]

    def _shares_in(self, between_s: tuple[float, float]) -> xr.DataArray:
        return qb.metrics.shares(self.fast.cube, between_s).isel(flow=0)

    def beyond_the_kernels(self, buffer_bdp: float) -> list[str]:
        """The implementations whose share in each trial is beyond those of the kernel's, by name.

        Those of the kernel's are of its own flows beside each other, with the same buffer.
        """
        low, high = self.spread(f"tcp:{self.fast.name}", buffer_bdp=buffer_bdp)
        spreads = {name: self.spread(name, buffer_bdp=buffer_bdp) for name in self.names}
        return sorted(name for name, (least, most) in spreads.items() if least > high or most < low)


def _by_place(fast: xr.DataArray, slow: xr.DataArray) -> xr.DataArray:
    """Both links, the slow one at each of its RTTs, by place; means over the fast one's buffers.

    Where the fast link has no result, the slow one's does not count either.
    """
    same = slow.sel({BUFFER: fast[BUFFER], FIRST: fast[FIRST]}).where(fast.notnull())
    places = [fast, *(same.sel({RTT: rtt_ms}, drop=True) for rtt_ms in same[RTT].values)]
    return xr.concat(places, "place").mean(BUFFER)


def _places(values: xr.DataArray, name: str) -> Places:
    fast, near, far = values.sel({FIRST: name}).values.tolist()
    return fast, near, far
