"""Writes data/README.md: README.md.jinja, with the numbers and tables of the published data.

python data/readme.py    (make data-readme)

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

import causes
import findings
import jinja2
import pandas as pd
from faster import Faster
from longer import Longer
from pairs import HEADING as PAIRS_HEADING
from pairs import Lasting, Pairs

import qbkit as qb
from qbkit.errors import QbkitError

HERE = Path(__file__).parent
WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)


class ClaimError(Exception):
    """The published data contradict a sentence of the page."""


def page() -> str:
    """The text of data/README.md."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        autoescape=False,  # Markdown
    )
    environment.filters |= {"to": to, "word": word, "claim": claim}
    environment.filters["mean"] = statistics.mean
    environment.filters["first_suspect"] = causes.first_suspect
    environment.filters["map_sentence"] = qb.metrics.map_sentence
    environment.filters["reported_decrease"] = findings.reported_decrease
    return environment.get_template("README.md.jinja").render(**facts())


def facts() -> dict[str, Any]:
    """The names that the template may use."""
    families = {name: findings.Family(name) for name in ("cubic", "reno", "bbr")}

    def at_100_mbps(rtt_ms: int, *buffers_bdp: float) -> dict[str, Faster]:
        folder = f"conformance_100_mbps_{rtt_ms}_ms"
        return {
            name: Faster(findings.Family(name, folder, buffers_bdp), slow)
            for name, slow in families.items()
        }

    return {
        **families,
        "near": at_100_mbps(10),
        "faster": at_100_mbps(10, 0.5, 1),
        "deep": at_100_mbps(10, 3, 5),
        "far": at_100_mbps(50),
        "longer": {
            name: Longer(findings.Family(name, "conformance_120_s"), families[name])
            for name in ("cubic", "reno")
        },
        "rises": findings.rises,
        "best": findings.best,
        "pairs_table": lambda sweeps: "\n".join([PAIRS_HEADING, *(each.row for each in sweeps)]),
        "pairs": {name: Pairs(name) for name in ("shallow", "deep", "start")},
        "lasting": Lasting(),
        "envelope": qb.load_study(HERE / "envelope"),
        "verdicts": causes.verdicts,
        "causes": causes.causes,
        "explained": causes.explained,
        "assess": causes.assess,
        "share_percent": causes.share_percent,
        "removed_percent": causes.removed_percent,
        "throughput_ratio": causes.throughput_ratio,
        "acked_mb": causes.acked_mb,
        "published": lambda path: json.loads((HERE / path).read_text()),
        "rows": lambda path: pd.read_csv(HERE / path),
        "least_deal_p": lambda trials: 2 / math.comb(2 * trials, trials),
        "comb": math.comb,
        "version": findings.version,
    }


def to(values: float | Iterable[float], decimals: int) -> str:
    """A number, or several with commas, with this many decimals."""
    if isinstance(values, Iterable):
        return ", ".join(to(value, decimals) for value in values)
    return f"{values:.{decimals}f}"


def word(number: int) -> str:
    """A whole number up to twenty in words."""
    return WORDS[number]


def claim(text: str, holds: object) -> str:
    """The text, if it holds; otherwise ClaimError."""
    if not holds:
        raise ClaimError(
            f"the published data contradict “{text}”; change the sentence in data/README.md.jinja"
        )
    return text


def main() -> None:
    """Write the page; exit with one sentence where the data contradict it."""
    try:
        text = page()
    except (ClaimError, QbkitError) as error:
        sys.exit(f"data/README.md was not written: {error}")
    (HERE / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
