"""Renders the findings of published data with their numbers.

An expression of ``findings.md.jinja`` is a number of the data. A sentence that no number carries
is a claim: ``"the order is transitive" | claim(pairs.triples() == [])`` is its text, and an error
where the data say otherwise.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

import jinja2
import numpy as np
import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.atlas.claims.cases import Cases
from qbkit.atlas.claims.family import Family, Longer
from qbkit.atlas.claims.faster import Faster
from qbkit.atlas.claims.findings import Finding, bars, claim, read_findings
from qbkit.atlas.claims.pairs import Lasting, Pairs
from qbkit.atlas.published import Published
from qbkit.metrics.maps.families import FAMILIES

TEMPLATE = "findings.md.jinja"


def findings(published: Published) -> list[Finding]:
    """The findings of published data; none without a template in their folder.

    Raises ClaimError where the data contradict one.
    """
    data = published.folder
    if not (data / TEMPLATE).exists():
        return []
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(data),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        autoescape=False,  # Markdown
    )
    cases = Cases(data / "cases")
    environment.filters |= {
        "to": to,
        "claim": claim,
        "mean": statistics.mean,
        "first_suspect": cases.first_suspect,
        "map_sentence": qb.metrics.map_sentence,
        "reported_decrease": lambda name: reported_decrease(published.alone[name]),
    }
    names = {**_families(published), **_facts(published, cases), "bars": bars}
    return read_findings(environment.get_template(TEMPLATE).render(**names))


def _families(published: Published) -> dict[str, Any]:
    """The families of controllers, also on other links, of which there are sweeps."""
    sweeps = {sweep.name: sweep for sweep in published.conformance}

    def families(folder: str, buffers_bdp: tuple[float, ...] = ()) -> dict[str, Family]:
        paths = {name: f"{folder}/{name}" for name in FAMILIES}
        return {n: Family(sweeps[p], buffers_bdp) for n, p in paths.items() if p in sweeps}

    usual = families("conformance")

    def at_100_mbps(rtt_ms: int, *buffers_bdp: float) -> dict[str, Faster]:
        fast = families(f"conformance_100_mbps_{rtt_ms}_ms", buffers_bdp)
        return {
            name: Faster(family, usual[name], published.folder)
            for name, family in fast.items()
            if name in usual
        }

    lasting = families("conformance_120_s")
    return {
        **usual,
        "faster": at_100_mbps(10, 0.5, 1),
        "deep": at_100_mbps(10, 3, 5),
        "far": at_100_mbps(50),
        "longer": {name: Longer(long, usual[name]) for name, long in lasting.items()},
    }


def _facts(published: Published, cases: Cases) -> dict[str, Any]:
    """The other names that the template may use."""
    data = published.folder
    sweeps = {sweep.name: sweep for sweep in published.interactions}
    pairs = ("shallow", "deep", "start")
    of_cases = (
        *("explained", "assess", "share_percent"),
        *("removed_percent", "throughput_ratio", "acked_mb"),
    )
    return {
        "pairs": {n: Pairs(sweeps[p]) for n in pairs if (p := f"interactions/{n}") in sweeps},
        "lasting": Lasting(data / "checks/settled.csv"),
        **{name: getattr(cases, name) for name in of_cases},
        "rows": lambda path: pd.read_csv(data / path),
        "least_deal_p": lambda trials: 2 / math.comb(2 * trials, trials),
        "comb": math.comb,
    }


def reported_decrease(run: xr.Dataset) -> float:
    """The fraction of its window that a lone flow reports after a loss, the median.

    Windows are those of two bins (0.1 s) in succession, where the second is smaller by a third.
    """
    windows = run.cwnd_bytes.isel(flow=0).values
    ratios = windows[1:] / windows[:-1]
    return float(np.median(ratios[ratios < 2 / 3]))


def to(values: float | Iterable[float], decimals: int) -> str:
    """A number, or several with commas, with this many decimals."""
    if isinstance(values, Iterable):
        return ", ".join(to(value, decimals) for value in values)
    return f"{values:.{decimals}f}"
