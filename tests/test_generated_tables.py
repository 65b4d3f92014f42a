"""The tables that the documentation includes are what their benchmarks compute from the data."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "benchmarks/tables"
INCLUDED = {path.name for path in TABLES.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["physical_time", "scaled_axes", "trial_length"])
def test_a_table_is_what_its_benchmark_computes(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [str(TABLES.parent), *sys.path])
    computed = importlib.import_module(name).text()
    assert computed == (TABLES / f"{name}.md").read_text(), f"run: python benchmarks/{name}.py"


@pytest.mark.parametrize("name", sorted(INCLUDED))
def test_a_table_is_included_where_it_is_needed_and_copied_nowhere(name: str):
    row = (TABLES / name).read_text().splitlines()[2]
    pages = {p: p.read_text() for p in (ROOT / "docs").rglob("*.md") if "tutorials" not in p.parts}
    readme = (ROOT / "benchmarks/README.md").read_text()
    included = any(f"benchmarks/tables/{name}" in text for text in pages.values())
    assert included or name == "physical_time.md"  # too long for a page
    assert f"tables/{name}" in readme and row not in readme
    assert not [p.name for p, text in pages.items() if row in text and "_generated" not in p.parts]
