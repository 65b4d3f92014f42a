"""The notebooks, executed by papermill as users execute them, on real flows."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner
from notebook_cells import shown
from test_docs import Page

from qbkit.cli import group
from qbkit.errors import (
    EngineError,
    QbkitError,
    RunFailed,
    SpecError,
    StackNotReady,
    StoreError,
)
from qbkit.execution import notebooks
from qbkit.spec import Experiment

STAND_IN = "because this machine cannot run the same"


@pytest.mark.guest
def test_start_here(tmp_path):
    path = notebooks.execute("00", tmp_path, {})
    executed = nbformat.read(path, as_version=4)
    outputs = "".join(str(cell.get("outputs", "")) for cell in executed.cells)
    for words in ("tcp:cubic", "tcp:bbr", "goodput_mbps", "vega"):
        assert words in outputs
    page = Page(notebooks.to_html(path))
    assert not [link for link in page.loads if not link.startswith("data:")]


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a notebook that needs no second."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print('done')")])
    (tmp_path / "made").mkdir()
    nbformat.write(notebook, tmp_path / "made/99_short.ipynb")
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path / "made")
    return "99_short"


def test_execution_brings_no_warning_of_jupyter(short, tmp_path, capfd):
    executed = nbformat.read(notebooks.execute(short, tmp_path, {}), as_version=4)
    assert executed.cells[0].outputs[0].text == "done\n"
    said = capfd.readouterr()
    assert "WARNING" not in said.err + said.out


def test_a_full_disk_is_one_sentence(short, tmp_path):
    (tmp_path / "99_short.ipynb").symlink_to("/dev/full")
    with pytest.raises(
        StoreError, match=r"99_short\.ipynb cannot be written: No space left on dev"
    ):
        notebooks.execute(short, tmp_path, {})


KERNEL_THAT_ENDS = """
import os, sys
from pathlib import Path

if "ipykernel_launcher" in sys.orig_argv:
    starts = Path({starts!r})
    starts.write_text(starts.read_text() + "x")
    if len(starts.read_text()) <= {ends}:
        os._exit(1)
"""


@pytest.fixture
def end_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Path]:
    """End so many kernels at their start; the file that it returns has an x for each start."""

    def end(ends: int) -> Path:
        starts = tmp_path / "starts"
        starts.write_text("")
        script = KERNEL_THAT_ENDS.format(starts=str(starts), ends=ends)
        (tmp_path / "sitecustomize.py").write_text(script)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        return starts

    return end


@pytest.mark.slow
def test_a_kernel_that_ends_at_its_start_is_started_again(short, tmp_path, end_kernels):
    starts = end_kernels(1)
    executed = nbformat.read(notebooks.execute(short, tmp_path, {}), as_version=4)
    assert executed.cells[0].outputs[0].text == "done\n"
    assert starts.read_text() == "xx"


@pytest.mark.slow
def test_kernels_that_always_end_at_their_start_are_a_failed_run(short, tmp_path, end_kernels):
    starts = end_kernels(notebooks.KERNEL_STARTS)
    with pytest.raises(RunFailed, match="99_short was not executed: its Jupyter kernel"):
        notebooks.execute(short, tmp_path, {})
    assert len(starts.read_text()) == notebooks.KERNEL_STARTS


@pytest.mark.guest
def test_changing_networks(tmp_path):
    words = {"seeds": 1, "duration_s": 6.0}
    page = notebooks.to_html(notebooks.execute("15", tmp_path, words)).read_text()
    for words in ("The capacity falls", "picoquic:prague", "queueing delay", "least to most"):
        assert words in page
    assert STAND_IN not in page


@pytest.mark.guest
def test_performance_envelope(tmp_path):
    verdict, test = tmp_path / "verdict.json", "quinn:bbr"  # its summary has a text, too
    short = {"rate_mbps": 10.0, "rtt_ms": 10.0, "duration_s": 15.0, "seeds": 2}
    chosen = {**short, "test": test, "verdict_file": str(verdict)}
    executed = notebooks.execute("01", tmp_path, chosen, pictures=True)
    outputs = [o for c in nbformat.read(executed, 4).cells for o in c.get("outputs", [])]
    (first, *_) = [o.data["image/png"] for o in outputs if "image/png" in o.get("data", {})]
    assert base64.b64decode(first).startswith(b"\x89PNG")
    report = json.loads(verdict.read_text())
    assert report["test"] == test
    assert 0 <= report["conformance"] <= 1
    page = notebooks.to_html(executed).read_text()
    assert "Does this stack behave like the kernel?" in page
    assert STAND_IN not in page


@pytest.fixture
def no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/test_docs.py executes every notebook without an engine, with its own parameters."""
    monkeypatch.setenv("QBKIT_KERNEL", str(tmp_path / "no-kernel-here"))


@pytest.mark.slow
@pytest.mark.usefixtures("no_engine")
def test_the_verdict_on_published_data_where_no_engine_works(tmp_path):
    verdict = tmp_path / "verdict.json"
    shown("01", {"verdict_file": str(verdict)})
    # The published runs of quic-go's CUBIC, as data/envelope/study.json describes them.
    report = json.loads(verdict.read_text())
    assert (report["test"], report["reference"]) == ("quic-go:cubic", "tcp:cubic")
    assert report["seeds"] == 5


@pytest.mark.slow
def test_events_are_published_where_a_stack_is_not_built(monkeypatch):
    def not_built(experiment: Experiment, **_: object) -> None:
        raise StackNotReady(f"{experiment.flows[0].text} is not built")

    monkeypatch.setattr(Experiment, "run", not_built)
    assert "quinn:cubic is not built): these are published events" in shown("05", {})


@pytest.mark.slow
@pytest.mark.usefixtures("no_engine")
def test_a_published_evaluation_opens_where_no_engine_works():
    said = shown("16", {"sender": "quinn:bbr"})
    assert "this is the published evaluation of quinn:bbr" in said
    with pytest.raises(EngineError):
        shown("16", {"sender": "tcp:vegas"})


@pytest.mark.slow
@pytest.mark.usefixtures("no_engine")
@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("02", {"seed": 99}, "engine virtual does not work here"),
        ("03", {"sweeps": "../data/controllers"}, "has two sweeps against tcp:cubic"),
        ("03", {"definition": "quicbench"}, "samples the packets of a run"),
        ("11", {"film": "huge-none-15ms"}, "no film 'huge-none-15ms'; choose one of envoy-deep"),
    ],
)
def test_what_is_not_published_ends_in_a_sentence(name, parameters, words):
    with pytest.raises(QbkitError, match=words):
        shown(name, parameters)


@pytest.mark.guest
def test_a_grid_of_parameters_from_the_command_line(tmp_path):
    who = ["-p", "who", "tcp aioquic:reno"]
    words = "-p duration_s 4 -p rate_mbps 5 -p qdisc fifo -p qdisc fq_codel"
    command = f"notebook 02 {words} --out {tmp_path} --json"
    done = CliRunner().invoke(group, [*command.split(), *who])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert [Path(p).name for p in report["notebooks"]] == [
        "02_stack_gallery-fifo.ipynb",
        "02_stack_gallery-fq_codel.ipynb",
    ]
    page = Path(report["html"][1]).read_text()
    expected = ("CUBIC", "Reno", "BBR", "tcp:bbr", "aioquic:reno", "link_used_percent", "fq_codel")
    assert [words for words in expected if words not in page] == []
    assert STAND_IN not in page


def test_a_relative_place_to_write_counts_from_where_the_command_runs(tmp_path, monkeypatch):
    def stop(calls, **_):
        raise RunFailed(str([call[-1] for call in calls.values()]))

    monkeypatch.setattr(notebooks, "run_calls", stop)
    monkeypatch.chdir(tmp_path)
    for place, whole in (("runs", str(tmp_path / "runs")), ("", ""), ("s3://a/b", "s3://a/b")):
        with pytest.raises(RunFailed) as caught:
            notebooks.execute_grid("03", tmp_path / "done", {"out": [place]})
        assert str(caught.value) == str([{"out": whole}])


@pytest.mark.parametrize("texts", [["tcp", "tcp"], ["quinn:cubic", "quinn/cubic"]])
def test_no_two_notebooks_of_a_grid_have_one_name(texts, tmp_path):
    with pytest.raises(SpecError, match="two of the notebooks would be called 02_stack_gallery-"):
        notebooks.execute_grid("02", tmp_path, {"who": texts})


def test_an_unknown_parameter_names_those_there_are(tmp_path):
    with pytest.raises(
        SpecError,
        match=r"02_stack_gallery has no parameter rate \(did you mean \w+\?\); it has rate_mbps",
    ):
        notebooks.execute("02", tmp_path, {"rate": 1})


@pytest.mark.slow
def test_failing_notebook_names_the_cell_and_keeps_what_was_done(tmp_path):
    page = tmp_path / "01_performance_envelope.html"
    page.write_text("of other parameters")
    with pytest.raises(RunFailed, match=r"cell \d+ of .* failed: SpecError: .*rate_mbps = -1"):
        notebooks.execute("01", tmp_path, {"rate_mbps": -1.0})
    assert page.with_suffix(".ipynb").exists() and not page.exists()


def test_unknown_notebook_lists_those_there_are():
    with pytest.raises(SpecError, match="00_start_here, 01_performance_envelope, 02_stack"):
        notebooks.find("99")


@pytest.mark.parametrize("path", sorted(notebooks.FOLDER.glob("*.ipynb")), ids=lambda p: p.stem)
def test_committed_notebooks_carry_no_output(path: Path):
    notebook = nbformat.read(path, as_version=4)
    assert not [c for c in notebook.cells if c.get("outputs") or c.get("execution_count")]


@pytest.mark.parametrize("path", sorted(notebooks.FOLDER.glob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_begins_with_its_picture_and_answer(path: Path):
    notebook = nbformat.read(path, as_version=4)
    title, *parts = notebook.cells[0].source.split("\n\n")
    assert re.fullmatch(r"# .+", title)
    if place := re.fullmatch(r"!\[[^]]+\]\((.+)\)", parts[0]):
        assert (path.parent / place[1]).exists(), "draw it: python docs/pictures.py"
        del parts[0]
    assert parts[0].startswith("**"), parts[0]


@pytest.mark.parametrize("path", sorted(notebooks.FOLDER.glob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_has_one_top_heading_and_lines_that_fit(path: Path):
    cells = nbformat.read(path, as_version=4).cells
    texts = [line for c in cells if c.cell_type == "markdown" for line in c.source.splitlines()]
    assert len([line for line in texts if line.startswith("# ")]) == 1
    code = [line for c in cells if c.cell_type == "code" for line in c.source.splitlines()]
    assert not [line for line in code if len(line) > 100]
