"""Studies, sweeps and lists of runs report what cannot run before the first run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import qbkit as qb
from qbkit.cli import main
from qbkit.errors import EngineError, SpecError, StackNotReady, StoreError
from qbkit.execution import many, preflight, sweeps, web
from qbkit.execution.preflight import require_room, stored_bytes
from qbkit.stacks import web as servers
from qbkit.testbed import memory

LINK = qb.Bottleneck(rate_mbps=12, rtt_ms=20)
GOOD = qb.Experiment(bottleneck=LINK, flows=["tcp:cubic"], duration_s=2)
BASE = {
    "bottleneck": {"rate_mbps": 12, "rtt_ms": 20},
    "flows": [{"stack": "tcp", "controller": "cubic"}],
    "duration_s": 2,
}


@pytest.fixture
def nothing_runs(monkeypatch, tmp_path: Path):
    """An empty store, where the start of any run fails the test."""
    monkeypatch.setenv("QBKIT_RUNS", str(tmp_path / "runs"))
    for module in (many, sweeps, web):
        monkeypatch.setattr(module, "run_calls", lambda *_, **__: pytest.fail("a run has started"))


@pytest.mark.guest
@pytest.mark.parametrize(
    ("flow", "error", "said"),
    [
        ("quinn@0.11.13:cubic", StackNotReady, "qbkit stacks build quinn@0.11.13"),
        ("quinn@0.7.0:cubic", SpecError, "fits crate quinn-proto 0.8.0 and later"),
        ("quin:cubic", SpecError, "did you mean quinn"),
        ("tcp:cubik", SpecError, "did you mean cubic"),
        ("tcp:cubic?nagle=true", SpecError, "tcp has no option nagle"),
    ],
)
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
    assert (ended.value.code, *capsys.readouterr()) == (1, "", said)


@pytest.mark.guest
@pytest.mark.parametrize(
    ("flow", "error", "said"),
    [
        ("quinn@0.11.13:cubic", StackNotReady, "qbkit stacks build quinn@0.11.13"),
        ("tcp:cubik", SpecError, "did you mean cubic"),
        ("tcp:cubic?nagle=true", SpecError, "tcp has no option nagle"),
    ],
)
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
    class Usage:
        free = 1.5 * stored_bytes(GOOD)

    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda _: Usage)
    sweep = qb.Sweep(name="x", base=BASE, sweep={"seed": [1, 2]})
    with pytest.raises(StoreError, match="the results of 2 runs may need"):
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
    between = (memory.needed_bytes(GOOD, "virtual") + memory.needed_bytes(large, "virtual")) / 2
    monkeypatch.setattr(memory, "_free_bytes", lambda: between)
    with pytest.raises(EngineError, match="GB of memory"):
        qb.run_all([GOOD, large])


@given(count=st.integers(1, 9))
def test_disk_space_for_all_runs_together_is_required(count: int):
    """12 Mbit/s fill 990.75 frames a second, of 20 bytes each in the store."""
    wanted = [GOOD] * count
    needed_bytes = count * 2 * 12e6 / 8 / 1514 * 20
    assert sum(map(stored_bytes, wanted)) == pytest.approx(needed_bytes)

    class Usage:
        free = needed_bytes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preflight.shutil, "disk_usage", lambda _: Usage)
        require_room(wanted, Path("runs"), None, None)
        Usage.free -= 1
        with pytest.raises(StoreError, match="free space, or use another folder"):
            require_room(wanted, Path("runs"), None, None)
        require_room(wanted, Path("runs"), None, "tcp://elsewhere:1")
