"""The same spec and seed give the same bytes: on a busy machine, from another folder, always."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from qbkit import stacks
from qbkit.spec import Experiment

pytestmark = pytest.mark.guest
RESTLESS = Path(__file__).parents[1] / "benchmarks/restless.py"


def flows_that_are_ready():
    """Two flows for each ready stack that repeats: it and the kernel's TCP."""
    for stack in stacks.all_stacks():
        if stack.repeats and stack.status().ready:
            yield [f"{stack.name}:cubic", "tcp:cubic"]
    yield ["tcp:bbr", "tcp:reno"]


@contextmanager
def neighbours(words: list[str], count: int):
    """So many processes of Python with these words, as long as the block lasts."""
    processes = [subprocess.Popen([sys.executable, *words]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.fixture
def busy_machine():
    """Twice as many spinning processes as processors, as neighbours."""
    with neighbours(["-c", "while True: pass"], 4):
        yield


@pytest.mark.parametrize("flows", list(flows_that_are_ready()), ids=" vs ".join)
def test_two_runs_are_identical(flows, tmp_path, busy_machine):
    experiment = Experiment(flows=flows, duration_s=4)
    (tmp_path / "elsewhere").mkdir()
    first = experiment.run(engine="virtual", out=tmp_path / "a.nc")
    second = experiment.run(engine="virtual", out=tmp_path / "elsewhere/other-name.nc")
    assert first.identical(second.assign_attrs(first.attrs))
    for name, variable in first.variables.items():
        assert variable.values.tobytes() == second[name].values.tobytes(), name


def test_a_guest_that_is_preempted_everywhere_gives_the_same(tmp_path):
    # Kernel and userland of a guest hand over to each other by a flag that both look at. When the
    # order of two stores around it was wrong, each tenth of these runs lost a system call.
    with neighbours([str(RESTLESS)], 2 * len(os.sched_getaffinity(0))):
        runs = [
            Experiment(flows=["quic-go:cubic"], duration_s=3).run(
                engine="virtual", out=tmp_path / f"{i}.nc"
            )
            for i in range(8)
        ]
    for other in runs[1:]:
        assert runs[0].drop_attrs().identical(other.drop_attrs())


def test_another_seed_is_another_run(tmp_path):
    runs = [
        Experiment(flows=["tcp:cubic", "tcp:cubic"], duration_s=4, seed=seed).run(engine="virtual")
        for seed in (1, 2)
    ]
    times = [set(run.packet_time_s.values) for run in runs]
    assert len(times[0] & times[1]) < 0.5 * len(times[0])
