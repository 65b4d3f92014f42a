"""The action of the gate: its inputs, and the scripts that are its steps, run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parents[1]
ACTION = yaml.safe_load((HERE / "action.yml").read_text())
SCRIPTS = HERE / ".github/gate"


def gate(folder: Path, **variables: str) -> tuple[int, str]:
    """Exit status of the script, and what it wrote for the next steps."""
    written = folder / "output"
    env = {**os.environ, "PYTHON": sys.executable, "GITHUB_OUTPUT": str(written), **variables}
    env["GITHUB_STEP_SUMMARY"] = str(folder / "page.md")
    env["PYTHONPATH"] = str(HERE)
    done = subprocess.run([SCRIPTS / "gate.sh"], cwd=folder, env=env, capture_output=True)
    return done.returncode, written.read_text()


def steps() -> list[dict[str, Any]]:
    return ACTION["runs"]["steps"]


def test_each_step_is_an_action_with_a_version_or_a_script_of_ours():
    for step in steps():
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"])
        else:
            script = HERE / step["run"].removeprefix("$GITHUB_ACTION_PATH/")
            assert os.access(script, os.X_OK)
            named = set(re.findall(r"\b[A-Z][A-Z_]+\b", script.read_text()))
            assert set(step["env"]) <= named


def test_every_input_is_used():
    text = (HERE / "action.yml").read_text()
    used = set(re.findall(r"inputs\.(\w+)", text))
    assert used == set(ACTION["inputs"])


@pytest.mark.slow
def test_a_mistake_is_an_error_of_the_step(tmp_path: Path):
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate/summary.md").write_text("# an earlier one: meets")
    status, output = gate(tmp_path, SENDER="tcp:cubic", ARGUMENTS="--bbr-draft --seeds 3")
    assert (status, output) == (2, "answer=error\n")
    assert not (tmp_path / "page.md").exists()


@pytest.mark.guest
def test_an_undecided_gate_passes_unless_it_must_not(tmp_path: Path):
    words = "--beside tcp:cubic --seeds 2 --duration-s 8 --rate-mbps 5"
    how = {"SENDER": "tcp:reno", "ARGUMENTS": words, "BASELINE": "none.zip"}
    assert gate(tmp_path, **how) == (0, "answer=undecided\n")
    page = (tmp_path / "page.md").read_text()
    assert page.startswith("# ❔ tcp:reno: undecided") and "![" not in page
    assert gate(tmp_path, **how, UNDECIDED="true")[0] == 4
