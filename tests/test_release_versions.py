"""The versions that the documentation promises: each minor release can be resolved.

Nothing is compiled. The package registries are asked as a first build asks them.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from qbkit import stacks
from qbkit.errors import StackNotReady
from qbkit.stacks import registry
from qbkit.stacks.release import Release, Releases
from qbkit.stacks.releases.crates import CrateRelease
from qbkit.stacks.releases.go_modules import GoRelease
from qbkit.stacks.releases.picoquic import PicoquicRelease
from qbkit.stacks.toolchains.golang import run_go

AT_ONCE = 6
"""Much of the time goes into waiting for the registries."""


@pytest.fixture(scope="module")
def pool(tmp_path_factory) -> Iterator[ProcessPoolExecutor]:
    folder = tmp_path_factory.mktemp("resolved")
    context = multiprocessing.get_context("spawn")  # pytest-xdist has threads
    with ProcessPoolExecutor(AT_ONCE, context, initializer=apart, initargs=(folder,)) as made:
        yield made


def apart(folder: Path) -> None:
    """Give a process a cargo of its own, as two wait for each other's list of crates."""
    home = folder / f"cargo-{os.getpid()}"
    home.mkdir()
    for config in Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")).glob("config*"):
        shutil.copy(config, home)
    os.environ |= {"CARGO_HOME": str(home), "QBKIT_CACHE": str(folder / "cache")}


def newest_of_each_minor(of: Releases) -> list[str]:
    """One version of each minor release that the registry has; skips if it has none."""
    release = of.stack(of.built[-1])
    assert isinstance(release, Release)
    for kind, tool, name in ((CrateRelease, "cargo", "Rust"), (GoRelease, "go", "go")):
        if isinstance(release, kind) and not shutil.which(tool):
            pytest.skip(f"{name} is not installed")
    try:
        there = of.fitting(release.released())
    except StackNotReady as error:
        pytest.skip(f"the registry of {of.name} cannot be reached: {error}")
    return list({version.rpartition(".")[0]: version for version in there}.values())


def problem(name: str) -> str:
    """Why a release cannot be resolved; empty if it can."""
    release = stacks.get(name)
    assert isinstance(release, Release)
    try:
        if isinstance(release, GoRelease):  # its lock file needs the code of all modules
            release.require()
            run_go(["list", "-m", "all"], name, release.module_folder(), mod="mod")
        elif isinstance(release, PicoquicRelease):  # the hash is in our source
            release.package().address()
        else:
            release.lock()
    except StackNotReady as error:
        return f"{name}: {error}"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("of", registry._releases.values(), ids=lambda of: of.name)
def test_a_version_of_each_minor_release_resolves(of, pool):
    names = [f"{of.name}@{version}" for version in newest_of_each_minor(of)]
    assert len(names) >= 2
    assert not list(filter(None, pool.map(problem, names)))
