"""Studies and sweeps run a failed run once more; no engine is chosen unasked."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import assert_gone, descendants
from test_failures import heed_interrupts

import qbkit as qb
from qbkit.errors import EngineError, RunFailed, SpecError, StackNotReady
from qbkit.execution import cluster
from qbkit.execution.attempts import try_twice, words
from qbkit.execution.cluster import run_calls
from qbkit.execution.many import datasets, run_all
from qbkit.spec import Experiment
from qbkit.testbed import engines

LINK = qb.Bottleneck(rate_mbps=10, rtt_ms=20)
ERRORS = st.sampled_from([None, RunFailed, SpecError, StackNotReady, EngineError])


TWICE = """
import sys
import qbkit as qb
run = qb.Experiment(flows=["tcp:cubic"], duration_s=3).run(out=sys.argv[1])
print(run.attrs["wall_s"], run.attrs["cpu_s"])
"""


@pytest.mark.guest
def test_two_processes_that_want_one_run_make_it_once(tmp_path):
    command = [sys.executable, "-c", TWICE, str(tmp_path / "run.nc")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (process.communicate()[0] for process in both)
    assert first == second != ""


@given(st.lists(st.tuples(ERRORS, ERRORS)))
def test_only_runs_that_may_pass_are_tried_again_and_no_result_is_lost(plan):
    made: list[list[int]] = []

    def attempt(wanted):
        made.append(wanted)
        kinds = {i: plan[i][len(made) - 1] for i in wanted}
        return {i: kind(f"{i}") for i, kind in kinds.items() if kind}

    result = try_twice(attempt, range(len(plan)))
    assert made[0] == list(range(len(plan)))
    worth = (RunFailed, EngineError)
    again = [i for i, (first, _) in enumerate(plan) if first in worth]
    assert made[1:] == ([again] if again else [])
    for i, (first, second) in enumerate(plan):
        last = second if first in worth else first
        assert type(result.failed.get(i)) is (last or type(None))
        assert (i in result.repeated) == (first in worth and second is None)


def test_a_run_is_named_by_its_flows_and_seed():
    assert words(Experiment(flows=["tcp:bbr"], seed=3)) == "tcp:bbr, seed 3"
    many = words(Experiment(flows=["tcp:bbr"] * 9))
    assert many.startswith("tcp:bbr #1 with tcp:bbr #2") and many.endswith("5 more flows, seed 1")


def test_engine_host_is_never_chosen_unasked(tmp_path, monkeypatch):
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))  # no kernel there
    monkeypatch.delenv("QBKIT_KERNEL", raising=False)
    works = dataclasses.replace(engines.ENGINES["host"], problem=lambda: None)
    monkeypatch.setitem(engines.ENGINES, "host", works)
    why = "engine virtual does not work here: there is no virtual-time kernel.*; engine host works"
    with pytest.raises(EngineError, match=why):
        engines.choose()
    assert engines.choose("host") is works
    with pytest.raises(
        SpecError, match="there is no engine 'real'; choose from virtual, physical, host"
    ):
        engines.runs_at_once("real")


def test_runs_on_a_host_go_one_after_the_other():
    assert engines.runs_at_once("host") == 1
    assert engines.runs_at_once() == engines.runs_at_once("virtual") == len(os.sched_getaffinity(0))


def first_guest(of: int) -> int:
    """Wait for a guest among the descendants of a process."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for pid in descendants(of):
            try:
                if Path(f"/proc/{pid}/cmdline").read_text().startswith("linux\0"):
                    return pid
            except OSError:  # it has ended
                continue
        time.sleep(0.02)
    raise AssertionError("no guest has started")


def kill_the_first_guest(above: int) -> None:
    """Kill the first guest among this process's descendants, or the process ``above`` it."""
    pid = first_guest(os.getpid())
    status = Path(f"/proc/{pid}/stat").read_text()
    os.kill(int(status.rpartition(")")[2].split()[1]) if above else pid, signal.SIGKILL)


@pytest.mark.guest
@pytest.mark.parametrize("above", [0, 1], ids=["its guest", "its process"])
def test_a_study_survives_the_violent_death_of_a_run(above: int):
    killer = threading.Thread(target=kill_the_first_guest, args=(above,))
    killer.start()
    with pytest.warns(UserWarning, match="tcp:reno, seed [12] was run again and passed; it had"):
        outcomes = run_all(
            [
                Experiment(bottleneck=LINK, flows=["tcp:reno"], duration_s=1, seed=seed)
                for seed in (1, 2)
            ]
        )
    killer.join()
    assert [run.attrs["seed"] for run in datasets(outcomes)] == [1, 2]


STUDY = """
import sys
import qbkit as qb
link = qb.Bottleneck(rate_mbps=10, rtt_ms=20)
how = {"bottleneck": link, "duration_s": int(sys.argv[1]), "seeds": 1}
study = qb.conformance_study("tcp:reno", "tcp:reno", **how)
print(len(study.tests + study.references), "distributed" in sys.modules)
"""


@pytest.mark.guest
def test_a_script_may_start_a_study_anywhere_and_stored_runs_need_no_cluster(tmp_path: Path):
    script = tmp_path / "study.py"
    script.write_text(STUDY)
    done = [
        subprocess.run([sys.executable, script, "1"], capture_output=True, text=True, check=False)
        for _ in range(2)
    ]
    assert [(run.stdout, run.stderr) for run in done] == [("2 True\n", ""), ("2 False\n", "")]


@pytest.mark.guest
def test_ctrl_c_ends_a_study_with_its_guests_and_workers():
    words = [sys.executable, "-c", STUDY, "3000"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, preexec_fn=heed_interrupts) as process:
        first_guest(process.pid)
        family = descendants(process.pid)
        process.send_signal(signal.SIGINT)
    assert_gone(family)


@pytest.mark.guest
def test_a_study_names_the_run_that_failed_twice_and_keeps_the_others(own_runs: Path):
    # The driver refuses a window that no number of its holds.
    test = qb.Flow("tcp", "bbr", options={"initial_window_packets": 10**12})
    how = {"bottleneck": LINK, "duration_s": 1, "seeds": 1}
    why = "1 of 2 runs failed twice, first tcp:bbr with tcp:reno, .*cannot be 1000000000000.*; the "
    with pytest.raises(RunFailed, match=why):
        qb.conformance_study(test, "tcp:reno", **how)
    assert len(list(own_runs.glob("*.nc"))) == 1


@pytest.mark.guest
def test_studies_use_the_scheduler_they_are_given(monkeypatch: pytest.MonkeyPatch):
    how = {"bottleneck": LINK, "duration_s": 6, "seeds": 1}
    with cluster.local_cluster(1) as given:
        study = qb.conformance_study(
            "tcp:reno", "tcp:reno", scheduler=given.scheduler_address, **how
        )
        tasks = {str(key) for key, *_ in given.scheduler.transition_log}
    (name,) = {run.attrs["hash"] for run in study.tests + study.references}
    assert {task.rpartition("-")[0] for task in tasks} == {f"run-{name}"}

    monkeypatch.setattr(cluster, "CONNECT_S", 1)
    nobody = {"scheduler": "tcp://127.0.0.1:9"}
    with pytest.raises(EngineError, match="no Dask scheduler answers"):
        qb.what_if(study, {"pacing": True}, **nobody)
    # The study is stored; the runs of each flow alone are not.
    with pytest.raises(EngineError, match="no Dask scheduler answers"):
        qb.explain("tcp:reno", "tcp:reno", **how, **nobody)


def fails_once(marker: Path) -> None:
    if not marker.exists():
        marker.touch()
        raise RuntimeError("not yet")


def fails(sentence: str) -> None:
    raise RuntimeError(sentence)


@pytest.mark.slow
def test_a_cluster_runs_failed_runs_again(tmp_path: Path):
    calls = {"once": (fails_once, tmp_path / "there"), "always": (fails, "never")}
    done = run_calls(calls, unit="test")
    assert {name: str(error) for name, error in done.failed.items()} == {
        "always": "RuntimeError: never"
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done.warn(str)
    (warning,) = caught
    assert str(warning.message) == (
        "once was run again and passed; it had failed at first: RuntimeError: not yet"
    )
