"""Wheels of what qbkit builds: how they are written, and how qbkit finds what is in them."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import licences
import pytest
import root_archive
import wheels
from click.testing import CliRunner
from wheel_file import ANY, Wheel

import qbkit as qb
from qbkit import settings
from qbkit.cli import checks
from qbkit.cli import notebooks as copying
from qbkit.cli.group import group
from qbkit.errors import StoreError
from qbkit.execution.identity import tool_versions
from qbkit.stacks import get
from qbkit.stacks.toolchains import build
from qbkit.testbed import guest_root

HERE = Path(__file__).parents[1]


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installed package, beside an empty cache."""
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "package"
    (folder / "drivers").mkdir(parents=True)
    monkeypatch.setattr(settings, "packed_folders", lambda: (folder,))
    for module in (build, guest_root):
        monkeypatch.setattr(module, "packed_folders", lambda: (folder,))
    return folder


@pytest.mark.slow
def test_pip_installs_a_wheel_and_qbkit_finds_its_folder(tmp_path: Path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho works\n")
    program.chmod(0o755)
    wheel = Wheel("qbkit-example", "1.0", "An example.", "MIT", ANY, ("qbkit==1.0",))
    wheel.files = {"drivers/x-0123/program": program, "compilers.json": b"{}"}
    path = wheel.write(tmp_path)
    assert path.read_bytes() == wheel.write(tmp_path).read_bytes()
    target = tmp_path / "site"
    words = ["pip", "install", "-q", "--no-index", "--no-deps", "--target", str(target), str(path)]
    subprocess.run([sys.executable, "-m", *words], check=True)
    script = (
        "import subprocess; from qbkit.stacks.toolchains.build import built_folder\n"
        "print(subprocess.check_output([built_folder('x', '0123') / 'program']).decode())"
    )
    env = {**os.environ, "PYTHONPATH": f"{HERE}:{target}", "QBKIT_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, check=True)
    assert done.stdout == b"works\n\n"


def test_the_record_of_a_wheel_is_true(tmp_path: Path):
    path = Wheel("qbkit-example", "1.0", "An example.", "MIT", files={"a": b"1"}).write(tmp_path)
    with zipfile.ZipFile(path) as archive:
        text = archive.read("qbkit_example-1.0.dist-info/RECORD").decode()
        rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(text))}
        assert set(rows) == set(archive.namelist())
        assert rows.pop("qbkit_example-1.0.dist-info/RECORD") == ["", ""]
        for name, (digest, size) in rows.items():
            content = archive.read(name)
            found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
            assert (digest, size) == (f"sha256={found.rstrip('=')}", str(len(content)))


@pytest.mark.slow
def test_a_wheel_that_no_registry_takes_is_refused(tmp_path: Path):
    large = Wheel("qbkit-example", "1.0", "Too large.", "MIT", files={"a": os.urandom(100_100_000)})
    with pytest.raises(ValueError, match=r"qbkit_example-1.0-.*whl has 100 MB"):
        large.write(tmp_path)


def test_the_cache_comes_before_a_package(packed: Path, tmp_path: Path):
    (packed / "drivers/x-1").mkdir()
    assert build.built_folder("x", "1") == packed / "drivers/x-1"
    assert build.built_folder("x", "2") == tmp_path / "cache/drivers/x-2"
    (tmp_path / "cache/drivers/x-1").mkdir(parents=True)
    assert build.built_folder("x", "1") == tmp_path / "cache/drivers/x-1"


def test_a_driver_of_a_package_is_found_whatever_compiler_is_here(
    packed: Path, monkeypatch: pytest.MonkeyPatch
):
    def key(compiler: str) -> str:
        return build.fingerprint([], compiler)

    (packed / "compilers.json").write_text('{"rustc": "rustc 1"}')
    assert build.key_by_compiler("x", "rustc", "", key) == key("")  # nothing is built
    (packed / f"drivers/x-{key('rustc 1')}").mkdir()
    assert build.key_by_compiler("x", "rustc", "", key) == key("rustc 1")
    assert build.key_by_compiler("x", "rustc", "rustc 2", key) == key("rustc 1")
    assert build.key_by_compiler("x", "go", "go 1", key) == key("go 1")
    (build.built_folder("x", key("rustc 2"))).mkdir(parents=True)
    assert build.key_by_compiler("x", "rustc", "rustc 2", key) == key("rustc 2")


def test_what_is_missing_for_a_guest_is_one_sentence(packed: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(guest_root, "GUEST_PATH", "/nonexistent")
    monkeypatch.setattr(guest_root, "MININET", Path("/nonexistent/net.py"))
    assert guest_root.problem() == (
        "install with: apt-get install iproute2 mininet, or pip install qbkit-kernel"
    )
    assert guest_root.packed() is None
    check = checks._mininet()
    assert (check.ok, check.detail) == (False, "iproute2, mininet: missing")
    (packed / guest_root.ARCHIVE).touch()
    assert guest_root.problem() is None
    assert checks._mininet().detail == "iproute2, mininet: those of qbkit-kernel"


@pytest.mark.slow
def test_every_wheel_of_stacks_says_its_licences():
    for group_name, names in wheels.GROUPS.items():
        ready = [get(name) for name in names if get(name).status().ready]
        if not ready:
            pytest.skip("no stack of a group is built here")
        found = licences.files(group_name, ready)
        listed = found.pop("LICENCES.md").decode().splitlines()[4:]
        assert listed and all(line.count("|") == 4 for line in listed)
        assert found  # at least one text


def test_notebooks_and_data_are_copied_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in copying.WHAT:
        (tmp_path / "source" / name / "sub").mkdir(parents=True)
        (tmp_path / "source" / name / "sub/file.txt").write_text(name)
    monkeypatch.setattr(settings, "shipped", lambda name: tmp_path / "source" / name)
    target = tmp_path / "mine"
    (target / "data/sub").mkdir(parents=True)
    (target / "data/sub/file.txt").write_text("changed")
    words = ["notebooks", "copy", str(target)]
    CliRunner().invoke(group, words, catch_exceptions=False, standalone_mode=False)
    assert (target / "notebooks/sub/file.txt").read_text() == "notebooks"
    assert (target / "data/sub/file.txt").read_text() == "changed"
    monkeypatch.setattr(settings, "shipped", lambda name: tmp_path / "nowhere")
    with pytest.raises(StoreError, match=r"the notebooks are not installed here; .* qbkit-notebo"):
        copying._source("notebooks")


def test_notebooks_are_listed_by_name():
    done = CliRunner().invoke(group, ["notebooks", "list"], catch_exceptions=False)
    assert "00_start_here" in done.stdout.split()


def test_all_wheels_have_the_version_of_qbkit():
    assert f"qbkit=={distribution('qbkit').version}" == wheels.SAME


@pytest.mark.guest
@pytest.mark.slow
def test_a_guest_runs_from_the_root_of_the_package(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("QBKIT_CACHE")  # where the kernel is
    monkeypatch.setattr(root_archive, "PRESET", 0)  # the same files, packed in seconds
    (packed / guest_root.ARCHIVE).write_bytes(root_archive.build(tmp_path / "scratch"))
    here = tool_versions()
    monkeypatch.setattr(guest_root, "missing", lambda: ["mininet"])
    experiment = qb.Experiment(flows=["tcp:cubic", "tcp:reno"], duration_s=2)
    run = qb.run(experiment, out=tmp_path / "run.nc")
    assert (run.qb.summary().goodput_mbps > 1).all()
    known = tool_versions()
    assert known.pop("root")  # another sample, and so another name
    assert known.keys() == here.keys() and known["mininet"] == "2.3.0"
