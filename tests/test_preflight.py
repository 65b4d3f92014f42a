"""Studies, sweeps, notebooks and lists of runs report what cannot run before the first run."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import qbkit as qb
from qbkit.cli import main
from qbkit.errors import EngineError, QbkitError, SpecError, StackNotReady, StoreError
from qbkit.execution import many, notebooks, outcome, preflight, sweeps
from qbkit.execution.preflight import Needs, needs, require_room
from qbkit.execution.web import load as web
from qbkit.stacks.web import base as servers
from qbkit.testbed import memory

LINK = qb.Bottleneck(rate_mbps=12, rtt_ms=20)
GOOD = qb.Experiment(bottleneck=LINK, flows=["tcp:cubic"], duration_s=2)
BASE = {
    "bottleneck": {"rate_mbps": 12, "rtt_ms": 20},
    "flows": [{"stack": "tcp", "controller": "cubic"}],
    "duration_s": 2,
}


def has_free(monkeypatch, disk_bytes: float = 1e12, memory_bytes: float = 1e12) -> None:
    """Say that each disk and the memory have so much free."""

    class Usage:
        free = disk_bytes

    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda _: Usage)
    monkeypatch.setattr(memory, "free_bytes", lambda: memory_bytes)


@pytest.fixture
def nothing_runs(monkeypatch, tmp_path: Path):
    """An empty store, where the start of any run fails the test."""
    monkeypatch.setenv("QBKIT_RUNS", str(tmp_path / "runs"))
    for module in (outcome, notebooks):
        monkeypatch.setattr(module, "run_calls", lambda *_, **__: pytest.fail("a run has started"))


each_that_cannot_run = pytest.mark.parametrize(
    ("flow", "error", "said"),
    [
        ("quinn@0.11.13:cubic", StackNotReady, "qbkit stacks build quinn@0.11.13"),
        ("quinn@0.7.0:cubic", SpecError, "fits crate quinn-proto 0.8.0 and later"),
        ("quin:cubic", SpecError, "did you mean quinn"),
        ("tcp:cubik", SpecError, "did you mean cubic"),
        ("tcp:cubic?nagle=true", SpecError, "tcp has no option nagle"),
    ],
)


@pytest.mark.guest
@each_that_cannot_run
def test_a_flow_that_cannot_run_is_reported_before_the_first_run(nothing_runs, flow, error, said):
    bad = qb.Experiment(bottleneck=LINK, flows=[flow], duration_s=2)
    with pytest.raises(error, match=re.escape(said)):
        many.run_every([GOOD, bad])
    with pytest.raises(error, match=re.escape(said)):
        qb.conformance_study(flow, "tcp:cubic", bottleneck=LINK, duration_s=2, seeds=1)


@pytest.mark.guest
def test_the_conformance_command_names_a_test_that_is_not_built(nothing_runs, monkeypatch, capsys):
    words = ["qbkit", "conformance", "quinn@0.11.13:cubic", "--reference", "quinn:cubic"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    said = "qbkit: quinn@0.11.13 is not ready: qbkit stacks build quinn@0.11.13\n"
    assert (ended.value.code, *capsys.readouterr()) == (2, "", said)


@pytest.mark.guest
@each_that_cannot_run
def test_a_sweep_reports_its_last_flow_before_the_first_run(
    nothing_runs, tmp_path, flow, error, said
):
    sweep = qb.Sweep(name="x", base=BASE, sweep={"flows.0": ["tcp:cubic", flow]})
    with pytest.raises(error, match=re.escape(said)):
        sweeps.run_sweep(sweep, tmp_path / "sweep")


@pytest.mark.guest
def test_a_sweep_that_needs_too_much_disk_space_is_reported_before_the_first_run(
    nothing_runs, monkeypatch, tmp_path
):
    has_free(monkeypatch, 1.5 * needs(GOOD).stored_bytes)
    sweep = qb.Sweep(name="x", base=BASE, sweep={"seed": [1, 2]})
    with pytest.raises(StoreError, match=r"2 runs may need .* MB of disk space, but 0\.3 MB"):
        sweeps.run_sweep(sweep, tmp_path / "sweep")


@pytest.mark.guest
@pytest.mark.skipif(
    not servers.server("caddy").status().ready, reason=servers.server("caddy").status().reason
)
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"server": "caddi:cubic"}, "there is no server 'caddi'"),
        ({"server": "caddy:cubik"}, "caddy has no controller 'cubik' for h2"),
        ({"client": "curll"}, "there is no client 'curll'"),
    ],
)
def test_a_web_load_that_cannot_run_is_reported_before_the_first_load(nothing_runs, changed, said):
    good = qb.WebLoad(
        bottleneck=LINK, server="caddy:cubic", client="go", protocol="h2", object_bytes=9_000
    )
    with pytest.raises(SpecError, match=said):
        web.run_web_all([good, good.model_copy(update=changed)])


@pytest.mark.guest
def test_in_a_list_of_runs_the_others_go_on():
    bad = qb.Experiment(bottleneck=LINK, flows=["tcp:cubik"], duration_s=2)
    good, refused = qb.run_all([GOOD, bad])
    assert good.run is not None
    assert "did you mean cubic" in str(refused.error)


@pytest.mark.guest
def test_a_run_that_needs_too_much_memory_is_reported_before_the_first_run(
    nothing_runs, monkeypatch
):
    large = GOOD.model_copy(update={"duration_s": 60.0})
    between = (needs(GOOD).memory_bytes + needs(large).memory_bytes) / 2
    has_free(monkeypatch, memory_bytes=between)
    with pytest.raises(EngineError, match=r"the run may need 0\.2 GB of memory, but 0\.2 GB"):
        qb.run_all([GOOD, large])


def room(tmp_path: Path, *rows: tuple[float, float, float, float]) -> None:
    require_room([Needs(*(1e9 * gb for gb in row)) for row in rows], tmp_path, None)


def test_memory_of_all_runs_at_once_is_required(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7})
    has_free(monkeypatch, memory_bytes=10e9)
    sizes = [(2, 1, 0, 0), (4, 1, 0, 0), (1, 4, 0, 0), (2, 2, 0, 0)]
    room(tmp_path, *sizes)  # 4 + 4 + 2 GB: the largest three
    has_free(monkeypatch, memory_bytes=9e9)
    with pytest.raises(EngineError) as caught:
        room(tmp_path, *sizes)
    assert str(caught.value) == (
        "3 runs at once may need 10.0 GB of memory, but 9.0 GB are free; start qbkit or Jupyter "
        "with `taskset -c 3,5` for 2 at once, or lower duration_s, rate_mbps, rtt_ms or the buffer"
    )
    has_free(monkeypatch, memory_bytes=3e9)
    with pytest.raises(
        EngineError, match=r"^the run may need 4\.0 GB of memory, .*; lower duration_s"
    ):
        room(tmp_path, *sizes)


def test_each_disk_needs_room_for_results_captures_and_guests(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    rows = [(1, 0, 4, 0.5)] * 3  # results of 3, captures and guests of 2: 1.5 + 8 + 2 GB
    has_free(monkeypatch, 11.5e9)
    room(tmp_path, *rows)
    has_free(monkeypatch, 11.4e9)
    sentence = (
        r"3 runs may need 11500.0 MB of disk space, but 11400.0 MB are free in .* and .* and "
    )
    with pytest.raises(
        StoreError, match=sentence + ".*choose another folder or set QBKIT_CACHE or "
    ):
        room(tmp_path, *rows)


@given(count=st.integers(1, 9))
def test_disk_space_for_all_runs_together_is_required(count: int):
    """12 Mbit/s fill 990.75 frames a second, of 20 bytes each in the store, beside 150 kB."""
    wanted = [needs(GOOD)] * count
    needed_bytes = count * (150e3 + 2 * 12e6 / 8 / 1514 * 20)
    assert sum(n.stored_bytes for n in wanted) == pytest.approx(needed_bytes)
    assert needs(GOOD, "host").guest_bytes == 0


@pytest.mark.guest
def test_a_web_load_that_needs_too_much_memory_is_reported_before_the_first(
    nothing_runs, monkeypatch
):
    words = {"server": "go:cubic", "client": "go", "protocol": "h2", "object_bytes": 9_000}
    has_free(monkeypatch, memory_bytes=1e8)
    with pytest.raises(EngineError, match="GB of memory"):
        web.run_web_all([qb.WebLoad(bottleneck=LINK, **words)])


def told_of(name: str, tmp_path: Path, **grid: list) -> str:
    """The error of a grid of notebooks."""
    with pytest.raises(QbkitError) as caught:
        notebooks.execute_grid(name, tmp_path / "out", grid)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "grid", "said"),
    [
        ("01", {"rtt": [5]}, "has no parameter rtt (did you mean rtt_ms?); it has test, reference"),
        ("01", {"seeds": [2, 2.5]}, "01_performance_envelope: seeds is a whole number, not 2.5"),
        ("01", {"seeds": [2, 0]}, "01_performance_envelope: seeds is 1 or more, not 0"),
        (
            *("01", {"seeds": [2, 3], "verdict_file": ["/v.json"]}),
            "all 2 notebooks would write verdict_file = /v.json, each over the last",
        ),
        ("01", {"verdict_file": ["/proc/x/v.json"]}, "cannot write to /proc/x: No such file"),
        ("01", {"verdict_file": ["/"]}, "/ is a folder; give the name of a file"),
        ("06", {"publish": ["/proc/x"]}, "cannot write to /proc/x: No such file"),
        ("01", {"test": ["tcp:bbr", 7]}, "test is text, in quotation marks"),
        ("01", {"rtt_ms": [10, True]}, "rtt_ms is a number, not True"),
        ("01", {"rate_mbps": [10, -1]}, "rate_mbps = -1"),
        ("02", {"duration_s": [10, 0]}, "duration_s = 0"),
        ("01", {"duration_s": [60, 3]}, "duration_s = 3: a hull needs 3 windows"),
        ("01", {"qdisc": ["fifo", "fifi"]}, "qdisc = 'fifi'"),
        ("01", {"definition": ["imc22", "imc"]}, "no envelope definition 'imc'"),
        ("01", {"engine": ["virtual", "moon"]}, "there is no engine 'moon'"),
        ("05", {"test_log": ["", "none.qlog"]}, "test_log names none.qlog, which is not in"),
        ("03", {"longer": [["../data/checks", "../data/x"]]}, "longer names ../data/x"),
        ("04", {"margins": [0.1]}, "04_interactions: margins is a list, not 0.1"),
        ("09", {"data": ["../data/releases", "../data/r"]}, "data names ../data/r"),
    ],
)
def test_a_grid_of_notebooks_checks_its_values_before_the_first(
    nothing_runs, tmp_path, name, grid, said
):
    assert said in told_of(name, tmp_path, **grid)


@pytest.mark.guest
@pytest.mark.parametrize(
    ("name", "grid", "said"),
    [
        ("01", {"test": ["tcp:bbr", "quinn@0.11.13:cubic"]}, "qbkit stacks build quinn@0.11.13"),
        ("01", {"reference": ["tcp:reno", "tcp:renos"]}, "did you mean reno"),
        ("05", {"test": ["tcp:bbr", "quic-go@0.1.0:cubic"]}, "quic-go"),
        ("05", {"reference": ["tcp:bbr?nagle=true"]}, "tcp has no option nagle"),
        ("02", {"who": ["tcp", "tcp tpc:cubic"]}, "there is no stack 'tpc' (did you mean tcp?)"),
    ],
)
def test_a_grid_of_notebooks_checks_its_flows_before_the_first(
    nothing_runs, tmp_path, name, grid, said
):
    assert said in told_of(name, tmp_path, **grid)


@pytest.mark.guest
def test_a_grid_of_notebooks_needs_room_for_all_its_runs(nothing_runs, monkeypatch, tmp_path):
    words = {"test": ["tcp:bbr", "tcp:reno"], "seeds": [3], "rate_mbps": [80], "duration_s": [60]}
    has_free(monkeypatch, memory_bytes=1e8)
    assert "the run may need 0." in told_of("01", tmp_path, **words)
    has_free(monkeypatch, disk_bytes=1e7)
    assert "12 runs may need" in told_of("01", tmp_path, **words)  # 2 notebooks, 2 sides, 3 seeds


def test_tables_of_a_minute_at_10_gbit_s_fit_in_8_gb_and_two_links_carry_twice_as_much():
    link = {"rate_mbps": 10_000, "rtt_ms": 10}
    minute = qb.Experiment(bottleneck=link, flows=["tcp:cubic"], duration_s=60)
    one = needs(minute).tables_bytes - memory.TABLES_BASE_BYTES
    assert 5e9 < one < 8e9 - memory.TABLES_BASE_BYTES
    lot = qb.Experiment(
        **{**minute.model_dump(), "topology": "parking_lot", "flows": ["tcp:cubic"] * 3}
    )
    assert needs(lot).tables_bytes - memory.TABLES_BASE_BYTES == pytest.approx(2 * one)
    back = {"flows": ["tcp:cubic", "tcp:cubic?direction=reverse"]}
    both = qb.Experiment(bottleneck=link, duration_s=60, **back)
    assert needs(both).tables_bytes - memory.TABLES_BASE_BYTES == pytest.approx(2.5 * one)
