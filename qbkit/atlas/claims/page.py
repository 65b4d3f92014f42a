"""Writes README.md of the published data: README.md.jinja, with their numbers and tables.

python -m qbkit.atlas.claims.page data    (make data-readme)

An expression of the template is a number or a table. A sentence that no number carries is a claim:
``"the order is transitive" | claim(pairs.triples() == [])`` is its text, and an error where the
data say otherwise.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.atlas.claims import family
from qbkit.atlas.claims.cases import Cases
from qbkit.atlas.claims.family import Family
from qbkit.atlas.claims.faster import Faster
from qbkit.atlas.claims.longer import Longer
from qbkit.atlas.claims.pairs import HEADING, Lasting, Pairs
from qbkit.errors import QbkitError

WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)


class ClaimError(QbkitError):
    """The published data contradict a sentence of the page."""


def readme(data: Path) -> str:
    """The text of README.md in a folder of published data; ClaimError where they contradict it."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(data),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        autoescape=False,  # Markdown
    )
    cases, gallery = Cases(data / "cases"), qb.load_runs(data / "gallery")
    environment.filters |= {
        "to": to,
        "word": WORDS.__getitem__,
        "claim": claim,
        "mean": statistics.mean,
        "first_suspect": cases.first_suspect,
        "map_sentence": qb.metrics.map_sentence,
        "reported_decrease": lambda name: reported_decrease(gallery[name]),
    }
    return environment.get_template("README.md.jinja").render(
        **_families(data), **_facts(data, cases)
    )


def _families(data: Path) -> dict[str, Any]:
    """The families of controllers, also on other links."""
    families = {name: Family(name, data / "conformance") for name in ("cubic", "reno", "bbr")}

    def at_100_mbps(rtt_ms: int, *buffers_bdp: float) -> dict[str, Faster]:
        folder = data / f"conformance_100_mbps_{rtt_ms}_ms"
        return {
            name: Faster(Family(name, folder, buffers_bdp), slow) for name, slow in families.items()
        }

    return {
        **families,
        "near": at_100_mbps(10),
        "faster": at_100_mbps(10, 0.5, 1),
        "deep": at_100_mbps(10, 3, 5),
        "far": at_100_mbps(50),
        "longer": {
            name: Longer(Family(name, data / "conformance_120_s"), families[name])
            for name in ("cubic", "reno")
        },
        "rises": family.rises,
        "best": family.best,
    }


def _facts(data: Path, cases: Cases) -> dict[str, Any]:
    """The other names that the template may use."""
    of_cases = ("verdicts", "causes", "explained", "assess", "share_percent")
    return {
        "pairs_table": lambda sweeps: "\n".join([HEADING, *(each.row for each in sweeps)]),
        "pairs": {
            name: Pairs(data / f"interactions/{name}.yaml") for name in ("shallow", "deep", "start")
        },
        "lasting": Lasting(data / "checks/settled.csv"),
        "envelope": qb.load_study(data / "envelope"),
        **{name: getattr(cases, name) for name in of_cases},
        **{
            name: getattr(cases, name)
            for name in ("removed_percent", "throughput_ratio", "acked_mb")
        },
        "published": lambda path: json.loads((data / path).read_text()),
        "rows": lambda path: pd.read_csv(data / path),
        "least_deal_p": lambda trials: 2 / math.comb(2 * trials, trials),
        "comb": math.comb,
        "version": version,
    }


def version(run: xr.Dataset, stack: str) -> str:
    """The version of a stack in a run, without that of its driver."""
    found: str = json.loads(run.attrs["stack_versions"])[stack]
    return found.partition(",")[0]


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


def claim(text: str, holds: object) -> str:
    """The text, if it holds; otherwise ClaimError."""
    if not holds:
        raise ClaimError(
            f"the published data contradict “{text}”; change the sentence in README.md.jinja"
        )
    return text


def main() -> None:
    """Write the page; exit with one sentence where the data contradict it."""
    data = Path(sys.argv[1])
    try:
        text = readme(data)
    except QbkitError as error:
        sys.exit(f"{data}/README.md was not written: {error}")
    (data / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
