"""The same spec and seed give the same bytes: on a busy machine, from another folder, always."""

from __future__ import annotations

import subprocess
import sys

import pytest

from qbkit import stacks
from qbkit.spec import Experiment

pytestmark = pytest.mark.guest


def flows_that_are_ready():
    """Two flows for each ready stack that repeats: it and the kernel's TCP."""
    for stack in stacks.all_stacks():
        if stack.repeats and stack.status().ready:
            yield [f"{stack.name}:cubic", "tcp:cubic"]
    yield ["tcp:bbr", "tcp:reno"]


@pytest.fixture
def busy_machine():
    """Twice as many spinning processes as processors, as neighbours."""
    words = [sys.executable, "-c", "while True: pass"]
    neighbours = [subprocess.Popen(words) for _ in range(4)]
    yield
    for process in neighbours:
        process.kill()
        process.wait()


@pytest.mark.parametrize("flows", list(flows_that_are_ready()), ids=" vs ".join)
def test_two_runs_are_identical(flows, tmp_path, busy_machine):
    experiment = Experiment(flows=flows, duration_s=4)
    (tmp_path / "elsewhere").mkdir()
    first = experiment.run(engine="virtual", out=tmp_path / "a.nc")
    second = experiment.run(engine="virtual", out=tmp_path / "elsewhere/other-name.nc")
    assert first.identical(second.assign_attrs(first.attrs))
    for name, variable in first.variables.items():
        assert variable.values.tobytes() == second[name].values.tobytes(), name


def test_another_seed_is_another_run(tmp_path):
    runs = [
        Experiment(flows=["tcp:cubic", "tcp:cubic"], duration_s=4, seed=seed).run(engine="virtual")
        for seed in (1, 2)
    ]
    times = [set(run.packet_time_s.values) for run in runs]
    assert len(times[0] & times[1]) < 0.5 * len(times[0])
