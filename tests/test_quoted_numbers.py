"""Numbers in the sentences of the documentation are those of the data or the table they quote."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import qbkit as qb
from qbkit.atlas.claims.family import at

ROOT = Path(__file__).parents[1]
MOVED = 0.04
"""The sentence about physical time names the flows whose share moves by more."""
LENGTHS = ("conformance", "conformance_120_s")
"""Folders of the same sweep in trials of 60 and of 120 s."""


def physical_time() -> pd.DataFrame:
    """The flows at 1 BDP: shares in both times, of each the cell in which they differ most."""
    cells = pd.read_csv(ROOT / "data/checks/physical-time.csv").query("buffer_bdp == 1")
    cells = cells.assign(moved=(cells.physical_share - cells.virtual_share).abs())
    return cells.sort_values("moved").groupby("flow").last()


def within() -> tuple[float, ...]:
    flows = physical_time()
    return int((flows.moved < MOVED).sum()), len(flows)


def both_shares(flow: str) -> Callable[[], tuple[float, ...]]:
    return lambda: tuple(physical_time().loc[flow, ["virtual_share", "physical_share"]])


def longer_trials() -> tuple[float, ...]:
    """The noise floor of CUBIC at 50 ms in trials of 60 and of 120 s, with 3 and with 5 BDP."""
    cubes = [qb.load_sweep(ROOT / f"data/{name}/cubic.yaml") for name in LENGTHS]
    maps = [qb.metrics.conformance_map(cube, "tcp:cubic").noise_floor for cube in cubes]
    return tuple(float(at(floor, rtt_ms=50, buffer_bdp=bdp)[0]) for bdp in (3, 5) for floor in maps)


def cells_of(file: str, start: str) -> list[str]:
    """The cells of the last row of a file that begins so."""
    lines = (ROOT / file).read_text().splitlines()
    row = [line for line in lines if line.startswith(start)][-1]
    return [cell.strip() for cell in row.strip("| ").split("|")]


def longest_trials() -> tuple[float, ...]:
    row = cells_of("benchmarks/tables/trial_length.md", "| 50 ms")
    return float(row[1]), float(row[7]), float(row[3])


def conforming_draws() -> tuple[float, ...]:
    row = cells_of("benchmarks/README.md", "| 0 |")
    return float(row[4]), float(row[8])


NUMBER = r"(\d+(?:\.\d+)?)"
PHYSICAL = rf"{NUMBER} of {NUMBER} (?:implementations|flows|implement)"
QUOTED = [
    ("docs/concepts/virtual-time.md", PHYSICAL, within),
    ("notebooks/14_is_it_the_stack.ipynb", PHYSICAL, within),
    ("notebooks/03_conformance_map.ipynb", PHYSICAL, within),
    (
        "docs/concepts/virtual-time.md",
        rf"quinn's BBR \({NUMBER} and {NUMBER};",
        both_shares("quinn:bbr"),
    ),
    (
        "docs/concepts/virtual-time.md",
        rf"aioquic's Reno \({NUMBER} and {NUMBER}, not explained\)",
        both_shares("aioquic:reno"),
    ),
    (
        "docs/concepts/virtual-time.md",
        rf"it gets {NUMBER} and {NUMBER} of the link \(5 Mbit/s, 50 ms",
        both_shares("quiche:cubic"),
    ),
    (
        "docs/concepts/noise-floor.md",
        rf"noise floor of the kernel's CUBIC rises from {NUMBER} in 60 s to {NUMBER} in 120 s with "
        rf"3 BDP, and from {NUMBER} to {NUMBER} with 5 BDP",
        longer_trials,
    ),
    (
        "benchmarks/README.md",
        rf"at 50 ms the noise floor of {NUMBER} points is {NUMBER} for BBR and {NUMBER} for CUBIC",
        longest_trials,
    ),
    (
        "docs/concepts/noise-floor.md",
        rf"conforms to itself in {NUMBER} of the draws with five seeds per side and in {NUMBER}",
        conforming_draws,
    ),
    (
        "benchmarks/README.md",
        rf"conform to itself in {NUMBER} of the draws at 5 \+ 5 and in {NUMBER} at 10 \+ 10",
        conforming_draws,
    ),
]


@pytest.mark.parametrize(("page", "sentence", "computed"), QUOTED)
def test_a_sentence_quotes_its_source(page, sentence, computed):
    text = re.sub(r"\s+", " ", (ROOT / page).read_text())
    found = re.search(sentence, text)
    assert found, f"{page} has no such sentence any more"
    values = computed()
    decimals = [len(number.partition(".")[2]) for number in found.groups()]
    expected = tuple(f"{v:.{n}f}" for v, n in zip(values, decimals, strict=True))
    assert found.groups() == expected
