"""What the published data say of cases: verdicts, suspects and shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import xarray as xr

import qbkit as qb
from qbkit.studies.results import open_results


@dataclass(frozen=True)
class Cases:
    """The published cases of a folder."""

    folder: Path
    _opened: dict[str, qb.Study | qb.Explanation] = field(default_factory=dict, repr=False)

    def share_percent(self, case: str, name: str) -> float:
        """The part of the difference in throughput that a suspect accounts for."""
        found = self.explained(case)
        (suspect,) = (each for each in found.suspects if each.name == name)
        return 100 * found.share(suspect)

    def first_suspect(self, case: str) -> str:
        """The parameter of the most likely cause."""
        return self.explained(case).suspects[0].name

    def explained(self, case: str) -> qb.Explanation:
        """The published inference of a case."""
        found = self._open(case)
        assert isinstance(found, qb.Explanation)
        return found

    def assess(self, case: str) -> qb.metrics.Assessment:
        """The published study of a case, assessed."""
        return self.study(case).assess()

    def study(self, case: str) -> qb.Study:
        """The published study of a case."""
        found = self._open(case)
        return found.study if isinstance(found, qb.Explanation) else found

    def removed_percent(self, case: str, changed: str) -> float:
        """The measured part of the difference in throughput that an option removes."""
        return 100 * qb.WhatIf(self.study(case), self.study(changed), {}).share

    def throughput_ratio(self, case: str, from_s: float = 0.0) -> float:
        """Throughput of a case's test over its competitor's from a time on, mean over its runs."""
        later = [
            run.throughput_mbps.sel(time=slice(from_s, None)) for run in self.study(case).tests
        ]
        return fmean(float(mbps[0].sum() / mbps[1].sum()) for mbps in later)

    def acked_mb(self, name: str, until_s: float) -> float:
        """Bytes whose ACK arrived by a time, in the events of a lone flow."""
        events = xr.load_dataset(self.folder / f"{name}.nc")
        return float(events.acked_size_bytes.where(events.acked_time_s <= until_s).sum()) / 1e6

    def _open(self, case: str) -> qb.Study | qb.Explanation:
        if case not in self._opened:
            found = open_results(self.folder / case)
            assert isinstance(found, qb.Study | qb.Explanation)
            self._opened[case] = found
        return self._opened[case]
