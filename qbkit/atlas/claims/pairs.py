"""What the published data say of interactions: shares, orders, and their certainty."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.atlas.published import InteractionSweep
from qbkit.metrics.maps.interactions import FIRST, SECOND, SEED
from qbkit.metrics.verdicts.reasons import interval_text

Pair = tuple[str, str]


@dataclass(frozen=True)
class Pairs:
    """A published sweep of interactions."""

    sweep: InteractionSweep

    @cached_property
    def ratios(self) -> xr.DataArray:
        """Share of the row's implementation against the column's."""
        return self.sweep.table.throughput_ratio

    @cached_property
    def order(self) -> dict[str, float]:
        """Mean share of each implementation against all others, the most dominant first."""
        found = qb.metrics.dominance(self.ratios)
        return dict(zip(map(str, found[FIRST].values), found.values.tolist(), strict=True))

    @property
    def names(self) -> list[str]:
        """The implementations, the most dominant first."""
        return list(self.order)

    def share(self, first: str, second: str) -> str:
        """Share that the first gets from the second, with its interval, as text."""
        found = self._of(first, second)
        limits = float(found.throughput_ratio_low), float(found.throughput_ratio_high)
        return f"{float(found.throughput_ratio):.2f}{interval_text(limits)}"

    @property
    def trials(self) -> int:
        """Trials of each pair of two implementations; raises ValueError if not all have as many."""
        (count,) = {*self._of_two.trials.to_series().dropna()}
        return int(count)

    @property
    def loss_based(self) -> list[str]:
        """Every CUBIC and Reno, the most dominant first."""
        return [name for name in self.names if name.endswith(("cubic", "reno"))]

    def beat_loss_based(self, names: list[str]) -> bool:
        """Whether each of these gets more than half from every CUBIC and Reno."""
        return bool((self.ratios.sel({FIRST: names, SECOND: self.loss_based}) > 0.5).all())

    def certain_wins(self, names: list[str]) -> int:
        """In how many pairs with a CUBIC or Reno these win for certain."""
        return sum(self.beats(name, rival) for name in names for rival in self.loss_based)

    def beats(self, first: str, second: str) -> bool:
        """Whether the interval of the first's share from the second lies above one half."""
        return bool(self._of(first, second).throughput_ratio_low > 0.5)

    @property
    def pairs(self) -> int:
        """Number of pairs of two implementations."""
        return len(self.names) * (len(self.names) - 1) // 2

    @property
    def decided(self) -> int:
        """Number of pairs whose interval excludes one half."""
        return int((self._of_two.throughput_ratio_low > 0.5).sum())

    @property
    def _of_two(self) -> xr.Dataset:
        """The table without the implementations against themselves; NaN there."""
        return self.sweep.table.where(self.sweep.table[FIRST] != self.sweep.table[SECOND])

    def triples(self, margin: float) -> list[tuple[str, str, str]]:
        """Intransitive triples, whose wins are all above one half by more than ``margin``."""
        return qb.metrics.intransitive_triples(self.ratios, margin)

    @property
    def triples_by_lot(self) -> float:
        """Intransitive triples if each winner were drawn by lot, on average: a quarter of all."""
        return math.comb(len(self.names), 3) / 4

    @property
    def certain_triples(self) -> list[tuple[str, str, str]]:
        """Intransitive triples in which all three intervals exclude one half."""
        return qb.metrics.intransitive_triples(self.sweep.table.throughput_ratio_low, 0)

    def certain_triples_with(self, first: str, second: str) -> list[tuple[str, str, str]]:
        """Those of `certain_triples` that rest on a pair."""
        return [triple for triple in self.certain_triples if {first, second} <= {*triple}]

    @cached_property
    def expected(self) -> xr.DataArray:
        """CUBICs against BBRs; ``reversed`` marks pairs with an unexpected winner."""
        return qb.metrics.expectations(self.ratios)

    @property
    def unexpected(self) -> list[Pair]:
        """Each CUBIC and BBR whose winner is not as expected, for certain."""
        stacked = self.expected.reversed.stack(pair=[FIRST, SECOND])
        pairs = [tuple(map(str, pair)) for pair in stacked.pair.values[stacked.values]]
        return [(a, b) for a, b in pairs if self.beats(a, b) or self.beats(b, a)]

    @cached_property
    def earlier(self) -> dict[str, float]:
        """Share of the flow that starts first, where both are of one implementation."""
        sweep = qb.Sweep(**json.loads(self.sweep.cube.attrs["sweep"]))
        starts_s: dict[int, tuple[float, ...]] = {}
        for experiment in (point.experiment for point in sweep.points()):
            if len(starts_s) == self.sweep.cube.sizes[SEED]:
                break  # a seed draws the same times for every pair
            starts_s[experiment.seed] = experiment.flow_starts_s
        mbps = qb.metrics.settled_throughput_mbps(self.sweep.cube)
        shares = [
            mbps.sel({SEED: seed}).isel(flow=int(np.argmin(each)))
            for seed, each in starts_s.items()
        ]
        mean = xr.concat(shares, SEED).mean(SEED) / mbps.sum("flow").mean(SEED)
        return {name: float(mean.sel({FIRST: name, SECOND: name})) for name in self.names}

    def part(self, start_s: float, stop_s: float) -> xr.DataArray:
        """The throughput ratios of a part of each trial."""
        return qb.metrics.throughput_ratios(self.sweep.cube, (start_s, stop_s))

    def mean_shares(self, start_s: float, stop_s: float) -> xr.DataArray:
        """Mean share of each implementation against all others in a part of each trial."""
        return qb.metrics.dominance(self.part(start_s, stop_s)).sortby(FIRST)

    def mean_share(self, name: str, start_s: float, stop_s: float) -> float:
        """That of one implementation."""
        return float(self.mean_shares(start_s, stop_s).sel({FIRST: name}))

    def reversals(self, early_s: tuple[float, float], late_s: tuple[float, float]) -> int:
        """Pairs that have one winner in an early part of the trials and the other in a late one."""
        early, late = ((self.part(*span) > 0.5).values for span in (early_s, late_s))
        return int(np.triu(early != late, 1).sum())

    def _of(self, first: str, second: str) -> xr.Dataset:
        return self.sweep.table.sel({FIRST: first, SECOND: second})


@dataclass(frozen=True)
class Lasting:
    """The shares of ``checks/settled.csv``, of parts of long trials in a deep buffer."""

    path: Path

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each rate of the link in Mbit/s and pair."""
        return pd.read_csv(self.path, index_col=["rate_mbps", "flow", "other"])

    def apart(self, rate_mbps: int) -> dict[Pair, float]:
        """How far the share of each pair is from that from 60 s on, the nearest first.

        At 20 Mbit/s the shares are those from 20 to 40 s, as in ``deep``, at 50 of the first 25 s,
        as in ``start``.
        """
        early = {20: "share_20_to_40_s", 50: "share_0_to_25_s"}[rate_mbps]
        rows = self.table.loc[rate_mbps]
        found = (rows[early] - rows.share_60_to_120_s).abs().sort_values()
        return dict(zip(found.index, found.tolist(), strict=True))

    def of(self, rate_mbps: float, first: str, second: str) -> pd.Series:
        """The row of a pair."""
        return self.table.loc[(rate_mbps, first, second)]

    def ratio(self, rate_mbps: float, first: str, second: str) -> float:
        """Throughput of the first flow over the second's from 60 s on, from the mean share."""
        share = float(self.of(rate_mbps, first, second).share_60_to_120_s)
        return share / (1 - share)
