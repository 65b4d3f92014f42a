"""The same spec and seed give the same bytes: on a busy machine, from another folder, always."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from background_load import PREEMPTING, SPINNING, background_load
from sameness import assert_same_bytes

from qbkit import stacks
from qbkit.spec import Experiment
from qbkit.stacks import aioquic, chromium
from qbkit.stacks.toolchains.processor import SAME_LIBRARY_FOLDERS

pytestmark = pytest.mark.guest
AIOQUIC_NEEDS = (
    *("aioquic", "attr", "attrs", "certifi", "cryptography", "OpenSSL", "pylsqpack"),
    *("service_identity", "cffi", "_cffi_backend*", "typing_extensions.py"),
)
"""What site-packages holds of aioquic and its dependencies."""


BUSY = ("tcp", "quic-go", "quinn", "picoquic", "aioquic", "jdk", "neqo")
"""One stack of each kind of program: they repeat beside spinning neighbours, too."""


def pairs(names: Iterable[str]) -> Iterator[list[str]]:
    """Two flows for each deterministic stack of these that is ready: its own and the kernel's."""
    for stack in map(stacks.get, names):
        if stack.deterministic and stack.status().ready:
            known = stack.controllers()
            yield [f"{stack.name}:{'cubic' if 'cubic' in known else known[0]}", "tcp:cubic"]


@pytest.mark.parametrize("flows", [*pairs(BUSY), ["tcp:bbr", "tcp:reno"]], ids=" vs ".join)
def test_two_runs_are_identical(flows, tmp_path):
    # The two runs are each other's neighbours, beside those that spin and the other tests. All
    # stacks repeat alone (tests/test_stacks_alone.py), and beside TCP (tests/test_golden.py).
    experiment = Experiment(flows=flows, duration_s=3)
    (tmp_path / "elsewhere").mkdir()
    places = (tmp_path / "a.nc", tmp_path / "elsewhere/other-name.nc")
    neighbours = len(os.sched_getaffinity(0)) * [SPINNING]
    with background_load(neighbours), ThreadPoolExecutor(2) as both:
        runs = both.map(lambda out: experiment.run(engine="virtual", out=out), places)
        assert_same_bytes(*runs)


def where_the_loader_searches_differs() -> list[str]:
    """Stacks that do not hide from their programs which processor this is."""
    hidden = SAME_LIBRARY_FOLDERS.items()
    return [stack.name for stack in stacks.all_stacks() if not hidden <= stack.env().items()]


@pytest.mark.parametrize("flows", list(pairs(where_the_loader_searches_differs())), ids=" vs ".join)
def test_where_the_loader_may_search_does_not_change_a_run(flows, tmp_path, monkeypatch):
    # A processor with AVX-512 has more folders of libraries. A stack that would notice hides them;
    # here the setting is added to those that do not.
    experiment = Experiment(flows=flows, duration_s=1)  # libraries load as a program starts
    plain = experiment.run(engine="virtual", out=tmp_path / "plain.nc")
    for stack in {type(stacks.get(flow.split(":")[0])) for flow in flows}:
        env = stack.env
        monkeypatch.setattr(stack, "env", lambda self, env=env: SAME_LIBRARY_FOLDERS | env(self))
    fewer = experiment.run(engine="virtual", out=tmp_path / "fewer.nc")
    assert plain.drop_attrs().identical(fewer.drop_attrs())


@contextmanager
def one_processor() -> Iterator[None]:
    """Keep guests and neighbours that start in the block on one processor; tests need the rest."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def test_a_guest_that_is_preempted_everywhere_gives_the_same(tmp_path):
    # Kernel and userland of a guest hand over to each other by a flag that both look at. When the
    # order of two stores around it was wrong, one in ten of these runs lost a system call.
    with one_processor(), background_load(2 * [PREEMPTING]):
        runs = [
            Experiment(flows=["quic-go:cubic"], duration_s=3).run(
                engine="virtual", out=tmp_path / f"{i}.nc"
            )
            for i in range(8)
        ]
    for other in runs[1:]:
        assert runs[0].drop_attrs().identical(other.drop_attrs())


def test_byte_code_among_the_packages_does_not_change_a_run(tmp_path, monkeypatch):
    # In virtual time a failed file look-up costs a microsecond.
    site, twin = aioquic.site_packages_of("aioquic"), tmp_path / "site"
    twin.mkdir()
    for path in (path for name in AIOQUIC_NEEDS for path in site.glob(name)):
        copy = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, twin / path.name)
    monkeypatch.setattr(aioquic, "site_packages_of", lambda _: twin)
    with_and_without_byte_code("aioquic:cubic", twin, tmp_path)


def test_byte_code_beside_a_driver_does_not_change_a_run(tmp_path, monkeypatch):
    if not stacks.get("neqo").status().ready:
        pytest.skip(stacks.get("neqo").status().reason)
    twin = shutil.copytree(chromium.driver_folder(), tmp_path / "driver")
    monkeypatch.setattr(chromium, "driver_folder", lambda: twin)
    with_and_without_byte_code("neqo:cubic", twin, tmp_path)


def with_and_without_byte_code(flow: str, folder: Path, out: Path):
    """A run with byte code in a folder of modules is the same as one without."""
    for found in folder.glob("**/__pycache__"):
        shutil.rmtree(found)
    experiment = Experiment(flows=[flow, "tcp:cubic"], duration_s=2)
    without = experiment.run(engine="virtual", out=out / "without.nc")
    words = [sys.executable, "-m", "compileall", "-q", str(folder)]
    subprocess.run(words, check=True)
    assert list(folder.glob("**/*.pyc"))
    beside = experiment.run(engine="virtual", out=out / "beside.nc", rerun=True)
    assert without.drop_attrs().identical(beside.drop_attrs())


def test_another_seed_is_another_run(tmp_path):
    # The jitter alone tells seeds apart: both start at once.
    both = Experiment(flows=["tcp:cubic", "tcp:cubic"], duration_s=4, start_window_s=0)
    runs = [both.model_copy(update={"seed": seed}).run(engine="virtual") for seed in (1, 2)]
    times = [set(run.packet_time_s.values) for run in runs]
    assert len(times[0] & times[1]) < 0.5 * len(times[0])
