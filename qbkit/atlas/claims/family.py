"""What the published data say of a family of controllers: its tables, means and orders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import xarray as xr

import qbkit as qb
from qbkit.atlas.published import ConformanceSweep
from qbkit.metrics.maps.interactions import FIRST

BUFFER, RTT = "bottleneck.buffer_bdp", "bottleneck.rtt_ms"
FIELDS = {"buffer_bdp": BUFFER, "rtt_ms": RTT}
LATE_S = 40
"""From when on the last third of a conformance trial is."""


@dataclass(frozen=True)
class Family:
    """The published conformance sweep of a family of controllers, and its map."""

    sweep: ConformanceSweep
    buffers_bdp: tuple[float, ...] = ()
    """The buffers that count; () for all."""

    @property
    def name(self) -> str:
        """The family: ``cubic``."""
        return self.sweep.name.rpartition("/")[2]

    @cached_property
    def cube(self) -> xr.Dataset:
        """The cube of the sweep."""
        return self._that_count(self.sweep.cube)

    @cached_property
    def map(self) -> xr.Dataset:
        """Its conformance map against the kernel's controller; all buffers are judged together."""
        return self._that_count(self.sweep.map)

    def _that_count(self, values: xr.Dataset) -> xr.Dataset:
        return values.sel({BUFFER: list(self.buffers_bdp)}) if self.buffers_bdp else values

    @cached_property
    def shares(self) -> xr.DataArray:
        """The share of the link that an implementation gets beside the kernel's, by trial."""
        return qb.metrics.shares(self.cube).isel(flow=0)

    @property
    def names(self) -> list[str]:
        """The implementations, without the reference."""
        return self.sweep.implementations

    def of(self, name: str, quantity: str = "conformance") -> float:
        """A quantity of one implementation, mean over the settings."""
        return float(self.map[quantity].sel({FIRST: name}).mean())

    def leading(self, quantity: str, count: int) -> list[str]:
        """The implementations with the largest means over the settings of a quantity."""
        return sorted(self.names, key=lambda name: self.of(name, quantity), reverse=True)[:count]

    def cell(self, name: str, quantity: str = "conformance", **where: float) -> float:
        """A quantity of one implementation in one setting (``rtt_ms``, ``buffer_bdp``)."""
        return float(at(self.map[quantity], **where).sel({FIRST: name}))

    def mean(
        self, quantity: str = "conformance", *, without: tuple[str, ...] = (), **where: float
    ) -> float:
        """Mean over implementations and settings, or over one setting of a field."""
        kept = [name for name in self.names if name.partition(":")[0] not in without]
        return float(at(self.map[quantity], **where).sel({FIRST: kept}).mean())

    def by_buffer(self, quantity: str = "conformance", **more: Any) -> list[float]:
        """`mean` for each buffer, the shallowest first."""
        return [
            self.mean(quantity, buffer_bdp=bdp, **more) for bdp in self.map[BUFFER].values.tolist()
        ]

    def share(self, name: str, **where: float) -> float:
        """The share of an implementation in one setting, mean over the seeds."""
        return float(at(self.shares, **where).sel({FIRST: name}).mean())

    def throughput_mbps(self, name: str, flow: int, **where: float) -> float:
        """Mean throughput over the seeds: of the implementation (0) or of its competitor (1)."""
        mbps = at(self.cube.throughput_mbps, **where).sel({FIRST: name})
        return float(mbps.isel(flow=flow).mean("seed"))

    def late_mbps(self, name: str) -> float:
        """Throughput from `LATE_S` on minus the reference's, mean over seeds and settings."""
        late = qb.metrics.throughput_between_mbps(self.cube, LATE_S).isel(flow=0).mean("seed")
        return float((late.sel({FIRST: name}) - late.sel({FIRST: f"tcp:{self.name}"})).mean())

    @cached_property
    def unsettled(self) -> xr.DataArray:
        """Whether an implementation, the reference too, does not settle, by setting."""
        return ~self._that_count(self.sweep.settling).settles

    def unsettled_cells(self, **where: float) -> int:
        """In how many cells an implementation does not settle."""
        return int(at(self.unsettled, **where).sum())

    @property
    def latest_apart_mbps(self) -> float:
        """Largest difference between the last third of the trials and whole trials."""
        whole = {name: self.of(name, "mean_throughput_difference_mbps") for name in self.names}
        return max(abs(self.late_mbps(name) - value) for name, value in whole.items())

    def below(self, mbps: float, *, least_bdp: float) -> list[tuple[str, int]]:
        """Implementations and RTTs that get less than this in a buffer of ``least_bdp`` or more."""
        mine = self.cube.throughput_mbps.isel(flow=0).mean("seed")
        low = (mine < mbps).where(mine[BUFFER] >= least_bdp, False).any(BUFFER)
        found = low.stack(place=(FIRST, RTT))
        return sorted((str(name), int(rtt)) for name, rtt in found.place.values[found.values])

    def alike(self, shallow_bdp: float, deep_bdp: float, **where: float) -> tuple[int, int]:
        """Runs that are the same in both buffers, as the queue never fills the shallow one; all."""
        points = at(self.cube.point_delay_ms, **where)
        shallow, deep = (points.sel({BUFFER: bdp}, drop=True) for bdp in (shallow_bdp, deep_bdp))
        other = [dim for dim in shallow.dims if dim not in (FIRST, "seed")]
        same = ((shallow == deep) | (shallow.isnull() & deep.isnull())).all(other)
        return int(same.sum()), same.size

    @property
    def differing_cells(self) -> int:
        """Cells that differ from the kernel's, at a false discovery rate of 5 %."""
        return int((self.map.q_value <= 0.05).sum())

    @property
    def differing(self) -> int:
        """Implementations that differ over all settings, at a false discovery rate of 5 %."""
        return len(self.names) - len(self.like_the_kernel)

    @property
    def like_the_kernel(self) -> list[str]:
        """The implementations for which no difference over all settings is certain."""
        differs = self.map.q_value_over_settings <= 0.05
        return [name for name in self.names if not differs.sel({FIRST: name})]

    @property
    def all_differ(self) -> bool:
        """Whether each implementation differs over all settings."""
        return self.differing == len(self.names)

    @property
    def largest_p(self) -> float:
        """The largest p of an implementation over all settings."""
        return float(self.map.p_value_over_settings.max())


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


def at(values: xr.DataArray, **where: float) -> xr.DataArray:
    """The values in one setting."""
    return values.sel({FIELDS[field]: value for field, value in where.items()})
