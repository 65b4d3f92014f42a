"""The public names: all are there, all are explained, and one rule holds for their arguments."""

from __future__ import annotations

import inspect
import json
import re
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest
from synthetic import synthetic_run

import qbkit as qb
from qbkit import errors
from qbkit.accessor import RunAccessor, RunPlots

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "notebooks"
WITH_DATA = {
    "summary": qb.metrics.summary,
    "packet_balance": qb.metrics.packet_balance,
    "envelope": qb.metrics.envelope,
    "events": qb.flow_events,
}
"""Accessor methods, and the functions that take the run first."""


def arguments(function: object) -> list[tuple[str, object, object]]:
    """Name, kind and default of each argument but the first, which is the run."""
    named = list(inspect.signature(function).parameters.values())[1:]  # type: ignore[arg-type]
    return [(p.name, p.kind, p.default) for p in named]


@pytest.mark.parametrize("name", qb.__all__)
def test_every_public_name_is_there_and_explained(name: str):
    found = getattr(qb, name)
    assert name in dir(qb)
    assert inspect.getdoc(found)


@pytest.mark.parametrize(
    ("package", "name", "sentence"),
    [
        (qb, "experiment", "qbkit has no experiment (did you mean Experiment?)"),
        (qb.plots, "timeline", "qbkit.plots has no timeline (did you mean timeline_chart?)"),
        (qb, "zzz", "qbkit has no zzz"),
    ],
)
def test_a_misspelt_name_names_the_nearest(package: ModuleType, name: str, sentence: str):
    with pytest.raises(AttributeError, match=f"^{re.escape(sentence)}$"):
        getattr(package, name)


def test_the_version_is_that_of_the_installed_package():
    assert qb.__version__ == version("qbkit")


def test_the_changelog_and_the_citation_name_the_version():
    released = re.search(r"^## (\d[\d.]*) \(", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert released and cited
    assert released[1] == cited[1] == qb.__version__


def test_every_exception_is_public():
    raised = {
        name
        for name, found in vars(errors).items()
        if inspect.isclass(found) and issubclass(found, qb.QbkitError)
    }
    assert raised <= set(qb.__all__)


@pytest.mark.parametrize("name", WITH_DATA)
def test_an_accessor_method_takes_what_its_function_takes(name: str):
    assert arguments(getattr(RunAccessor, name)) == arguments(WITH_DATA[name])


@pytest.mark.parametrize("name", [n for n in vars(RunPlots) if not n.startswith("_")])
def test_a_chart_of_the_accessor_takes_some_of_what_its_function_takes(name: str):
    assert set(arguments(getattr(RunPlots, name))) <= set(
        arguments(getattr(qb.plots, f"{name}_chart"))
    ) | {("definition", inspect.Parameter.KEYWORD_ONLY, "imc22")}


def without_names(chart: str) -> str:
    """Altair names views at random."""
    return re.sub("view_[0-9a-f]+", "view", chart)


@pytest.mark.slow
def test_a_chart_of_each_kind_comes_from_the_accessor():
    run = synthetic_run(duration_s=12)
    labels = list(run.label.values)
    connections = {label: run.qb.events(label) for label in labels}
    for name in ("bytes_acked", "loss"):
        chart = getattr(run.qb.plot, name)(reference=labels[1])
        function = getattr(qb.plots, f"{name}_chart")
        plain = function(connections, reference=labels[1])
        assert without_names(chart.to_json()) == without_names(plain.to_json())


def test_a_run_that_is_in_no_file_says_where_logs_would_be(tmp_path: Path):
    run = synthetic_run(duration_s=1)
    with pytest.raises(qb.StoreError, match="the run is not stored in a file"):
        _ = run.qb.kept_folder
    qb.save_run(run, tmp_path / "run.nc")
    assert run.qb.kept_folder == tmp_path / "run.kept"


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda p: p.stem)
def test_notebooks_use_public_names_only(path: Path):
    cells = json.loads(path.read_text())["cells"]
    source = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    assert "from qbkit" not in source
    assert "import qbkit." not in source
