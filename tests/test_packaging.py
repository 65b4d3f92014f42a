"""Imports are declared, declared packages are locked, and all lists agree."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import jsonschema
import pytest
import yaml
from packaging.requirements import Requirement

from qbkit.testbed import engines, kernel_build

HERE = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((HERE / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
ON_PATH = PYPROJECT["tool"]["pytest"]["ini_options"]["pythonpath"]
"""Folders whose modules tests can import."""
EXTENSIONS = "docs/_ext"
"""Modules of the documentation's build, which its tests import too."""
NEEDED = [Requirement(text) for text in PROJECT["dependencies"]]
NOTEBOOKS = [Requirement(text) for text in PROJECT["optional-dependencies"]["notebooks"]]
FOR_TESTS = [Requirement(text) for text in PROJECT["optional-dependencies"]["dev"]]
FOR_DOCS = [Requirement(text) for text in PROJECT["optional-dependencies"]["docs"]]
LOCK = (HERE / "requirements.lock").read_text()
ELSEWHERE = ("qbkit/stacks/drivers", "qbkit/testbed/guest")
"""Files that run under another Python, with their own modules beside them."""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(folder: str) -> Iterator[tuple[str, Path]]:
    """Each module that the files of a folder import, by the first part of its name, and where."""
    for path in sorted((HERE / folder).rglob("*.py")):
        if not path.relative_to(HERE).as_posix().startswith(ELSEWHERE):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    yield from ((alias.name.partition(".")[0], path) for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    yield node.module.partition(".")[0], path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "declared"),
    [
        ("qbkit", NEEDED + NOTEBOOKS),
        *(
            (folder, NEEDED + NOTEBOOKS + FOR_TESTS)
            for folder in ("tests", "benchmarks", "data", "packages")
        ),
        ("docs", NEEDED + NOTEBOOKS + FOR_DOCS),
    ],
)
def test_every_import_is_declared(folder: str, declared: list[Requirement]):
    distributions = packages_distributions()
    known = {normal(requirement.name) for requirement in declared}
    near = [path for each in (folder, *ON_PATH, EXTENSIONS) for path in (HERE / each).glob("*.py")]
    ours = {"qbkit", "aioquic_flow", *(path.stem for path in near)}
    for module, path in imported(folder):
        beside = path.with_name(f"{module}.py").exists() or path.with_name(module).is_dir()
        if module not in sys.stdlib_module_names and module not in ours and not beside:
            brought_by = {normal(name) for name in distributions.get(module, [module])}
            assert brought_by & known, f"{path.relative_to(HERE)} imports {module}: not declared"


def test_conda_requires_the_same():
    listed = yaml.safe_load((HERE / "environment.yml").read_text())["dependencies"]
    (by_pip,) = (entry["pip"] for entry in listed if isinstance(entry, dict))
    words = {entry for entry in [*listed, *by_pip] if isinstance(entry, str)}
    python = f"python{PROJECT['requires-python']}"
    extra = PROJECT["optional-dependencies"]["notebooks"]
    assert words == {*PROJECT["dependencies"], *extra, python, "pip", "-e .[notebooks]"}


def test_the_lock_has_a_version_in_range_of_all_that_is_declared():
    pins = [Requirement(line) for line in LOCK.splitlines() if not line.startswith("#")]
    versions = {normal(pin.name): [s.version for s in pin.specifier] for pin in pins}
    assert all([s.operator for s in pin.specifier] == ["=="] for pin in pins)
    assert "://" not in LOCK and "--" not in LOCK  # of any registry
    for need in NEEDED + NOTEBOOKS + FOR_TESTS + FOR_DOCS:
        (version,) = versions[normal(need.name)]
        assert need.specifier.contains(version), f"requirements.lock: run make lock for {need}"


def test_binder_installs_the_locked_versions():
    assert (
        "pip install --no-cache-dir -c requirements.lock -e '.[notebooks]'"
        in (HERE / "binder/postBuild").read_text()
    )


def test_binder_has_what_builds_the_kernel():
    listed = set((HERE / "binder/apt.txt").read_text().split())
    assert listed >= {*kernel_build.PACKAGES.split(), "iproute2", "mininet"}


def test_binder_sets_settings_that_jupyterlab_has():
    schemas = Path(sys.prefix) / "share/jupyter/lab/schemas"
    chosen = json.loads((HERE / "binder/overrides.json").read_text())
    for plugin, settings in chosen.items():
        package, _, name = plugin.partition(":")
        known = json.loads((schemas / package / f"{name}.json").read_text())["properties"]
        for setting, value in settings.items():
            jsonschema.validate(value, known[setting])


def test_an_engine_elsewhere_is_one_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engines.platform, "system", lambda: "Darwin")
    assert (engines.named("virtual").problem() or "").startswith("it needs Linux on an x86-64")
