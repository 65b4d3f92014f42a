"""The changes to Go's runtime: all of them in a Go that they fit, none in another."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from qbkit.cli import checks
from qbkit.stacks.toolchains import go_runtime


@pytest.fixture
def go_root() -> Path:
    if not shutil.which("go"):
        pytest.skip("go is not installed")
    words = ["go", "env", "GOROOT"]
    return Path(subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip())


def test_the_runtime_of_this_go_is_changed(go_root, tmp_path):
    (word,) = go_runtime.overlay(go_root, tmp_path)
    replaced = json.loads(Path(word.removeprefix("-overlay=")).read_text())["Replace"]
    assert {Path(file).name for file in replaced} == set(go_runtime.CHANGES)
    for released, changed in replaced.items():
        before, after = Path(released).read_text(), Path(changed).read_text()
        for theirs, ours in go_runtime.CHANGES[Path(released).name].items():
            assert before.count(theirs) == 1
            before = before.replace(theirs, ours)
        assert before == after


def test_another_go_is_left_alone(go_root, tmp_path):
    for name in go_runtime.CHANGES:
        copy = tmp_path / "src/runtime" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(go_root / "src/runtime" / name, copy)
    assert go_runtime.overlay(tmp_path, tmp_path)
    copy.write_text(copy.read_text().replace("EPOLLOUT", "EPOLLOUT_"))
    assert go_runtime.overlay(tmp_path, tmp_path) == []


def test_doctor_reports_a_go_that_the_changes_do_not_fit(go_root, monkeypatch):
    (found,) = checks._go_runtime()
    assert found.ok
    monkeypatch.setattr(go_runtime, "CHANGES", {"proc.go": {"no runtime has this text": ""}})
    (found,) = checks._go_runtime()
    assert not found.ok
    assert "our changes do not apply to go1." in found.detail
    assert "install Go 1.26" in found.fix
