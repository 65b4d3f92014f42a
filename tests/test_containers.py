"""Runs where containers restrict a user: as on Binder, without root, network or a writable home."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qbkit import settings
from qbkit.errors import StoreError
from qbkit.settings import cache_folder, writable_folder
from qbkit.testbed import engines, memory
from qbkit.testbed.plan import Plan

CONTAINER = """
set -eu
mount --make-rprivate /
mount --bind "$CACHE" "$CACHE"
mount -o remount,ro,bind "$CACHE"
mount -t tmpfs -o size=64m,noexec none /dev/shm
exec setpriv --bounding-set -all --inh-caps -all --no-new-privs "$@"
"""
"""A read-only cache, Docker's /dev/shm, no capabilities."""


def contained(*command: str, scratch: Path) -> subprocess.CompletedProcess[str]:
    """Run a command under `CONTAINER`, without network and under Docker's seccomp profile."""
    own_root = [] if os.getuid() == 0 else ["--map-root-user"]
    unshare = ["unshare", *own_root, "--mount", "--net"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("this machine gives its users no namespaces")
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    filtered = [sys.executable, str(Path(__file__).with_name("forbidding.py")), "docker", *command]
    return subprocess.run(
        [*unshare, "sh", "-c", CONTAINER, "sh", *filtered],
        capture_output=True,
        text=True,
        env={**kept, "CACHE": str(cache_folder()), "HOME": "/nonexistent", "QBKIT_RUNS": ""}
        | {"QBKIT_CACHE": str(cache_folder()), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=scratch,
        check=False,
    )


@pytest.mark.guest
def test_an_experiment_runs_as_on_binder(tmp_path: Path):
    words = "run tcp:cubic --duration-s 1 --rerun --out run.nc"
    done = contained(sys.executable, "-m", "qbkit.cli", *words.split(), scratch=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "tcp:cubic" in done.stdout
    assert (tmp_path / "run.nc").exists()
    assert f"{cache_folder()} cannot be written to: runs go to" in done.stderr


@pytest.mark.guest
def test_the_kernel_makes_its_folder_in_that_of_the_run(tmp_path: Path):
    """It crashes where it may not make .uml, as an ordinary user in the machine's root."""
    plan = Plan({"engine": "virtual", "command": ["/bin/true"]}, {})
    engines.carry_out(engines.choose(), plan, tmp_path, 1, 60.0, lambda _: None)
    assert (tmp_path / ".uml").is_dir()


def test_the_filter_is_real(tmp_path: Path):
    # Without the filter, every user may make a user namespace.
    code = """import ctypes, os
assert ctypes.CDLL(None, use_errno=True).unshare(0x10000000) == -1
print(os.strerror(ctypes.get_errno()))"""
    done = contained(sys.executable, "-c", code, scratch=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Operation not permitted\n"), done.stderr


def test_a_small_or_noexec_shared_memory_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(memory, "SHARED_MEMORY", tmp_path)
    assert memory.file_folder() == tmp_path
    monkeypatch.setattr(memory, "LEAST_SHARED_BYTES", 2**80)
    assert memory.file_folder() != tmp_path
    monkeypatch.setenv("TMPDIR", "/chosen")
    assert memory.file_folder() == Path("/chosen")


def test_a_temporary_folder_of_another_user_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(settings, "_is_writable", lambda _: False)
    monkeypatch.setattr(settings.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path / "cache"))
    settings._temporary_folder.cache_clear()
    with pytest.warns(UserWarning, match="cannot be written to: runs go to"):
        assert writable_folder() == tmp_path / f"qbkit-{os.getuid()}"
    settings._temporary_folder.cache_clear()
    monkeypatch.setattr(settings.os, "getuid", lambda: 12345)
    (tmp_path / "qbkit-12345").mkdir()
    with pytest.raises(StoreError, match="belongs to another user"):
        writable_folder()
    settings._temporary_folder.cache_clear()
