"""What data/README.md says of the published cases: verdicts, then suspects and symptoms."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import fmean

import xarray as xr

import qbkit as qb

HERE = Path(__file__).parent
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
CASES = ("bbr-120-explained", "google-cubic", "ack-10", "quiche-now")
"""The cases whose parameters were inferred."""
VERDICT_HEADING = (
    "| case | conformance | with the option | noise floor | verdict | with the option |\n"
    "|---|---|---|---|---|---|"
)
CAUSE_HEADING = "| | what differs | throughput, alone |\n|---|---|---|"


def verdicts() -> str:
    """A row of Markdown for each case: one trial against one, with and without the option."""
    rows = [VERDICT_HEADING]
    for title, (case, changed) in STUDIES.items():
        found = assess(case)
        after = assess(changed) if changed else None
        conforms = f"{after.conformance:.2f}" if after else ""
        rows.append(
            f"| {title} | {found.conformance:.2f} | {conforms} | {found.noise_floor:.2f} "
            f"| {found.outcome} | {after.outcome if after else ''} |"
        )
    return "\n".join(rows)


def causes(case: str) -> str:
    """A row of Markdown for each suspect, then for each symptom."""
    return "\n".join([CAUSE_HEADING, *_rows(explained(case))])


def share_percent(case: str, name: str) -> float:
    """The part of the difference in throughput that a suspect accounts for."""
    found = explained(case)
    (suspect,) = (each for each in found.suspects if each.name == name)
    return 100 * found.share(suspect)


def first_suspect(case: str) -> str:
    """The parameter of the most likely cause."""
    return explained(case).suspects[0].name


@cache
def explained(case: str) -> qb.Explanation:
    """The published inference of a case."""
    return qb.load_explanation(HERE / "cases" / case)


def assess(case: str) -> qb.metrics.Assessment:
    """The published study of a case, assessed."""
    return study(case).assess()


@cache
def study(case: str) -> qb.Study:
    """The published study of a case."""
    return explained(case).study if case in CASES else qb.load_study(HERE / "cases" / case)


def _rows(found: qb.Explanation) -> Iterator[str]:
    for suspect in found.suspects:
        yield f"| suspect | {suspect} | {found.effect_text(suspect).removeprefix('alone: ')} |"
    for symptom in found.symptoms:
        yield f"| symptom | {symptom} | |"


def removed_percent(case: str, changed: str) -> float:
    """The measured part of the difference in throughput that an option removes."""
    return 100 * qb.WhatIf(study(case), study(changed), {}).share


def throughput_ratio(case: str, from_s: float = 0.0) -> float:
    """Throughput of a case's test over its competitor's from a time on, mean over its runs."""
    later = [run.throughput_mbps.sel(time=slice(from_s, None)) for run in study(case).tests]
    return fmean(float(mbps[0].sum() / mbps[1].sum()) for mbps in later)


def acked_mb(name: str, until_s: float) -> float:
    """Bytes whose ACK arrived by a time, in the events of a lone flow."""
    events = xr.load_dataset(HERE / "cases" / f"{name}.nc")
    sizes = events.acked_size_bytes.where(events.acked_time_s <= until_s)
    return float(sizes.sum()) / 1e6
