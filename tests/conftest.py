"""Shared by all tests: a cache for runs of their own, and the guest's prerequisites."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from loopback import Bench

from qbkit.errors import EngineError
from qbkit.stacks import registry
from qbkit.testbed import kernel

# The same examples every time, on a machine as busy as it likes. `make fuzz` draws others, and what
# it finds becomes an example of the test.
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.register_profile("fuzz", deadline=None, print_blob=True)
settings.load_profile("repeatable")


LONG = (
    *("docs", "options", "stacks_alone", "drivers_die", "notebooks", "apps", "determinism"),
    *("golden", "ends", "jupyterlab", "kernel_builds", "atlas", "behaviour", "cli"),
    *("release_versions", "ipv6", "stacks_nginx_haproxy", "paper", "sweep", "notebook_own_logs"),
    *("misbehaving_hosts", "identify", "web_recordings_guest", "stacks_in_java", "web_browser"),
    *("readers_capture", "cca", "paths", "plots_browser", "metrics_parameters", "browsers_die"),
    *("bisect", "web_programs", "attempts", "roles", "publishing", "replay", "reproduce", "wheels"),
)
"""The files that take half a minute and more, the longest first."""
MAY_SKIP = (
    r"^build .* then set QBKIT_",  # the four external stacks, which no registry has
    r"install Go |Go is missing|go is not installed|Rust|JDK",  # toolchains
    r"cannot be reached",  # a package registry
    r"no (mount )?namespaces|only root can|own kernel has no|no C library of GNU",  # the system
)
"""What set-up does not install: patterns of the reasons for which a test may be skipped."""


@pytest.fixture(autouse=True)
def own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give every test its own folder of runs, so that it finds only what it made."""
    folder = tmp_path / "runs"
    monkeypatch.setenv("QBKIT_RUNS", str(folder))
    return folder


@pytest.fixture(autouse=True)
def own_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the stacks that a test registers, so that no other test finds them."""
    monkeypatch.setattr(registry, "_registered", {s.name: s for s in registry.all_stacks()})


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A bench for programs of stacks, which end with the test."""
    made = Bench(tmp_path)
    yield made
    made.close()


def pytest_xdist_auto_num_workers() -> int:
    """One more than processors: tests also wait, for browsers, registries and other processes."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, so that no worker begins one as the others end. Skip the tests marked
    ``guest`` where there is no kernel, and say why."""
    places = {f"test_{name}": place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.stem, len(LONG)))
    try:
        kernel.require()
    except EngineError as error:
        for item in items:
            if item.get_closest_marker("guest"):
                item.add_marker(pytest.mark.skip(reason=str(error)))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Turn a skip into a failure if QBKIT_NO_SKIPS is set and set-up installs what is missing."""
    outcome = yield
    report = outcome.get_result()
    if not report.skipped or hasattr(report, "wasxfail") or not os.environ.get("QBKIT_NO_SKIPS"):
        return
    reason = str(report.longrepr[-1]).removeprefix("Skipped: ")
    if not any(re.search(pattern, reason) for pattern in MAY_SKIP):
        report.outcome = "failed"
        report.longrepr = f"make setup installs what this test needs, but it was skipped: {reason}"
