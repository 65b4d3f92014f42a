"""qbkit without its extra: running and judging work, and what needs it says so in one sentence."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
import importlib.util
known = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name.partition(".")[0] in {absent!r} else known(name, package)
)
sys.meta_path.insert(0, Absent())
"""
"""Make packages look as if they were not installed."""
NEEDS_IT = re.compile(
    r"qbkit\.atlas(\..*)?|qbkit\.stacks\.web\.pages\.(fonts|generated|images|recorded)"
)
"""Modules that nothing imports before it has asked for the extra."""


def modules_of_the_extra() -> set[str]:
    """What the packages of the extra are imported as."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    listed = project["optional-dependencies"]["notebooks"]
    names = {re.split(r"[<>=]", line)[0].lower() for line in listed}
    found = {
        module
        for module, packages in packages_distributions().items()
        if names & {package.lower() for package in packages}
    }
    assert len(found) >= len(names)
    return found


def without_extra(statements: str) -> subprocess.CompletedProcess[str]:
    script = WITHOUT.format(absent=modules_of_the_extra()) + statements
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


@pytest.mark.slow
def test_every_other_module_loads():
    names = [
        path.relative_to(HERE).with_suffix("").as_posix().replace("/", ".")
        for path in sorted((HERE / "qbkit").rglob("*.py"))
        if not re.search(r"drivers/|testbed/guest|__main__|__init__", path.as_posix())
    ]
    wanted = [name for name in names if not NEEDS_IT.fullmatch(name)]
    done = without_extra(f"import importlib\nfor n in {wanted!r}: importlib.import_module(n)")
    assert not done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (
            "from qbkit.cli import main; sys.argv = ['qbkit', 'notebook', '00']; main()",
            "to execute notebooks, install qbkit[notebooks]: papermill and jupyterlab not found",
        ),
        (
            "from qbkit.cli import main; sys.argv = ['qbkit', 'atlas', '.', '--out', 'x']; main()",
            "to write the atlas, install qbkit[notebooks]: nbconvert not found",
        ),
    ],
)
def test_what_needs_it_says_so(statement: str, sentence: str):
    done = without_extra(statement)
    assert done.returncode == 1
    assert done.stderr == f"qbkit: {sentence} (pip install 'qbkit[notebooks]')\n"
