"""Published points are found, chosen, run again and compared."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from synthetic import synthetic_run

import qbkit as qb
from qbkit import measurement
from qbkit.cli import group
from qbkit.cli.reproduce import _drawn
from qbkit.errors import StoreError
from qbkit.store.index import name_in_index
from qbkit.store.published import write_cube
from qbkit.studies.reproduction import (
    Point,
    Precision,
    Recipe,
    Reproduced,
    made_with,
    published_points,
    without_points,
)
from qbkit.studies.reproduction.check import Change, _worst, changes, compared
from qbkit.studies.reproduction.inputs import in_words
from qbkit.studies.reproduction.sources import UNKNOWN, _of_file
from qbkit.studies.reproduction.values import values_of

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


def test_what_is_measured_otherwise_today_is_not_compared(tmp_path: Path):
    run, names = synthetic_run(), {}
    for version in (measurement.VERSION - 1, measurement.VERSION):
        path = tmp_path / f"{version}.nc"
        qb.save_run(run.assign_attrs(measurement_version=version), path)
        names[version] = {name.split(" of ")[-1] for name in _of_file(path)}
    then, now = names.values()
    assert now - then == {"goodput_mbps"}
    assert "throughput_mbps" in then


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
    then = {"a": 1.23, "b": math.nan, "c": math.inf, "d": 5.0, "e": "cubic"}
    same = {**then, "a": 1.2349, "more": 1.0}
    rounded = Precision(digits=6, step=0.01)
    assert changes(then, same, rounded) == []
    (moved,) = changes(then, {**same, "a": 1.236}, rounded)
    assert str(moved) == "a is 1.236 instead of 1.23 (0.49 %)"
    assert [c.name for c in changes(then, {**same, "b": 1.0, "c": 2.0}, rounded)] == ["b", "c"]
    (word,) = changes(then, {**same, "e": "linear"}, rounded)
    assert str(word) == "e is linear instead of cubic"
    # 1234 stands for 1233.5 to 1234.5, and 0.001234 for as much less.
    for scale in (1.0, 1e-6):
        assert Precision(digits=4).agrees(1234 * scale, 1234.49 * scale)
        assert not Precision(digits=4).agrees(1234 * scale, 1235.1 * scale)


def test_the_values_of_rows_are_named_by_their_words_or_numbers():
    row = {"flow": "tcp:reno", "share": 0.5, "cpu_s": 3.0, "run": "abc"}
    assert values_of(row) == {"flow": "tcp:reno", "share": 0.5}
    assert math.isnan(values_of({"unit": ""})["unit"])  # as an empty field of a table
    rows = [{"of": "a", "parameter": "x", "value": "3"}, {"of": "a", "parameter": "y", "value": 2}]
    named = values_of(rows)
    assert (named["rows"], named["value of x"], named["value of y"]) == (2, 3.0, 2.0)
    assert values_of([{"value": 1.5}, {"value": 2.5}])["value of row 2"] == 2.5


def test_a_version_that_differs_is_named_by_the_parts_that_do():
    then = "1.40.0, driver 5f, preload 78, quic-go 0.65.0, driver 0c"
    assert in_words(then, then.replace("driver 0c", "driver 76")) == (
        "driver 76 of quic-go 0.65.0 instead of 0c"
    )
    both = then.replace("driver 5f", "driver d8").replace("driver 0c", "driver 76")
    assert in_words(then, both) == (
        "driver d8 instead of 5f, driver 76 of quic-go 0.65.0 instead of 0c"
    )
    assert in_words("156.0.79-1, driver 57", "156.0.108-1, driver 57") == (
        "156.0.108-1 instead of 156.0.79-1"
    )
    assert in_words("1.0, driver a", "1.0") == "1.0 instead of 1.0, driver a"


TODAY = {"measurement version": "2", "tcp": "driver a", "tc": "6.1.0"}


def a_point(tables: Path, inputs: dict[str, str]) -> Point:
    return replace(next(iter(published_points(tables / "shares.csv"))), inputs=inputs)


@pytest.mark.parametrize(
    ("verdict", "published", "words"),
    [
        ("differs", {}, "with which versions it was made is not published"),
        (
            "differs",
            {"measurement version": "2", "tcp": "driver b"},
            "tcp: driver a instead of b; not published: tc",
        ),
        (
            "differs",
            {"measurement version": "2", "tcp": "driver a"},
            "no published input differs; not published: tc",
        ),
        ("differs", TODAY, "no published input differs"),
        (
            "the same",
            {"measurement version": "1", "other": "1"},
            "measurement version: 2 instead of 1",
        ),
        ("the same", {}, ""),
    ],
)
def test_inputs_that_differ_or_are_not_published_are_named(tables, verdict, published, words):
    assert Reproduced(a_point(tables, published), verdict, "", TODAY).inputs_text == words


def test_the_largest_change_is_one_of_the_whole_run_beside_the_published_seeds(tables: Path):
    ranges = {"goodput_mbps of a": (1.5, 3.0)}
    point = replace(a_point(tables, {}), ranges=lambda: ranges)
    second = Change("throughput_mbps of a in second 3", 1.0, 9.0)
    assert _worst([second], point) == f"{second}"
    assert _worst([second, Change("goodput_mbps of a", 2.0, 2.5)], point) == (
        "goodput_mbps of a is 2.5 instead of 2 (25 %); 1.5 to 3 with the published seeds"
    )


def test_the_range_of_the_published_seeds_is_that_of_the_same_setting():
    points = [
        p for p in published_points(DATA / "controllers/cubic.yaml") if p.has({"rtt_ms": "50"})
    ]
    alike = [p for p in points if p.name.rpartition(",")[0] == points[0].name.rpartition(",")[0]]
    name = next(n for n in points[0].published() if n.startswith("goodput_mbps of "))
    values = [p.published()[name] for p in alike]
    assert len(alike) == 5
    assert alike[0].ranges()[name] == (min(values), max(values))


def test_a_file_names_its_kernel_and_tools_from_now_on(tmp_path: Path):
    tools = {"ip": "6.1.0", "python3": "3.11.2"}
    facts = {"kernel_build": "abc", "tool_versions": json.dumps(tools), "created": "2026-11-21T14"}
    qb.publish_runs({"one": synthetic_run().assign_attrs(facts)}, tmp_path)
    (point,) = published_points(tmp_path)
    # A run that names none.
    assert point.inputs["measurement version"] == "1 (qbkit of 2026-11-21)"
    assert point.inputs["kernel build"] == "abc"
    assert {name: point.inputs[name] for name in tools} == tools


MAKE = """
from qbkit import Bottleneck, Experiment
from qbkit.studies.reproduction import Recipe, Table

REPRODUCIBLE = {"shares.csv": Table(), "windows.csv": Table(by=("flow",))}
OTHER = {"by-hand*.csv": "it was typed"}


def again(table, row):
    runs = [Experiment(bottleneck=Bottleneck(buffer_bdp=1), flows=[row["flow"]], seed=s)
            for s in (1, 2)]
    return Recipe([runs], lambda found: {"share": 0.5}, {"flow": row["flow"]})
"""


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A folder with tables, one of which a program can make again row by row."""
    for name, text in {
        "make.py": MAKE,
        "shares.csv": "flow,share\ntcp:cubic,0.5\ntcp:bbr,0.25\n",
        "windows.csv": "flow,window\ntcp:reno,10\ntcp:reno,20\ntcp:bbr,30\n",
        "by-hand-1.csv": "a\n1\n",
        "other.csv": "a\n1\n",
        "notes.md": "Notes.",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_table_has_a_point_for_each_row_or_group_of_rows(tables: Path):
    rows = list(published_points(tables / "shares.csv"))
    assert [point.published() for point in rows] == [
        {"flow": "tcp:cubic", "share": 0.5},
        {"flow": "tcp:bbr", "share": 0.25},
    ]
    assert rows[0].values([]) == {"flow": "tcp:cubic", "share": 0.5}
    assert rows[0].name.endswith("shares.csv: tcp:cubic, 20 Mbit/s, 50 ms, 1 bdp, seeds 1 to 2")
    groups = list(published_points(tables / "windows.csv"))
    assert [point.published()["rows"] for point in groups] == [2, 1]
    assert len(list(published_points(tables))) == 4


def test_a_file_names_what_it_was_made_with_in_the_index_beside_it(tables: Path):
    run = {"kernel_version": "7.2", "kernel_build": "81", "tool_versions": '{"ip": "6.1"}'}
    versions = [{**run, "stack_versions": json.dumps({"tcp": "7.2"})}]
    versions.append({**run, "stack_versions": json.dumps({"quinn": "0.11"})})
    before = published_points(tables / "shares.csv")
    assert [point.inputs for point in before] == [{}, {}]
    name_in_index(tables / "shares.csv", made_with(versions))
    name_in_index(tables / "other.csv", {})
    assert [point.inputs for point in published_points(tables / "shares.csv")] == 2 * [
        {
            **{"tcp": "7.2", "quinn": "0.11", "ip": "6.1", "kernel": "7.2", "kernel build": "81"},
            "measurement version": str(measurement.VERSION),
        }
    ]
    assert all(point.inputs == {} for point in published_points(tables / "windows.csv"))


def test_a_folder_is_also_that_where_the_command_runs(tables: Path, monkeypatch):
    monkeypatch.chdir(tables)
    assert len(list(published_points("."))) == len(list(published_points(tables))) == 4


def test_a_row_of_which_nothing_comes_out_again_is_not_the_same(tables: Path):
    make = (tables / "make.py").read_text()
    (tables / "make.py").write_text(make.replace('"share": 0.5', '"shares": 0.5'))
    found = compared(next(iter(published_points(tables / "shares.csv"))), [])
    assert (found.verdict, found.reason) == (
        "failed",
        "nothing can be compared: flow, share are published, and its recipe gives flow, shares",
    )


@pytest.mark.parametrize(
    ("file", "then", "now", "sentence"),
    [
        ("make.py", "return Recipe", "Recipe", "returns no Recipe with a run"),
        ("make.py", "Table()", "4", "REPRODUCIBLE has a Table for each file"),
        ("make.py", "Table()", "Table(Precision(digits=0))", "digits = 0, step = 0.0: give 1"),
        ("make.py", "import Rec", "import Precision, Nothing, Rec", "make.py cannot be loaded"),
        ("make.py", '{"share": 0.5}', "found[7]", "cannot measure the runs (IndexError: "),
        ("shares.csv", "flow,share\ntcp:cubic,0.5\ntcp:bbr,0.25\n", "", "is damaged or no table"),
        ("shares.csv", "0.25", "0.35", "is not the file that was published"),
        ("windows.csv", "flow", "flows", "windows.csv has no column flow, by which its rows"),
    ],
)
def test_a_mistake_in_a_folder_of_tables_is_one_sentence(tables: Path, file, then, now, sentence):
    name_in_index(tables / "shares.csv", {})
    changed = (tables / file).read_text().replace(then, now)
    if "Precision" in now:
        changed = changed.replace("import Recipe", "import Precision, Recipe")
    (tables / file).write_text(changed)
    if sentence.startswith("is damaged"):
        (tables / "index.json").unlink()
    with pytest.raises(StoreError) as error:
        for point in published_points(tables):
            point.values([])
    assert sentence in str(error.value)


def test_what_is_being_run_is_said_before_it_ends(tables: Path, monkeypatch: pytest.MonkeyPatch):
    said = []

    def reproduce(point: Point) -> Reproduced:
        said.append(point.name)
        raise StoreError("stop")

    monkeypatch.setattr("qbkit.studies.reproduction.reproduce", reproduce)
    monkeypatch.setattr("qbkit.testbed.engines.choose", lambda: None)
    done = CliRunner().invoke(group, ["reproduce", str(tables / "shares.csv")])
    cost = "runs: 4; those that are not stored take up to about 1 processor min"
    assert f"{cost}\n1 of 2: {said[0]}: " in done.output


def test_each_file_without_a_point_has_a_reason(tables: Path):
    assert without_points(tables) == [
        (tables / "by-hand-1.csv", "it was typed"),
        (tables / "other.csv", "no make.py says how it was made"),
    ]
    name_in_index(tables / "other.csv", {})
    assert without_points(tables)[1][1] == "no make.py says how it was made"


@pytest.mark.slow
def test_everything_published_has_points_or_a_reason():
    assert [file for file, reason in without_points(DATA) if reason == UNKNOWN] == []
    points = list(published_points(DATA))
    tops = {point.source.relative_to(DATA).parts[0] for point in points}
    assert tops == {
        *("cases", "changing_networks", "checks", "conformance", "controllers"),
        "conformance_100_mbps_10_ms",
        *("conformance_100_mbps_50_ms", "conformance_120_s", "envelope", "fq_detection"),
        *("behaviour", "gallery", "identify", "interactions", "l4s", "my_controller", "quic_dc"),
        *("parameters.csv", "releases", "root_cause", "shares", "start", "web_objects"),
        "web_pages",
    }
    assert len(points) > 25_000
    rng = np.random.default_rng(0)
    for i in rng.choice(len(points), 40):
        assert points[i].published()
    drawn = {
        point.source.relative_to(DATA).parts[0] for point in _drawn(points, DATA, len(tops), 1)
    }
    assert drawn == tops  # a sample leaves no folder out as long as it has room


@pytest.mark.guest
@pytest.mark.parametrize(
    ("table", "chosen"),
    [
        ("behaviour/behaviour.csv", ["--flow", "quinn:bbr"]),
        ("identify/features.csv", ["--flow", "tcp:bbr", "--rate-mbps", "6"]),
        ("parameters.csv", ["--flow", "tcp:cubic"]),
    ],
)
def test_published_inferences_are_those_of_today(table: str, chosen: list[str]):
    """The atlas and `qbkit identify` read them beside what today's rules infer."""
    status, (row,) = reproduce(str(DATA / table), *chosen)
    assert (status, row["verdict"]) == (0, "the same"), row["reason"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["controllers/cubic.yaml"], "has 40 such points; name one by --flow"),
        (
            ["controllers/cubic.yaml", "--flow", "qbkit:cubc"],
            "has no such point: none has flow qbkit:cubc (did you mean qbkit:cubic?); there are ",
        ),
        (["controllers/cubic.yaml", "--seed", "9"], "none has seed 9; there are 1, 2, 3, 4, 5"),
        (
            ["controllers/cubic.yaml", "--where", "colour=red"],
            "an experiment has no field 'colour'",
        ),
        (["controllers/cubic.yaml", "--where", "qdisc"], "--where qdisc should be FIELD=VALUE"),
        (["controllers/cubic.yaml", "--seed", "1", "--where", "seed=2"], "seed is 1 and 2;"),
        (["controllers/cubic.yaml", "--sample", "0"], "0 is not in the range x>=1"),
        (["controllers/cubic.yml"], "does not exist; give data, a folder in it, or a published"),
        (["external.csv"], "(external.csv: it says how programs were built outside of qbkit)"),
        (["start/one-second.nc"], "it holds packets of the run beside it"),
        (["README.md"], "has no published point (it has no results)"),
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


def test_a_sweep_whose_facts_are_none_is_no_published_sweep(tmp_path):
    (tmp_path / "sweep.yaml").write_text("name: x")
    for content in (b"", b"\xe2 no text", b"[1]", b"{}"):
        (tmp_path / "sweep.json").write_bytes(content)
        with pytest.raises(StoreError, match="it is no published sweep"):
            list(published_points(tmp_path / "sweep.yaml"))


def test_a_point_counts_flows_that_are_alike_and_leaves_out_what_is_empty():
    experiment = qb.Experiment(flows=["tcp:bbr", *["tcp:cubic"] * 15])
    recipe = Recipe([[experiment]], lambda _: {}, {"competitor": "", "others": 15})
    point = Point(Path("shares.csv"), recipe, dict)
    assert "shares.csv: tcp:bbr + 15 × tcp:cubic, " in point.name
    assert "competitor" not in point.name
    assert "others 15" in point.name


@pytest.mark.parametrize(
    ("others", "end"), [(0, ")"), (1, ", and 1 more number"), (2, ", and 2 more numbers")]
)
def test_how_many_numbers_moved_is_in_words(others: int, end: str):
    names = "abc"[: others + 1]
    recipe = Recipe([[qb.Experiment(flows=["tcp:cubic"])]], lambda _: dict.fromkeys(names, 2.0))
    point = Point(Path("a.csv"), recipe, lambda: dict.fromkeys(names, 1.0))
    assert compared(point, [synthetic_run()]).reason.endswith(end)
