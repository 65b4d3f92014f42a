"""The agent's modules: they travel in few files, and those without Mininet run here too."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from qbkit.testbed import guest_code, native

FOLDERS = ("agent", "experiment")


def test_a_guest_opens_as_many_files_of_the_agent_as_ever():
    assert {path.name for path in native.agent().iterdir()} == {
        "agent.pyc",
        "changes.pyc",
        "experiment.pyc",
    }


def test_no_module_of_the_agent_hides_another_module():
    names = Counter(path.stem for path in native.AGENT_SOURCES.rglob("*.py"))
    assert names.total() == len(names)
    assert names.keys().isdisjoint(sys.stdlib_module_names | {"mininet"})


def test_the_modules_of_a_folder_import_one_another_from_one_file(tmp_path: Path):
    files = {
        "top/top.py": "import alpha\nfrom beta import name\nimport later\nprint(name, alpha.name)",
        "top/alpha.py": "import zeta\nname = zeta.name + 'a'",
        "top/beta.py": "from alpha import name",
        "top/zeta.py": "name = __name__",
        "later.py": "import alpha\nprint(alpha.name, __name__)",
    }
    sources, target = tmp_path / "sources", tmp_path / "target"
    for name, text in files.items():
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        (sources / name).write_text(text)
    target.mkdir()
    guest_code.main(str(sources), str(target))
    assert {path.name for path in target.iterdir()} == {"top.pyc", "later.pyc"}
    said = subprocess.run([sys.executable, target / "top.pyc"], capture_output=True, text=True)
    assert said.stdout == "zetaa later\nzetaa zetaa\n", said.stderr


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch):
    """Imports a module of the agent as its neighbours do, not one of the same name."""
    for folder in FOLDERS:
        monkeypatch.syspath_prepend(native.AGENT_SOURCES / folder)
    for source in native.AGENT_SOURCES.rglob("*.py"):  # data/checks has programs.py as well
        monkeypatch.delitem(sys.modules, source.stem, raising=False)
    before = set(sys.modules)
    yield importlib.import_module
    for name in sys.modules.keys() - before:
        del sys.modules[name]


def test_events_come_in_order_and_an_end_before_a_report(module):
    flows = module("flows")
    flow = {"start_s": 0.0, "stop_s": 2.0}
    late = {"start_s": 2.0, "stop_s": None}
    plan = {"flows": [late, flow], "duration_s": 2.0, "report_every_s": 0.8}
    found = flows.events({**plan, "delays_s_ms": [(0.8, 30)]})
    assert found == [
        (0.0, flows.START, flow),
        (0.8, flows.REPORT, None),
        (0.8, flows.NEW_RTT, 30),
        (1.6, flows.REPORT, None),
        (2.0, flows.START, late),
        (2.0, flows.STOP, flow),
        (2.0, flows.END, None),
    ]


class Host:
    """A node that is this machine."""

    popen = subprocess.Popen


def started(programs: ModuleType, folder: Path, script: str, node: Host | None = None):
    log = str(folder / "program.log")
    return programs.Program(node, "the program", ["/bin/sh", "-c", script], log, programs.ENV)


def test_a_program_is_waited_for_and_ends_by_a_signal(module, tmp_path: Path):
    program = started(module("programs"), tmp_path, "echo ready; exec sleep 60")
    program.wait_ready()
    assert program.end() in module("programs").ENDED_WELL


def test_a_program_that_ends_too_early_is_named_with_its_last_words(module, tmp_path: Path):
    program = started(module("programs"), tmp_path, "echo first >&2; echo last >&2; exit 2")
    with pytest.raises(module("report").RunAborted) as caught:
        program.wait_ready()
    assert str(caught.value) == "the program exited with status 2: last"


def test_the_end_of_a_program_ends_its_flow_and_that_of_the_capture_the_run(module, tmp_path: Path):
    capture = started(module("programs"), tmp_path, "exit 3")
    capture.wait(5)
    with pytest.raises(module("report").RunAborted, match="exited with status 3"):
        capture.require_end_of_flow()
    program = started(module("programs"), tmp_path, "exit 7", Host())
    program.wait(5)
    assert not program.lost_connection
    program.require_end_of_flow()
    assert program.lost_connection
    assert json.loads(Path(program.early_end).read_text())["status"] == 7
    Path(program.early_end).write_text("its own report")
    program.require_end_of_flow()
    assert Path(program.early_end).read_text() == "its own report"
