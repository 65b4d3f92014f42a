"""Published sweeps and runs: what is written is what is read, and a changed file is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner
from synthetic import synthetic_run

import qbkit as qb
from qbkit.cli.group import group
from qbkit.errors import SpecError, StackNotReady, StoreError
from qbkit.execution.sweeps import estimate, gather, run_sweep
from qbkit.metrics.parameters import PARAMETERS
from qbkit.spec.sweep import Sweep
from qbkit.store.published import published_index, without_tables, write_cube

DATA = Path(__file__).parents[1] / "data"
SPECS = sorted(path for path in DATA.glob("*/*.yaml") if path.with_suffix(".json").exists())


@pytest.mark.guest
def test_a_sweep_published_and_opened_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = tmp_path / "s.yaml"
    base = {"bottleneck": {"rate_mbps": 10, "rtt_ms": 20}, "flows": ["tcp:cubic", "tcp:bbr"]}
    document = {"name": "x", "base": {**base, "duration_s": 8}, "sweep": {"seed": [1, 2]}}
    spec.write_text(json.dumps(document))
    with pytest.raises(StoreError, match=r"no run of .*s\.yaml is in"):
        qb.publish_sweep(spec, tmp_path / "out")
    made = run_sweep(Sweep.from_file(spec), tmp_path / "out").cube
    facts = json.loads(qb.publish_sweep(spec, tmp_path / "out").read_text())
    assert (facts["runs"], facts["done"], facts["bytes"]) == (
        2,
        2,
        spec.with_suffix(".nc").stat().st_size,
    )
    assert facts["command"].startswith("qbkit sweep s.yaml ")  # no folder of this machine
    again = qb.load_sweep(spec)
    assert again.label.values.tolist() == made.label.values.tolist()
    for name in ("throughput_mbps", "point_delay_ms", "series_throughput_mbps"):
        xr.testing.assert_allclose(again[name], made[name].astype(float), atol=0.0051)
    with pytest.raises(StoreError, match=r"holds specs of sweeps; name one of them: s\.yaml"):
        qb.load_sweep(tmp_path)
    for part in (".nc", ".json"):
        xr.testing.assert_identical(qb.load_sweep(spec.with_suffix(part)), again)
    spec.with_suffix(".nc").write_bytes(b"other")
    with pytest.raises(StoreError, match="is not the file that was published"):
        qb.load_sweep(spec)


@pytest.mark.guest
def test_a_sweep_with_a_new_value_is_published_without_the_folder_of_its_old_runs(tmp_path):
    """Of lone flows, which no other flow is the reference of."""
    spec = tmp_path / "s.yaml"
    flows = {"flows.0": ["tcp:cubic"]}
    base = {"bottleneck": {"rate_mbps": 10, "rtt_ms": 20}, "flows": ["tcp:cubic"], "duration_s": 2}
    document = {"name": "x", "base": base, "sweep": {"seed": [1], **flows}}
    spec.write_text(json.dumps(document))
    run_sweep(Sweep.from_file(spec), tmp_path / "first")
    qb.publish_sweep(spec, tmp_path / "first")
    old = qb.load_sweep(spec)
    spec.write_text(json.dumps({**document, "sweep": {"seed": [2, 1], **flows}}))
    with pytest.raises(StoreError, match=r"was edited since its results were published \(seed\)"):
        qb.load_sweep(spec)
    assert estimate(Sweep.from_file(spec), published=old)["missing"] == 1
    command = ["sweep", str(spec), "--out", str(tmp_path / "second"), "--extend", "--json"]
    done = CliRunner().invoke(group, command, catch_exceptions=False, standalone_mode=False)
    assert json.loads(done.stdout)["ran"] == 1
    extended = qb.load_sweep(tmp_path / "second")
    spec.write_text(json.dumps({**document, "sweep": {"seed": [2, 1, 3], **flows}}))
    facts = json.loads(qb.publish_sweep(spec, tmp_path / "second").read_text())
    assert (facts["runs"], facts["done"]) == (3, 2)
    new = qb.load_sweep(spec)
    assert new.done.squeeze("flows.0").values.tolist() == [True, True, False]
    xr.testing.assert_equal(new.sel(seed=[1]), old)
    assert extended.run.values.tolist() == new.run.sel(seed=[2, 1]).values.tolist()
    spec.with_suffix(".nc").write_bytes(b"other")
    with pytest.raises(StoreError, match="is not the file that was published"):
        qb.publish_sweep(spec, tmp_path / "second")


@pytest.mark.guest
def test_a_published_run_of_another_version_stays_until_it_runs_again(tmp_path):
    spec = tmp_path / "s.yaml"
    base = {"bottleneck": {"rate_mbps": 10, "rtt_ms": 20}, "flows": ["tcp:cubic"], "duration_s": 2}
    document = {"name": "x", "base": base, "sweep": {"seed": [1, 2]}}
    spec.write_text(json.dumps(document))
    made = run_sweep(Sweep.from_file(spec), tmp_path / "now").cube
    write_cube(made.assign(run=("seed", ["earlier 1", "earlier 2"])), spec)
    spec.write_text(json.dumps({**document, "sweep": {"seed": [1]}}))
    run_sweep(Sweep.from_file(spec), tmp_path / "again")
    spec.write_text(json.dumps(document))
    with pytest.warns(UserWarning, match="1 of 2 runs stay as they were published"):
        qb.publish_sweep(spec, tmp_path / "again")
    published = qb.load_sweep(spec)
    assert published.done.values.tolist() == [True, True]
    assert published.run.values.tolist() == [made.run.values[0], "earlier 2"]


@pytest.mark.guest
def test_a_published_run_stays_where_its_stack_is_not_ready(tmp_path, monkeypatch):
    monkeypatch.delenv("QBKIT_MVFST", raising=False)
    base = {"bottleneck": {"rate_mbps": 10, "rtt_ms": 20}, "flows": ["tcp:cubic"], "duration_s": 2}
    ran = Sweep(name="x", base=base, sweep={"seed": [1]})
    made = run_sweep(ran, tmp_path / "out").cube
    absent = Sweep(name="x", base={**base, "flows": ["mvfst:cubic"]}, sweep={"seed": [1]})
    with pytest.raises(StackNotReady):
        gather(absent, tmp_path / "out")
    published = made.assign_attrs(sweep=absent.model_dump_json())
    with pytest.warns(UserWarning, match="a stack is not ready here"):
        assert gather(absent, tmp_path / "out", published=published).done.all()
    # One that was never made there stays missing.
    more = absent.model_copy(update={"sweep": {"seed": [1, 2]}})
    with pytest.warns(UserWarning, match="1 of 2 runs stay as they were published"):
        found = gather(more, tmp_path / "out", published=published)
    assert found.done.values.tolist() == [True, False]


def test_runs_published_and_opened_again(tmp_path):
    run = synthetic_run()
    qb.publish_runs({"a:cubic": run}, tmp_path, facts={"why": "a test"})
    runs = qb.load_runs(tmp_path)
    assert published_index(tmp_path)["why"] == "a test"
    xr.testing.assert_equal(runs["a:cubic"].throughput_mbps, run.throughput_mbps)
    assert "packet_time_s" not in runs["a:cubic"]
    (tmp_path / "a-cubic.nc").unlink()
    with pytest.raises(StoreError, match="is not the file that was published"):
        qb.load_runs(tmp_path)


def test_a_run_is_published_without_a_warning_of_the_tables_that_it_had(tmp_path):
    run = synthetic_run().drop_vars("packet_time_s")
    run.encoding["unlimited_dims"] = {"packet"}  # as xarray notes of a file with an empty table
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        qb.publish_runs({"a:cubic": run}, tmp_path)


def imported_run(seed: int) -> xr.Dataset:
    """As `qb.read_pcaps` makes it: of no experiment, with no seed."""
    return synthetic_run(seed=seed, duration_s=2).assign_attrs(spec="", seed=-1, engine="imported")


def test_captures_from_elsewhere_are_published_and_opened_again(tmp_path):
    runs = [imported_run(seed) for seed in (1, 2, 3)]
    study = qb.Study("theirs", "ours", runs[:2], runs[2:])
    index = json.loads(qb.publish_study(study, tmp_path).read_text())
    assert [file["provenance"]["spec"] for file in index["files"].values()] == [None] * 3
    again = qb.load_study(tmp_path)
    assert (len(again.tests), len(again.references)) == (2, 1)
    for found, made in zip(again.tests + again.references, runs, strict=True):
        xr.testing.assert_equal(found.throughput_mbps, made.throughput_mbps)
    with pytest.raises(StoreError, match=r"a:b and a-b are both .*; rename one"):
        qb.publish_runs({"a:b": runs[0], "a-b": runs[1]}, tmp_path)


def test_a_study_whose_windows_are_shorter_than_its_bins_keeps_its_packets(tmp_path):
    runs = [synthetic_run(rtt_ms=rtt_ms, duration_s=8) for rtt_ms in (9, 9, 10)]
    study = qb.Study("a", "b", runs[:1], runs[1:2])
    qb.publish_study(study, tmp_path)
    assert qb.load_study(tmp_path).assess().conformance_pooled == study.assess().conformance_pooled
    assert "packet_time_s" not in without_tables(runs[2])


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS, ids=lambda p: p.stem)
def test_what_this_project_publishes_is_complete(spec):
    cube, facts = qb.load_sweep(spec), json.loads(spec.with_suffix(".json").read_text())
    assert int(cube.done.sum()) == facts["done"] > 0
    assert f"qbkit sweep data/{spec.parent.name}/{spec.name} " in facts["command"]
    sweep = Sweep.from_file(spec)
    assert len(sweep) == facts["runs"]
    # The link was full, or the figures say by how much it was not.
    link = next(iter(sweep.points())).experiment.bottleneck
    throughput_mbps = float(cube.throughput_mbps.sum("flow").where(cube.done).median())
    assert throughput_mbps > 0.95 * link.rate_mbps


@pytest.mark.slow
@pytest.mark.parametrize("spec", sorted(DATA.glob("conformance*/*.yaml")), ids=lambda p: p.stem)
def test_published_hulls_are_those_of_the_published_points(spec):
    cube = qb.load_sweep(spec)
    hulls = qb.metrics.hull_table(qb.metrics.cell_envelopes(cube))
    assert hulls.hull_delay_ms.notnull().any()
    for name, made in hulls.items():
        xr.testing.assert_allclose(cube[name], made, atol=0.0051)


@pytest.mark.parametrize("name", ["a/b", "../x", "", ".", 5])
def test_a_name_that_is_none_of_a_file_is_refused_before_anything_is_written(tmp_path, name):
    run = synthetic_run(duration_s=2)
    for publish, what in ((qb.publish_runs, run), (qb.publish_tables, run.qb.summary())):
        with pytest.raises(SpecError, match="names what is published, and so its file"):
            publish({"fine": what, name: what}, tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
    (tmp_path / "folder").write_text("a file")
    with pytest.raises(StoreError, match="folder cannot be written: File exists"):
        qb.publish_runs({"fine": run}, tmp_path / "folder")
    with pytest.raises(StoreError, match="folder cannot be written: File exists"):
        qb.publish_tables({}, tmp_path / "folder")


def test_what_is_not_published_says_so(tmp_path):
    with pytest.raises(StoreError, match=r"no results of .* are published; run it, or publish it"):
        qb.load_sweep(tmp_path / "s.yaml")


def test_published_parameters_are_whole_and_those_of_the_kernel_are_its_constants():
    table = pd.read_csv(DATA / "parameters.csv", dtype=str)
    assert {*PARAMETERS} == {*table.parameter}
    assert (table.groupby("implementation").parameter.nunique() == len(PARAMETERS)).all()
    assert not table.duplicated(["implementation", "parameter"]).any()
    constants = table.pivot(index="implementation", columns="parameter", values="value")
    assert constants.loc["tcp:cubic", "growth"] == "cubic"
    assert float(constants.loc["tcp:cubic", "decrease_factor"]) == pytest.approx(0.7, abs=0.01)
    assert float(constants.loc["tcp:cubic", "cubic_c"]) == pytest.approx(0.4, abs=0.1)
    assert constants.loc["tcp:reno", "growth"] == "linear"
    assert float(constants.loc["tcp:reno", "decrease_factor"]) == pytest.approx(0.5, abs=0.01)
    assert constants.loc["tcp:bbr", "growth"] == "probing"
    assert float(constants.loc["tcp:bbr", "probe_cycle_rtts"]) == pytest.approx(8, abs=0.5)


@pytest.mark.guest
def test_the_script_of_the_parameters_writes_one_implementation_and_keeps_the_others(tmp_path):
    out = tmp_path / "parameters.csv"
    out.write_text(
        "implementation,seeds,parameter,value\ntcp:reno,9,gone,1\nother:cubic,2,growth,linear\n"
    )
    words = [sys.executable, DATA / "make.py", "tcp:reno", "--seeds", "1", "--out", out]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "tcp:reno: done\n"
    table = pd.read_csv(out, dtype=str)
    other, mine = table[table.implementation == "other:cubic"], table.set_index("parameter").value
    assert other[["seeds", "parameter", "value"]].values.tolist() == [["2", "growth", "linear"]]
    assert len(table) == 1 + len(PARAMETERS)
    assert float(mine["decrease_factor"]) == pytest.approx(0.5, abs=0.01)
    assert set(table[table.implementation == "tcp:reno"].seeds) == {"1"}


@pytest.mark.slow
def test_the_table_of_controllers_is_that_of_the_data():
    words = [sys.executable, str(DATA / "controllers" / "make.py")]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    text = (DATA.parent / "docs/howto/own-controller.md").read_text()
    rows = [line for line in printed.splitlines() if line.startswith("| ")]
    assert len(rows) >= 9
    assert [row for row in rows if row not in text] == []
