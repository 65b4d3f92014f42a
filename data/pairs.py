"""What data/README.md says of the published interactions: shares, orders, and their certainty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from findings import BUFFER, HERE

import qbkit as qb
from qbkit.metrics.assessment import interval_text
from qbkit.metrics.maps import FIRST, SECOND, SEED
from qbkit.spec.experiment import FRAME_BYTES

SPEC = HERE / "interactions/pairs.yaml"
Pair = tuple[str, str]


@dataclass(frozen=True)
class Pairs:
    """The published interactions with one buffer."""

    buffer_bdp: float

    @cached_property
    def cube(self) -> xr.Dataset:
        """All runs with this buffer."""
        return qb.load_sweep(SPEC).sel({BUFFER: self.buffer_bdp}, drop=True)

    @cached_property
    def table(self) -> xr.Dataset:
        """See `qbkit.metrics.interactions`."""
        return qb.metrics.interactions(self.cube)

    @cached_property
    def ratios(self) -> xr.DataArray:
        """Share of the row's implementation against the column's."""
        return self.table.throughput_ratio

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
    def seeds(self) -> int:
        """Number of seeds."""
        return int(self.cube.sizes[SEED])

    @property
    def trials(self) -> int:
        """Trials of each pair of two implementations; raises ValueError if not all have as many."""
        (count,) = {*self._of_two.trials.to_series().dropna()}
        return int(count)

    @property
    def frame_ms(self) -> float:
        """Time that a full frame takes on the link."""
        rate_mbps: float = qb.Sweep.from_file(SPEC).base["bottleneck"]["rate_mbps"]
        return FRAME_BYTES * 8 / rate_mbps / 1e3

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
    def reach(self) -> float:
        """Half the width of an interval, mean over all pairs."""
        table = self._of_two
        return float((table.throughput_ratio_high - table.throughput_ratio_low).mean()) / 2

    @property
    def _of_two(self) -> xr.Dataset:
        """The table without the implementations against themselves; NaN there."""
        return self.table.where(self.table[FIRST] != self.table[SECOND])

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
        return qb.metrics.intransitive_triples(self.table.throughput_ratio_low, 0)

    def all_certain_triples_have(self, *names: str) -> bool:
        """Whether there are certain intransitive triples, and all of them have these."""
        found = self.certain_triples
        return bool(found) and all({*names} <= {*triple} for triple in found)

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
        starts_s = {
            p.experiment.seed: p.experiment.flow_starts_s for p in qb.Sweep.from_file(SPEC).points()
        }
        shares = [
            self.cube.throughput_mbps.sel({SEED: seed}).isel(flow=int(np.argmin(each)))
            for seed, each in starts_s.items()
        ]
        mean = xr.concat(shares, SEED).mean(SEED) / self.cube.throughput_mbps.sum("flow").mean(SEED)
        return {name: float(mean.sel({FIRST: name, SECOND: name})) for name in self.names}

    @property
    def most_earlier(self) -> str:
        """The implementation in which starting first helps most."""
        return max(self.earlier, key=self.earlier.__getitem__)

    def _of(self, first: str, second: str) -> xr.Dataset:
        return self.table.sel({FIRST: first, SECOND: second})
