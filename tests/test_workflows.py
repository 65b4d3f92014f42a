"""Workflows and images: each of their steps is an action with a version, or one of our scripts."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parents[1]
WORKFLOWS = sorted((HERE / ".github/workflows").glob("*.yml"))
SCRIPTS = sorted([*HERE.glob(".github/*/*.sh"), *HERE.glob(".devcontainer/*.sh"), HERE / ".ci/run"])
DOCKERFILE = (HERE / ".devcontainer/Dockerfile").read_text()
BY_THEMSELVES = ("apt-get",)
"""Programs that a step may call before the repository is there."""


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    return yaml.safe_load(path.read_text())["jobs"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_each_step_is_an_action_with_a_version_or_a_script(path: Path):
    for job in jobs(path).values():
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"])
            elif not step["run"].startswith(BY_THEMSELVES):
                assert os.access(HERE / step["run"].split()[0], os.X_OK)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.name)
def test_each_script_can_be_read_by_its_shell_and_calls_targets_that_exist(path: Path):
    text = path.read_text()
    shell = "bash" if "bash" in text.splitlines()[0] else "sh"
    subprocess.run([shell, "-n", path], check=True)
    targets = set(re.findall(r"^([a-z]+):", (HERE / "Makefile").read_text(), re.M))
    assert set(re.findall(r"^make ([a-z]+)", text, re.M)) <= targets
    for script in re.findall(r"^\s*(tests/\S+\.sh)", text, re.M):
        assert os.access(HERE / script, os.X_OK)


def test_the_image_takes_its_steps_from_binder():
    assert "$(cat /tmp/apt.txt)" in DOCKERFILE and "COPY binder/apt.txt /tmp/apt.txt" in DOCKERFILE
    assert "RUN binder/postBuild" in DOCKERFILE
    assert not (HERE / "binder/Dockerfile").exists()  # repo2docker would leave the rest out


def test_the_container_of_an_editor_is_this_image():
    found = json.loads((HERE / ".devcontainer/devcontainer.json").read_text())
    assert (HERE / ".devcontainer" / found["build"]["dockerfile"]).exists()
    assert os.access(HERE / found["postCreateCommand"], os.X_OK)
