"""Published points are found, chosen, run again and compared."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import qbkit as qb
from qbkit.cli import group
from qbkit.errors import StoreError
from qbkit.store.published import write_cube
from qbkit.studies.reproduction import published_points
from qbkit.studies.reproduction.check import changes

DATA = Path(__file__).parents[1] / "data"
SPEC = """\
name: tiny
base:
  bottleneck: {rate_mbps: 10, rtt_ms: 20}
  flows: [tcp:cubic, tcp:cubic]
  duration_s: 3
sweep:
  seed: [1, 2]
  flows.0: [tcp:cubic, tcp:reno]
"""


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A sweep that this machine ran and published."""
    spec = tmp_path / "published/tiny.yaml"
    spec.parent.mkdir()
    spec.write_text(SPEC)
    result = qb.run_sweep(qb.Sweep.from_file(spec), tmp_path / "results")
    assert not result.failures
    qb.publish_sweep(spec, tmp_path / "results")
    return spec


def reproduce(*words: str) -> tuple[int, list[dict]]:
    done = CliRunner().invoke(group, ["reproduce", *words, "--json"], standalone_mode=False)
    assert done.return_value in (0, 3), done.output
    return done.return_value, json.loads(done.stdout)


@pytest.mark.guest
def test_what_was_just_published_is_the_same(published: Path, monkeypatch, tmp_path):
    monkeypatch.setenv("QBKIT_RUNS", str(tmp_path / "elsewhere"))
    status, rows = reproduce(str(published), "--flow", "tcp:reno", "--seed", "2")
    assert (status, len(rows)) == (0, 1)
    assert (rows[0]["verdict"], rows[0]["reason"], rows[0]["inputs that differ"]) == (
        "the same",
        "",
        "",
    )
    assert "tcp:reno + tcp:cubic, 10 Mbit/s, 20 ms, 1 bdp, seed 2" in rows[0]["point"]


@pytest.mark.guest
def test_a_number_that_is_not_what_the_run_gives_is_named(published: Path):
    index = json.loads(published.with_suffix(".json").read_text())
    cube = qb.load_sweep(published).load()
    added = xr.zeros_like(cube["goodput_mbps"])
    added[{"seed": 0, "flows.0": 1, "flow": 0}] = 0.5
    write_cube(cube.assign(goodput_mbps=cube["goodput_mbps"] + added), published)
    changed = json.loads(published.with_suffix(".json").read_text())
    versions = {**index["stack_versions"], "tcp": "driver of before"}
    document = {**changed, "stack_versions": versions}
    published.with_suffix(".json").write_text(json.dumps(document))
    status, rows = reproduce(str(published), "--flow", "tcp:reno", "--seed", "1")
    assert status == 3
    assert rows[0]["verdict"] == "differs"
    assert rows[0]["reason"].startswith("goodput_mbps of tcp:reno is ")
    assert "instead of driver of before" in rows[0]["inputs that differ"]


def test_numbers_agree_to_the_published_precision():
    then = {"a": 1.23, "b": math.nan, "c": math.inf, "d": 5.0}
    same = {"a": 1.2349, "b": math.nan, "c": math.inf, "d": 5.0, "more": 1.0}
    assert changes(then, same, 0.01) == []
    (moved,) = changes(then, {**same, "a": 1.236}, 0.01)
    assert str(moved) == "a is 1.236 instead of 1.23 (0.49 %)"
    assert [c.name for c in changes(then, {**same, "b": 1.0, "c": 2.0}, 0.01)] == ["b", "c"]


@pytest.mark.slow
def test_everything_published_has_points():
    points = list(published_points(DATA))
    folders = {point.source.relative_to(DATA).parts[0] for point in points}
    assert {
        "conformance",
        "interactions",
        "fq_detection",
        "web_objects",
        "web_pages",
        "cases",
    } <= folders
    assert len(points) > 25_000
    rng = np.random.default_rng(0)
    for i in rng.choice(len(points), 40):
        assert points[i].published()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["conformance/cubic.yaml"], "has 920 such points; name one by --flow"),
        (["conformance/cubic.yaml", "--flow", "quinn:cubc"], "has no point with flow quinn:cubc"),
        (
            ["conformance/cubic.yaml", "--where", "colour=red"],
            "an experiment has no field 'colour'",
        ),
        (["conformance/cubic.yaml", "--where", "qdisc"], "--where qdisc should be FIELD=VALUE"),
        (["releases"], "has no published point"),
    ],
)
def test_what_cannot_be_chosen_is_one_sentence(words, sentence):
    done = CliRunner().invoke(group, ["reproduce", str(DATA / words[0]), *words[1:]])
    text = str(done.exception) if isinstance(done.exception, StoreError) else done.output
    assert done.exit_code != 0
    assert sentence in " ".join(text.split())


def test_a_file_that_was_changed_is_refused(tmp_path: Path):
    for name in ("cubic.yaml", "cubic.json", "cubic.nc"):
        shutil.copy(DATA / "controllers" / name, tmp_path)
    content = (tmp_path / "cubic.nc").read_bytes()
    (tmp_path / "cubic.nc").write_bytes(content[:-1] + b"x")
    with pytest.raises(StoreError, match="is not the file that was published"):
        list(published_points(tmp_path))
