"""Shared by all tests: a cache for runs of their own, and the guest's prerequisites."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from loopback import Bench

from qbkit.errors import EngineError
from qbkit.testbed import kernel

settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")


@pytest.fixture(autouse=True)
def own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give every test its own folder of runs, so that it finds only what it made."""
    folder = tmp_path / "runs"
    monkeypatch.setenv("QBKIT_RUNS", str(folder))
    return folder


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A bench for programs of stacks, which end with the test."""
    made = Bench(tmp_path)
    yield made
    for process in made.processes:
        process.kill()
        process.communicate()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests marked ``guest`` where there is no kernel, and say why."""
    try:
        kernel.require()
    except EngineError as error:
        for item in items:
            if item.get_closest_marker("guest"):
                item.add_marker(pytest.mark.skip(reason=str(error)))
