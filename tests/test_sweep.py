"""Sweeps: the product, its bad input, and real ones: resumed, killed, two at once, failing."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import qbkit as qb
from qbkit.errors import EngineError, MetricError, SpecError, StoreError
from qbkit.execution import cluster
from qbkit.execution.runner import namer
from qbkit.execution.sweeps import estimate, run_sweep
from qbkit.spec import Bottleneck, Flow
from qbkit.spec.sweep import Sweep
from qbkit.studies.results import reference_of

BASE = {
    "bottleneck": {"rate_mbps": 10, "rtt_ms": 20},
    "flows": ["tcp:cubic", "tcp:reno"],
    "duration_s": 8,
}
DATA = Path(__file__).parents[1] / "data"
QBKIT = str(Path(sys.executable).with_name("qbkit"))


def sweep(**fields: list) -> Sweep:
    return Sweep(name="test", base=BASE, sweep={k.replace("__", "."): v for k, v in fields.items()})


def test_the_product_with_the_last_field_fastest():
    points = list(
        sweep(bottleneck__buffer_bdp=[0.5, 2], flows__1=["tcp:bbr"], seed=[7, 8]).points()
    )
    assert [p.index for p in points] == [(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1)]
    assert [p.experiment.seed for p in points] == [7, 8, 7, 8]
    assert [p.experiment.bottleneck.buffer_bdp for p in points] == [0.5, 0.5, 2, 2]
    assert {tuple(p.experiment.labels) for p in points} == {("tcp:cubic", "tcp:bbr")}


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_as_many_points_as_the_product_says(counts: list[int]):
    fields = ["seed", "duration_s", "bottleneck.rtt_ms"]
    values = {f: [10 + i for i in range(n)] for f, n in zip(fields, counts, strict=False)}
    made = Sweep(name="x", base=BASE, sweep=values)
    hashes = [p.experiment.hash for p in made.points()]
    assert len(set(hashes)) == len(hashes) == len(made) == np.prod(counts)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"sweep": {}}, "no field is swept; give at least one with its values; a sweep is w"),
        ({"sweep": {"seed": []}}, "seed has no values"),
        ({"sweep": {"seed": [1, 1]}}, "seed has a value twice"),
        ({"sweep": {"bottleneck.buf": [1]}}, "no field bottleneck.buf; the fields there are: rate"),
        ({"sweep": {"flows.2": ["tcp:bbr"]}}, "no field flows.2: the base has 2 flows, from 0 on"),
        ({"sweep": {"bottleneck.rate_mbps": [-1]}}, "rate_mbps = -1"),
        ({"sweep": {"flows.0": ["tcp"]}}, "'tcp' is not a flow"),
        ({"sweep": {"flows.00": ["tcp:bbr"]}}, "no field flows.00: the base has 2 flows"),
        (
            {"sweep": {"bottleneck.buffer_bdp": [1, 2], "bottleneck.buffer_bytes": [30000]}},
            "bottleneck.buffer_bdp and bottleneck.buffer_bytes both set the buffer; sweep one of",
        ),
        (
            {"sweep": {"flows.0.controller": ["bbr"], "flows.0": ["tcp:cubic"]}},
            r"flows.0.controller and flows.0 both set flows.0.controller; sweep one of them",
        ),
        (
            {"sweep": {"duration_s": [8, 8.0]}},
            "{duration_s: 8} and {duration_s: 8.0} are the same run; drop one",
        ),
        ({"sweep": {"seed": [1]}, "bese": {}}, "bese"),
        ({"sweep": {"attacks.0": ["1 reset on-path"]}}, "attacks.0: the base has 0 attacks, from"),
        ({"sweep": {"seed": [1]}, "settle_s": 8}, "settle_s is 8 s, and a run lasts 8 s; give le"),
        ({"sweep": {"seed": [1]}, "settle_s": True}, "settle_s: must be a number"),
        ({"sweep": {"bottleneck.preset": ["lan"]}}, "there is no preset 'lan'; known are geo"),
        (
            {"sweep": {"flows.0": ["tcp:bbr?app=bulk"], "flows.0.app": ["rate mbps=5"]}},
            "flows.0 and flows.0.app both set flows.0.app; sweep one of them",
        ),
    ],
)
def test_bad_sweeps_are_one_sentence(data: dict, words: str):
    with pytest.raises(SpecError, match=words):
        list(Sweep(**{"name": "x", "base": BASE, **data}).points())


@pytest.mark.parametrize("text", ["a: [", "- 1", "\x00"])
def test_a_file_that_holds_no_sweep(tmp_path: Path, text: str):
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(SpecError, match=r"s\.yaml"):
        Sweep.from_file(tmp_path / "s.yaml")


BASE_FLOW = {
    **{"stack": "quinn", "controller": "cubic", "label": "mine"},
    **{"start_s": 2, "stop_s": 7, "extra_rtt_ms": 10, "options": {"segmentation": False}},
}


@given(st.permutations(["flows.0", "flows.0.options.initial_window_packets", "flows.0.start_s"]))
def test_a_swept_flow_keeps_the_rest_of_the_base_whatever_the_order(fields: list[str]):
    values = {
        "flows.0": ["quinn:bbr", "quiche:reno"],
        "flows.0.options.initial_window_packets": [20],
        "flows.0.start_s": [3],
    }
    made = Sweep(
        name="x", base={**BASE, "flows": [BASE_FLOW]}, sweep={f: values[f] for f in fields}
    )
    for point, name in zip(made.points(), values["flows.0"], strict=True):
        (flow,) = point.experiment.flows
        assert flow.name == name
        rest = flow.model_dump(exclude={"stack", "controller"})
        options = {"segmentation": False, "initial_window_packets": 20}
        others = {
            "start_s": 3,
            "stop_s": 7,
            "extra_rtt_ms": 10,
            "label": "mine",
            "options": options,
        }
        assert {key: rest[key] for key in others} == others


def test_the_direction_of_a_flow_can_be_swept():
    made = Sweep(name="x", base=BASE, sweep={"flows.0.direction": ["forward", "reverse"]})
    found = [point.experiment.flows[0].direction for point in made.points()]
    assert found == ["forward", "reverse"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("app", ["bulk", "rate mbps=2", "objects 0:5"]),
        ("receive_window_kb", [50, 100]),
        ("read_mbps", [1, 2]),
        ("receiver", ["optimistic", "withholds every_ms=5"]),
        ("role", ["client", "server"]),
        ("resume", ["0rtt", "1rtt kb=5"]),
        ("start_s", [0, 1]),
    ],
)
def test_every_field_of_a_flow_can_be_swept(name: str, values: list):
    points = sweep(**{f"flows__1__{name}": values}).points()
    wanted = [Flow(stack="tcp", controller="reno", **{name: value}) for value in values]
    assert [point.experiment.flows[1] for point in points] == wanted


def test_presets_can_be_swept_and_fields_of_the_base_win():
    base = {**BASE, "bottleneck": {"rtt_ms": 35}}
    fields = {"bottleneck.preset": ["lte", "wifi seed=2"], "bottleneck.return_rate_mbps": [9, 12]}
    points = list(Sweep(name="x", base=base, sweep=fields).points())
    assert [point.experiment.bottleneck for point in points] == [
        Bottleneck(preset=preset, rtt_ms=35, return_rate_mbps=mbps)
        for preset in ("lte", "wifi seed=2")
        for mbps in (9, 12)
    ]
    with pytest.raises(SpecError, match="needs a base whose bottleneck is names with their"):
        list(Sweep(name="x", base={**base, "bottleneck": Bottleneck()}, sweep=fields).points())


@pytest.mark.parametrize(
    ("link", "fields"),
    [
        ({"preset": "lte"}, {"bottleneck.rate_mbps": [5]}),
        ({}, {"bottleneck.preset": ["geo", "lte"], "bottleneck.rate_mbps": [5]}),
        ({"rate_mbps": 5}, {"bottleneck.preset": ["geo", "lte"]}),
    ],
)
def test_a_value_that_the_schedule_of_a_preset_makes_void_is_refused(link: dict, fields: dict):
    made = Sweep(name="x", base={**BASE, "bottleneck": link}, sweep=fields)
    with pytest.raises(SpecError, match="write preset = 'lte mean_mbps=5'"):
        list(made.points())


def test_a_direction_of_losses_needs_a_loss_in_the_base_or_in_the_sweep():
    both, losses = {"loss_direction": "both"}, {"bottleneck.loss_percent": [0, 1]}
    made = Sweep(name="x", base={**BASE, "bottleneck": both}, sweep=losses)
    links = [point.experiment.bottleneck for point in made.points()]
    assert [(link.loss_percent, link.loss_direction) for link in links] == [
        (0, "both"),
        (1, "both"),
    ]
    for base, fields in ((both, {"seed": [1]}), ({}, {"bottleneck.loss_direction": ["both"]})):
        with pytest.raises(SpecError, match="loss_direction both without a loss loses nothing"):
            list(Sweep(name="x", base={**BASE, "bottleneck": base}, sweep=fields).points())


def test_numpy_numbers_of_a_sweep_are_those_of_python():
    base = {**BASE, "duration_s": np.float64(8), "bottleneck": {"buffer_packets": np.int64(9)}}
    made = Sweep(name="x", base=base, sweep={"seed": np.arange(2), "bottleneck.rtt_ms": [5.5]})
    assert [type(value) for value in made.sweep["seed"]] == [int, int]
    assert Sweep.model_validate_json(made.model_dump_json()) == made


def test_options_of_the_way_back_can_be_swept():
    link = {"return_rate_mbps": 1, "return_qdisc": "cake"}
    field = "bottleneck.return_qdisc_options.ack-filter"
    made = Sweep(name="x", base={**BASE, "bottleneck": link}, sweep={field: [True, False]})
    found = [point.experiment.bottleneck.return_qdisc_options for point in made.points()]
    assert found == [{"ack-filter": True}, {"ack-filter": False}]


@pytest.mark.guest  # whose kernel is part of a run's name
def test_an_option_that_the_swept_stack_lacks_is_refused_before_anything_runs():
    base = {
        **BASE,
        "flows": [{"stack": "tcp", "controller": "cubic", "options": {"hystart": False}}],
    }
    made = Sweep(name="x", base=base, sweep={"flows.0": ["tcp:cubic", "quic-go:cubic"]})
    name_of = namer("virtual")
    with pytest.raises(SpecError, match=r"quic-go has no option hystart .*; supported: qlog"):
        [name_of(point.experiment) for point in made.points()]


SWEEPS = sorted(path for path in DATA.glob("*/*.yaml") if path.with_suffix(".nc").exists())


@pytest.mark.slow
@pytest.mark.parametrize("spec", SWEEPS, ids=lambda p: p.stem)
def test_published_sweeps_still_mean_the_runs_that_were_published(spec: Path):
    made, cube = Sweep.from_file(spec), qb.load_sweep(spec)
    for field, values in made.sweep.items():
        texts = [str(value) for value in values]  # as which a cube holds true and false
        kept = texts if isinstance(values[0], bool) else values
        assert cube[field].values.tolist() == kept
    labels = cube.label.transpose(*made.sweep, "flow").values
    done = cube.done.transpose(*made.sweep).values
    for point in made.points():
        if done[point.index]:
            # Where flows differed in options only, older sweeps numbered them.
            numbered = [label.partition(" #")[0] for label in labels[point.index].tolist()]
            now = point.experiment.labels
            names = [label.partition("?")[0].partition(" #")[0] for label in now]
            assert labels[point.index].tolist() == now or numbered == names


@pytest.mark.parametrize(
    "flow",
    ["tcp:cubic", {"stack": "tcp", "controller": "cubic", "start_s": 2}, {"stack": "tcp:cubic"}],
)
def test_the_reference_of_a_sweep_is_an_implementation_whatever_else_its_flow_has(flow):
    made = Sweep(name="x", base={**BASE, "flows": ["tcp:reno", flow]}, sweep={"seed": [1]})
    cube = xr.Dataset(attrs={"sweep": made.model_dump_json()})
    assert reference_of(cube) == "tcp:cubic"


def test_a_sweep_of_lone_flows_has_no_reference():
    made = Sweep(name="x", base={**BASE, "flows": ["tcp:reno"]}, sweep={"seed": [1]})
    with pytest.raises(MetricError, match="the sweep has lone flows, and a map compares with"):
        reference_of(xr.Dataset(attrs={"sweep": made.model_dump_json()}))


def test_unordered_fields_run_each_pair_once():
    names = ["tcp:cubic", "tcp:reno", "tcp:bbr"]
    fields = {"flows.0": names, "seed": [1, 2], "flows.1": names}
    made = Sweep(name="x", base=BASE, sweep=fields, unordered=("flows.0", "flows.1"))
    pairs = [tuple(p.experiment.labels) for p in made.points() if p.experiment.seed == 2]
    assert len(made) == 12
    assert len(pairs) == len({frozenset(p) for p in pairs}) == 6
    with pytest.raises(SpecError, match=r"unordered: flows\.0 and seed must both be swept, over"):
        Sweep(name="x", base=BASE, sweep=fields, unordered=("flows.0", "seed"))
    late = {**BASE, "flows": ["tcp:cubic", "tcp:reno?start_s=2"]}
    with pytest.raises(SpecError, match=r"the order matters, as start_s sets the two flows apart"):
        Sweep(name="x", base=late, sweep=fields, unordered=("flows.0", "flows.1"))


def write(path: Path, **fields: list) -> Path:
    path.write_text(json.dumps(sweep(**fields).model_dump()))  # JSON is YAML
    return path


def start(spec: Path, out: Path, *words: str) -> subprocess.Popen:
    return subprocess.Popen(
        [QBKIT, "sweep", str(spec), "--out", str(out), "--json", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.guest
def test_a_sweep_becomes_a_cube_and_is_not_run_again(tmp_path: Path):
    made = sweep(flows__1=["tcp:reno", "tcp:bbr"], seed=[1, 2])
    first = run_sweep(made, tmp_path)
    assert (first.runs, first.ran, first.failures) == (4, 4, [])
    sizes = {"flows.1": 2, "seed": 2, "flow": 2, "point": 0, "time": 8}
    assert dict(first.cube.sizes) | {"point": 0} == sizes
    assert first.cube.label.sel({"flows.1": "tcp:bbr", "seed": 2}).values.tolist() == [
        "tcp:cubic",
        "tcp:bbr",
    ]
    # Two flows share 10 Mbit/s.
    assert first.cube.throughput_mbps.sum("flow").values == pytest.approx(10, rel=0.1)
    each_second = first.cube.series_throughput_mbps.sum("flow")
    assert each_second.sel(time=slice(2, None)).values == pytest.approx(10, rel=0.15)
    again = run_sweep(made, tmp_path)
    assert again.ran == 0
    xr.testing.assert_identical(qb.load_sweep(tmp_path), first.cube.load())
    another = made.model_copy(
        update={"name": "another", "sweep": {"seed": [1], "flows.1": ["tcp:reno"]}}
    )
    with pytest.warns(
        UserWarning, match="had the cube of the sweep 'test', and now has that of 'ano"
    ):
        assert run_sweep(another, tmp_path).ran == 0


@pytest.mark.guest
def test_a_run_that_fails_is_reported_and_the_others_go_on(tmp_path: Path):
    # The driver refuses a window that no number of its holds.
    base = {**BASE, "flows": [{"stack": "tcp", "controller": "bbr"}]}
    made = Sweep(
        name="x", base=base, sweep={"flows.0.options.initial_window_packets": [10, 10**12]}
    )
    outcome = run_sweep(made, tmp_path)
    assert outcome.cube.done.values.tolist() == [True, False]
    (failure,) = outcome.failures
    assert "cannot be 1000000000000" in failure.reason
    assert "cannot be 1000000000000" in (tmp_path / "failures.json").read_text()
    (told,) = json.loads((tmp_path / "failures.json").read_text())
    assert told["point"] == {"flows.0.options.initial_window_packets": 10**12}
    assert repr(outcome) == (
        "<sweep: 2 runs, 2 now, 1 failed; 2 of flows.0.options.initial_window_packets>"
    )


@pytest.mark.guest
def test_a_killed_sweep_resumes_where_it_was(tmp_path: Path):
    spec = write(tmp_path / "s.yaml", seed=list(range(1, 9)))
    process = start(spec, tmp_path / "out")
    deadline = time.monotonic() + 240
    while len(list((tmp_path / "out/runs").glob("*.json"))) < 2:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = len(list((tmp_path / "out/runs").glob("*.json")))
    report = json.loads(start(spec, tmp_path / "out").communicate()[0])
    assert (report["runs"], report["failures"]) == (8, [])
    assert report["ran"] == 8 - done < 8


@pytest.mark.guest
def test_a_second_sweep_in_the_same_folder_is_refused(tmp_path: Path):
    spec = write(tmp_path / "s.yaml", seed=list(range(1, 7)))
    first = start(spec, tmp_path / "out")
    while not (tmp_path / "out/runs").exists():
        assert first.poll() is None, first.stderr.read()
        time.sleep(0.05)
    with pytest.raises(StoreError, match=f"another sweep .process {first.pid}. works in"):
        run_sweep(Sweep.from_file(spec), tmp_path / "out")
    assert json.loads(first.communicate()[0])["ran"] == 6


@pytest.mark.guest
def test_a_full_disk_is_one_sentence_and_free_space_fixes_it(tmp_path: Path):
    # The runs of these two take 100 kB and more; a file system of 64 kB holds none of them.
    if subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("no mount namespaces here")
    spec, out = write(tmp_path / "s.yaml", seed=[1, 2]), tmp_path / "out"
    out.mkdir()
    words = f"mount -t tmpfs -o size=64k none {out} && {QBKIT} sweep {spec} --out {out} --json"
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "2 runs may need 0.6 MB of disk space, but 0.1 MB are free in" in done.stderr
    assert "free some, or choose another folder" in done.stderr
    assert "Traceback" not in done.stderr
    report = json.loads(start(spec, out).communicate()[0])
    assert (report["ran"], report["failures"]) == (2, [])


def test_a_disk_that_holds_not_even_the_lock_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(StoreError, match="for results: No space left on device; free space, or"):
        run_sweep(sweep(seed=[1]), tmp_path / "out")


@pytest.mark.guest
def test_a_worker_killed_in_the_middle_of_a_run_costs_nothing(tmp_path: Path):
    spec = write(tmp_path / "s.yaml", seed=list(range(1, 7)))
    process = start(spec, tmp_path / "out")
    while not list(tmp_path.glob("out/runs/*.json")):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    os.kill(worker_of(process.pid), signal.SIGKILL)
    report = json.loads(process.communicate()[0])
    assert (report["runs"], report["failures"]) == (6, [])
    assert len(list((tmp_path / "out/runs").glob("*.nc"))) == 6


def worker_of(pid: int) -> int:
    """A Dask worker process of a sweep: the first descendant found that has a guest."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for process in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error):
                if process.cmdline()[:1] == ["linux"]:
                    return process.ppid()
        time.sleep(0.02)
    raise AssertionError("the sweep has no guest")


@pytest.mark.slow
def test_a_worker_needs_no_charts():
    # Altair takes a second to import, and ten in a worker's thread.
    words = "import sys, synthetic, qbkit.execution.cluster, qbkit.execution.runner; "
    words += "import qbkit.store.figures as d; d.run_figures(synthetic.synthetic_run()); "
    words += "sys.exit('altair' in sys.modules)"
    here = Path(__file__).parent
    subprocess.run([sys.executable, "-c", words], check=True, cwd=here)


@pytest.mark.guest  # whose kernel is part of a run's name
def test_a_scheduler_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 1)
    with pytest.raises(EngineError, match=r"answers at tcp://127.0.0.1:9; start one with `dask s"):
        run_sweep(sweep(seed=[1]), tmp_path, scheduler="tcp://127.0.0.1:9")


@pytest.mark.guest  # whose kernel is part of a run's name
def test_dry_run_reports_what_is_left_to_do(tmp_path: Path):
    report = estimate(sweep(seed=[1, 2, 3]), tmp_path)
    assert list(tmp_path.iterdir()) == []  # it writes nothing
    assert (report["runs"], report["missing"]) == (3, 3)
    assert 1 < report["cpu_s"] < 20


def test_the_text_of_a_swept_flow_sets_options():
    base = {"flows": [{"stack": "tcp:cubic", "options": {"hystart": False}}, "tcp:bbr"]}
    texts = ["quinn:cubic", "quinn:cubic?initial_window_packets=20&start_s=5"]
    plain, changed = (
        point.experiment.flows[0]
        for point in Sweep(name="x", base=base, sweep={"flows.0": texts}).points()
    )
    assert (plain.text, changed.start_s) == ("quinn:cubic?hystart=false", 5)
    assert changed.options == {"hystart": False, "initial_window_packets": 20}
    twice = {"flows.0": texts, "flows.0.start_s": [1, 2]}
    with pytest.raises(SpecError, match=r"flows.0 and flows.0.start_s both set flows.0.start_s"):
        Sweep(name="x", base=base, sweep=twice)
    options = {"flows.0": texts, "flows.0.options.initial_window_packets": [1, 2]}
    with pytest.raises(SpecError, match=r"both set flows.0.options.initial_window_packets"):
        Sweep(name="x", base=base, sweep=options)
