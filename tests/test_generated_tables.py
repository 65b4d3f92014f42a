"""Tables of benchmarks: written by their scripts, pointed at by README, and copied nowhere."""

from __future__ import annotations

import importlib
from argparse import Namespace
from pathlib import Path

import determinism
import high_rates
import inference
import markdown_tables
import memory
import neighbours
import noise_floor
import numpy as np
import pcap_reader
import peers
import phase_effects
import pytest
import qlog
import speed
import stacks
import verdict
from markdown_tables import TABLES, joined, rows_of

ROOT = Path(__file__).parents[1]
NAMES = sorted(path.stem for path in TABLES.iterdir())
README = (ROOT / "benchmarks/README.md").read_text()
INCLUDED = (
    "changing_links",
    "dualpi2",
    "mahimahi",
    "media",
    "noise_floor",
    "reports",
    "scaled_axes",
    "trial_length",
)
"""Tables that pages of the documentation include."""
POINTS = [np.random.default_rng(seed).normal(10, 1, (20, 2)) for seed in range(4)]
FIGURES = {"cpu_s": 2.0, "duration_s": 20, "virtual_s_per_cpu_s": 10.0}
OVERHEADS = {"fixed_cpu_s": 0.5, "shell_cpu_s": 1.5, "two_at_once": 2.0}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["physical_time", "scaled_axes", "trial_length"])
def test_a_table_is_what_its_benchmark_computes(name: str):
    computed = importlib.import_module(name).text()
    assert computed == (TABLES / f"{name}.md").read_text(), f"run: python benchmarks/{name}.py"


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_points_at_a_table_and_pages_include_it(name: str):
    assert f"(tables/{name}.md)" in README
    pages = [p for p in (ROOT / "docs").rglob("*.md") if "_generated" not in p.parts]
    include = f"{{include}} ../../benchmarks/tables/{name}.md"
    including = [p for p in pages if include in p.read_text()]
    assert bool(including) == (name in INCLUDED)


def test_no_text_repeats_a_row_of_a_table():
    rows = {line for name in NAMES for line in (TABLES / f"{name}.md").read_text().splitlines()}
    for page in (ROOT / "benchmarks/README.md", *(ROOT / "docs").rglob("*.md")):
        if "_generated" not in page.parts:
            repeated = rows & set(page.read_text().splitlines()) - {""}
            assert not [row for row in repeated if not row.startswith("| ---")], page.name


def floors() -> set[str]:
    """Columns of noise floors."""
    how = [(start, jitter) for start in (None, 0.0) for jitter in (None, 0.1)]
    words = [Namespace(start_window_s=start, jitter_ms=jitter) for start, jitter in how]
    kinds = [(c, d) for c in ("cubic", "reno", "bbr") for d in ("imc22", "refined")]
    columns = [noise_floor.column(*kind, each) for kind in kinds for each in words]
    return {key for each in columns for key in noise_floor.floor(POINTS, "imc22", each)[0]}


def verdicts(name: str) -> set[str]:
    return {key for row in verdict.rows(name, POINTS, [2], 2) for key in row}


case = inference.CASES[0]
estimates = dict.fromkeys(case.truth, inference.Estimate(1.0, 0.9, 1.1))
MEASURED = {
    "determinism": determinism.row(["tcp:cubic"], 10, 20, 1),
    "high_rates": dict.fromkeys(high_rates.HEAD),
    "inference": next(inference.rows(case, estimates)),
    "memory": memory.row(1, 1.0, "now", *[memory.Cost(1.0, 2.0, 3.0)] * 3),
    "neighbours": neighbours.row("alone", 1.0, 1.0, 9.0, 1.0),
    "pcap_reader": next(pcap_reader.rows({"qbkit": 2e6})),
    "peers": peers.row(peers.PEERS[0], 1.0),
    "phase_effects": phase_effects.row("tcp:cubic", 0.3, [0.4, 0.6]),
    "qlog": qlog.row("json", 100.0, 5, 1.0),
    "speed": speed.row({"flows": ["tcp:cubic"] * 2, **FIGURES, **OVERHEADS}, "now"),
    "stacks": stacks.row("tcp:cubic", 20.0, 1, 30.0, 2.0),
    "sweep": {"what": "", "measured": ""},
}


@pytest.mark.parametrize("name", MEASURED)
def test_a_table_has_the_columns_that_its_benchmark_writes(name: str):
    assert list(rows_of(name)[0]) == list(MEASURED[name])


def test_a_table_has_columns_that_its_benchmark_names(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(noise_floor, "DRAWS", 2)
    monkeypatch.setattr(verdict, "SHIFTS", (0.0,))
    assert set(rows_of("noise_floor")[0]) <= floors()
    assert set(rows_of("noise_floor_40_seeds")[0]) <= floors()
    spread = {row.replace("mean of the trials", "seeds a side") for row in floors()}
    assert set(rows_of("noise_floor_spread")[0]) - {"mean of the trials"} <= spread
    for name in ("throughput", "delay"):
        columns = rows_of(f"verdict_{name}")[0]
        assert {c.replace("10 + 10", "2 + 2").replace("5 + 5", "2 + 2") for c in columns} <= (
            verdicts(name)
        )
    stack = speed.stack_row({"flows": ["tcp:cubic", "tcp:cubic"], **FIGURES}, "now")
    assert set(stack) <= set(rows_of("speed_stacks")[0])


@pytest.mark.parametrize("name", MEASURED)
def test_a_measured_row_replaces_its_own_and_no_other(name: str):
    module = importlib.import_module(name)
    before = rows_of(name)
    assert joined(before, [], module.KEYS) == (TABLES / f"{name}.md").read_text()
    measured = {**before[-1], list(before[-1])[-1]: "changed"}
    assert joined(before, [measured], module.KEYS).splitlines()[-1].endswith("| changed |")
    assert len(joined(before, [measured], module.KEYS).splitlines()) == len(before) + 2


def test_measured_rows_are_written_only_if_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(markdown_tables, "TABLES", tmp_path)
    for flow, cost in (("a", 1), ("b", 2), ("a", 3)):
        rows = [{"flow": flow, "cost": cost}]
        markdown_tables.record("made", rows, ["flow"], write=cost != 2)
    assert capsys.readouterr().out.count("| flow | cost |") == 3
    assert rows_of("made") == [{"flow": "a", "cost": "3"}]
