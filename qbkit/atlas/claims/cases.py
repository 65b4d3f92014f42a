"""What the published data say of cases: verdicts, then suspects and symptoms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import xarray as xr

import qbkit as qb
from qbkit.studies.results import open_results

STUDIES = {
    "BBR's rate at 120 %, 0.5 BDP; at 100 %": ("bbr-120-0.5", "bbr-100-0.5"),
    "the same, 1 BDP": ("bbr-120-1", "bbr-100-1"),
    "the same, 5 BDP": ("bbr-120-5", "bbr-100-5"),
    "CUBIC as two flows, 1 BDP; as one": ("cubic-2-1", "cubic-1-1"),
    "the same, 3 BDP": ("cubic-2-3", "cubic-1-3"),
    "Google QUICHE's CUBIC (Envoy 1.40), 3 BDP; no option": ("google-cubic", ""),
    "quinn's NewReno, an ACK for ten packets; for two": ("ack-10", "ack-2"),
    "quiche 0.30's CUBIC; quiche 0.7.0's, which reverts no reduction": ("quiche-now", "quiche-0.7"),
}
"""What is compared → the case, and the same with the option."""
VERDICT_HEADING = (
    "| case | conformance | with the option | noise floor | verdict | with the option |\n"
    "|---|---|---|---|---|---|"
)
CAUSE_HEADING = "| | what differs | throughput, alone |\n|---|---|---|"


@dataclass(frozen=True)
class Cases:
    """The published cases of a folder."""

    folder: Path
    _opened: dict[str, qb.Study | qb.Explanation] = field(default_factory=dict, repr=False)

    def verdicts(self) -> str:
        """A row of Markdown for each case: one trial against one, with and without the option."""
        rows = [VERDICT_HEADING]
        for title, (case, changed) in STUDIES.items():
            found = self.assess(case)
            after = self.assess(changed) if changed else None
            conforms = f"{after.conformance:.2f}" if after else ""
            rows.append(
                f"| {title} | {found.conformance:.2f} | {conforms} | {found.noise_floor:.2f} "
                f"| {found.outcome} | {after.outcome if after else ''} |"
            )
        return "\n".join(rows)

    def causes(self, case: str) -> str:
        """A row of Markdown for each suspect, then for each symptom."""
        return "\n".join([CAUSE_HEADING, *_rows(self.explained(case))])

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


def _rows(found: qb.Explanation) -> Iterator[str]:
    for suspect in found.suspects:
        yield f"| suspect | {suspect} | {found.effect_text(suspect).removeprefix('alone: ')} |"
    for symptom in found.symptoms:
        yield f"| symptom | {symptom} | |"
